"""The report page is self-contained and well-formed, and all text in it is escaped."""

import re
from html.parser import HTMLParser

import pytest

from chapterverse.evaluation import plots
from chapterverse.evaluation.report import make_report
from chapterverse.evaluation.report_page import SHOWN_CASES, formatted, make_page
from tests.evaluation.cases import answered, citation, failed, passage, question, refused, run, unanswerable

HOSTILE = "</p><script src=https://evil.example/x.js>alert('1')</script><img src=x onerror=\"go()\">"
LOADING = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form", "a", "use"}


class Reader(HTMLParser):
    """The elements of a page; fails if they are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(*cases: object, **fields: object) -> str:
    return make_page(make_report(run(**fields), cases))  # type: ignore[arg-type]


def hostile_page() -> str:
    asked = question(
        id=HOSTILE, question=f"{HOSTILE}?", answer=HOSTILE, page=HOSTILE, section=HOSTILE,
        sentence=HOSTILE + " and more" * 30, history=[[HOSTILE, HOSTILE]], selection=HOSTILE,
    )  # fmt: skip
    found = passage().model_copy(update={"text": HOSTILE, "source_url": HOSTILE, "page_title": HOSTILE})
    cited = citation(HOSTILE, section=HOSTILE).model_copy(update={"source_url": HOSTILE, "page_title": HOSTILE})
    return page_of(
        answered(asked, answer=HOSTILE, passages=(found,), citations=(cited,), searched=HOSTILE),
        answered(unanswerable(why=HOSTILE)),
        failed().model_copy(update={"error": HOSTILE}),
        questions=HOSTILE, book=HOSTILE, model=HOSTILE,
    )  # fmt: skip


def test_all_text_is_escaped() -> None:
    read = Reader(hostile_page())
    assert not LOADING & {tag for tag, _ in read.tags}
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on")]
    assert read.text.count(HOSTILE) == 22


def test_page_makes_no_request() -> None:
    page = hostile_page()
    for _, attributes in Reader(page).tags:
        assert not {"src", "href", "srcset", "action", "data", "style"} & set(attributes)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'" in page
    assert "http" not in page_of(answered().model_copy(update={"passages": ()})).replace("http-equiv", "")


def test_failing_case_is_shown_with_its_evidence() -> None:
    text = Reader(page_of(answered(citations=(citation("Tern has two wheels."),)), refused(question(id="q2")))).text
    assert "Answered, but not with the evidence that was written down" in text
    assert "Refused, though the book says" in text
    for shown in ("Tern has a mass of 6 kg and two driven wheels.", "[1] Tern has two wheels.", "intro/tern.md › Tern"):
        assert shown in text


def test_page_of_a_perfect_run_and_of_an_interrupted_run() -> None:
    assert "Nothing. Harder questions would tell more." in page_of(answered())
    assert "interrupted" not in page_of(answered())
    assert "was interrupted" in page_of(answered(), interrupted=True)


def test_kinds_have_their_own_table() -> None:
    page = make_page(make_report(run(), [answered(question(kind="<b>odd</b>"))]))
    assert "Kinds of questions" in page
    assert "&lt;b&gt;odd&lt;/b&gt;" in page
    assert "Kinds of questions" not in make_page(make_report(run(), [answered()]))


def test_number_of_shown_cases_is_limited() -> None:
    page = page_of(*[refused(question(id=str(number))) for number in range(SHOWN_CASES + 7)])
    assert page.count("<article>") == SHOWN_CASES
    assert "… and 7 more" in page


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (0.5, "share", "50.0%"),
        (0.5, "mean", "0.500"),
        (1234.4, "ms", "1,234 ms"),
        (1.25, "count", "1.2"),
        (1054.2, "count", "1,054"),
    ],
)
def test_values_are_formatted(value: float, kind: str, shown: str) -> None:
    assert formatted(value, kind) == shown


def numbers(drawn: str, shape: str, name: str) -> list[float]:
    return [float(found) for found in re.findall(rf'<{shape} [^>]*\b{name}="([\d.]+)"', drawn)]


def test_plot_coordinates() -> None:
    drawn = plots.reliability([(0.0, 0.0, 0.0, 0.5, 4), (1.0, 1.0, 0.5, 1.0, 9)])
    (left, right), (bottom, top) = numbers(drawn, "circle", "cx"), numbers(drawn, "circle", "cy")
    guide = re.search(r'class="guide" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"', drawn)
    assert guide
    assert [float(one) for one in guide.groups()] == [left, bottom, right, top]
    assert left < right
    assert top < bottom  # SVG coordinates start at the top
    assert Reader(plots.trade_off([(0.0, 0.1, 0.5), (0.9, 0.6, 0.0)])).tags


def test_histogram_counts_everything_once() -> None:
    drawn = plots.histogram([1.0, 2.0, 99.0, 100.0, 50.0])
    counted = [int(count) for count in re.findall(r"<title>(\d+) answers", drawn)]
    assert sum(counted) == 5
    assert plots.histogram([0.0])
    assert max(y + h for y, h in zip(numbers(drawn, "rect", "y"), numbers(drawn, "rect", "height"), strict=True)) < 260
