"""The usage report: counts, time spans and a self-contained page."""

import re
from datetime import date, timedelta
from html.parser import HTMLParser

from chapterverse.evaluation.gaps import Gap, GapQuestion
from chapterverse.evaluation.usage import MOST_BARS, UsageReport, spans_of
from chapterverse.evaluation.usage_page import make_usage_page
from chapterverse.models import RetrievedPassage
from tests.evaluation.test_gaps import NOW, asked

HOSTILE = '<script>alert("1")</script> & co'


def report(**fields: object) -> UsageReport:
    question = GapQuestion(
        question=HOSTILE,
        trouble="rated_down",
        times=2,
        last_asked=NOW,
        turn_ids=["t"],
        reasons=["wrong"],
        comments=[HOSTILE],
    )
    section = RetrievedPassage(page_title=HOSTILE, section_heading="B", source_url="book/a.md#b", score=0.5)
    gap = Gap(
        name=HOSTILE, sure=True, asked=3, sessions=2, troubles={"refused": 2, "rated_down": 1}, questions=[question],
        nearest=[section], missing_words=["Kubernetes"], issue=f"# {HOSTILE}",
    )  # fmt: skip
    made: dict[str, object] = {
        "made_at": NOW, "since": NOW - timedelta(days=2), "until": NOW, "book": "3 pages", "questions": 4,
        "sessions": 2,
        "answered": 2, "refused": 2, "low_confidence": 0, "rated_up": 0, "rated_down": 1, "reasons": {"wrong": 1},
        "about_selections": 0, "gaps": [gap],
        "spans": spans_of([asked("a"), asked("b", status="answered")], date(2026, 10, 30), date(2026, 11, 1)),
    }  # fmt: skip
    return UsageReport.model_validate(made | fields)


def test_every_question_counts_once_on_its_day() -> None:
    turns = [
        asked("a"),
        asked("b", status="answered"),
        asked("c", status="answered", rating="down"),
        asked("d", rating="down"),
        asked("e", -60 * 24, status="truncated"),
    ]
    spans = spans_of(turns, date(2026, 10, 30), date(2026, 11, 1))
    assert [(span.begins.day, span.answered, span.refused, span.rated_down) for span in spans] == [
        (30, 0, 0, 0),
        (31, 1, 0, 0),
        (1, 1, 1, 2),
    ]
    assert sum(span.questions for span in spans) == len(turns)


def test_long_periods_are_grouped_by_week() -> None:
    spans = spans_of([asked("a")], date(2025, 11, 1), date(2026, 11, 1))
    assert len(spans) <= MOST_BARS
    assert {span.days for span in spans} == {7}
    assert sum(span.questions for span in spans) == 1


class Tags(HTMLParser):
    """All tags, and the attributes that would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href", "onclick", "xlink:href")]


def test_page_has_plots_and_makes_no_request() -> None:
    page = make_usage_page(report())
    seen = Tags()
    seen.feed(page)
    assert seen.tags.count("svg") == 3, "over time; answered, refused, rated down; groups"
    assert "script" not in seen.tags and seen.loads == [] and "url(" not in page
    assert "default-src 'none'" in page
    assert "&lt;script&gt;" in page and "book/a.md#b" in page and "Kubernetes" in page
    drawn = re.findall(r'<rect class="([\w-]+)"[^>]*height="([\d.]+)"', page)
    assert {kind for kind, _ in drawn} == {"answered", "refused", "rated-down"}
    assert all(float(height) > 0 for _, height in drawn)


def test_unsure_gaps_have_their_own_section() -> None:
    (gap,) = report().gaps
    page = make_usage_page(report(gaps=[gap, gap.model_copy(update={"sure": False})]))
    assert page.index("What the book lacks (1)") < page.index("What the book may lack (1)")
    assert "What the book may lack" not in make_usage_page(report())


def test_page_of_a_book_without_questions() -> None:
    page = make_usage_page(report(questions=0, gaps=[], spans=[], reasons={}))
    assert "<svg" not in page and "No question was refused" in page
    assert UsageReport.model_validate_json(report().model_dump_json()) == report()
