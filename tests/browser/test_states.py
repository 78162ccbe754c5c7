"""States that do not occur with the example book: unusual characters, pauses, failures, keys, no book."""

import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from chapterverse.api.openapi.examples import SUMMARY
from chapterverse.api.web import asset_path
from chapterverse.book import page_id_for
from chapterverse.errors import IndexMissing
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.images import image_name
from chapterverse.ingestion.readers import read
from tests.browser.chromium import ask, in_view, shoot, shown, visiting
from tests.browser.shelf import Shelf, odd_page, scripted_server
from tests.scripted import SENTENCES, Scripted, wait_until
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOOK = odd_page()


@pytest.fixture(scope="module")
def server(scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf([BOOK]), scripted, api_rate_limit=100_000) as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with visiting(browser, server.url, f"/read/{BOOK.page_id}") as page:
        page.locator("main .headed").first.wait_for()  # made by the scripts
        yield page


@pytest.mark.parametrize(
    "quote",
    [
        "The second sentence 👩‍🚀 is cited.",
        "🤖🦾 says “más”.",
        "inner 🧪 one",
        "🥇 one",
        '"🐍 [1]"',
        "The last words 🏁",
        "💬",
    ],
)
def test_quote_is_marked_exactly(browser: Browser, server: Served, quote: str) -> None:
    start = BOOK.text.index(quote)
    with visiting(browser, server.url, f"/read/{BOOK.page_id}?quote={start}-{start + len(quote)}") as page:
        expect(page.locator("mark.evidence")).to_have_text([quote])
        assert in_view(page, "mark.evidence")


def test_any_range_of_the_text_is_marked_exactly(page: Page) -> None:
    """The marked text equals the text of the range without Markdown syntax."""
    page.locator("main h1").wait_for()
    pick = random.Random(5)
    places = [sorted(pick.sample(range(len(BOOK.text) + 1), 2)) for _ in range(150)]
    stored = {
        "text": BOOK.text,
        "sections": [{"start": s.start, "level": s.level, "anchor": s.anchor} for s in BOOK.sections],
        "blocks": [asdict(block) for block in BOOK.blocks],
        "marks": [asdict(mark) for mark in BOOK.marks],
    }
    marked = page.evaluate(
        """async ([stored, places, rendering, offsets]) => {
            const { render } = await import(rendering);
            const { mark, unitsOf } = await import(offsets);
            const units = unitsOf(stored.text);
            return places.map(([start, end]) => {
                const { nodes, runs } = render(stored, () => null);
                const holder = document.createElement("div");
                holder.append(...nodes);
                const marks = mark(runs, units(start), units(end));
                const faithful = runs.every((run) => stored.text.slice(run.start, run.end) === run.node.data);
                return [faithful, marks.map((one) => one.textContent).join("")];
            });
        }""",
        [stored, places, f"../{asset_path('render.js')}", f"../{asset_path('offsets.js')}"],
    )
    without_language = BOOK.text.replace("```python", "`" * 9)
    for (start, end), (faithful, text) in zip(places, marked, strict=True):
        assert faithful
        assert letters(text) == letters(without_language[start:end])


def letters(text: str) -> str:
    """The text without white space and Markdown syntax."""
    return "".join(character for character in text if character not in " \n#-|`>\\")


def test_text_that_looks_like_markup_is_shown_as_text(page: Page) -> None:
    expect(page.locator("main")).to_contain_text("<b>without markup</b>")
    expect(page.locator("main pre")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main b, main i, main script").count() == 0
    expect(page.locator("main h2").first).to_have_text("Things & <i>things</i>")
    expect(page.locator("td").first).to_have_text("bars a | b")
    expect(page.locator("main li li")).to_have_text("inner 🧪 one")
    expect(page.locator("h2#book-contents")).to_have_count(1)
    shoot(page, "20-odd-page")


def test_selection_is_sent_as_source_text(page: Page, scripted: Scripted) -> None:
    page.locator("main h1 + p").evaluate("node => getSelection().selectAllChildren(node)")
    page.get_by_role("button", name="Ask about this", exact=True).click()
    ask(page, "answer")
    expect(page.locator(".turn .confidence")).to_be_visible()
    sent = scripted.asked[-1].selected_text
    assert sent and sent in BOOK.text and "`code 🐍`" in sent and sent.endswith("</b>.")


def test_passages_are_shown_first_and_an_answer_can_be_stopped(page: Page, scripted: Scripted) -> None:
    ask(page, "pause 30")
    expect(page.locator(".reading li")).to_have_text(["What Is ROS 2?"])
    expect(page.locator(".waiting")).to_contain_text("Checking")
    assert page.locator(".answer").inner_text() == ""
    shoot(page, "21-waiting")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".remark")).to_contain_text("Stopped")
    wait_until(lambda: "pause 30" in scripted.closed)


def test_failed_answer_keeps_the_verified_text(page: Page) -> None:
    ask(page, "fail agent_unavailable")
    expect(page.locator("[role=alert]")).to_contain_text("As the script says.")
    expect(page.locator(".answer")).to_contain_text("ROS 2 is a set of libraries")
    ask(page, "answer")
    expect(page.locator(".answer").last).to_have_text(shown(SENTENCES))


def test_try_again_is_enabled_after_retry_after(page: Page, scripted: Scripted) -> None:
    ask(page, "prepare fail")
    button = page.get_by_role("button", name="Try again in")
    expect(button).to_be_disabled()
    shoot(page, "22-unavailable")
    before = len(scripted.asked)
    page.get_by_role("button", name="Try again", exact=True).click()
    expect(page.locator("[role=alert]")).to_contain_text("The search took too long.")
    assert len(scripted.asked) == before + 1
    expect(page.locator(".turn")).to_have_count(1)


def test_rate_limit_shows_a_countdown(browser: Browser, scripted: Scripted) -> None:
    with (
        scripted_server(Shelf([BOOK]), scripted, api_rate_limit=1) as server,
        visiting(browser, server.url) as page,
    ):
        ask(page, "answer")
        expect(page.locator(".confidence")).to_be_visible()
        ask(page, "answer")
        expect(page.locator("[role=alert]")).to_contain_text("Too many questions")
        button = page.get_by_role("button", name="Try again in")
        expect(button).to_be_disabled()
        countdown = button.inner_text()
        expect(button).not_to_have_text(countdown)  # it counts down
        shoot(page, "23-rate-limited")


def test_key_is_asked_for_until_it_is_right_and_then_kept(browser: Browser, scripted: Scripted) -> None:
    with (
        scripted_server(Shelf([BOOK]), scripted, api_keys="open-sesame") as server,
        visiting(browser, server.url) as page,
    ):
        box = page.get_by_label("API key")
        box.fill("wrong")
        page.keyboard.press("Enter")
        expect(box).to_have_value("")
        expect(page.locator("#cv-key")).to_be_visible()
        shoot(page, "24-key")
        box.fill("open-sesame")
        page.keyboard.press("Enter")
        expect(page.locator("main .cover h1")).to_have_text("Book")
        expect(page.locator("main .lede")).to_contain_text("A robot")
        ask(page, "answer")
        expect(page.locator(".confidence")).to_be_visible()
        page.reload()
        expect(page.locator("main .cover h1")).to_have_text("Book")
        expect(page.locator("#cv-key")).to_be_hidden()


def test_images_are_loaded_with_the_key(browser: Browser, scripted: Scripted, tmp_path: Path) -> None:
    text = b"# Pictures\n\nHere: ![in line](one.svg)\n\n![alone](two.svg)\n\n![lost](three.svg)\n"
    document = Document("https://b.test/p", "p.md", "book", "markdown", text)
    (tmp_path / "images").mkdir()
    for name in ("one", "two", "three"):
        drawing = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"/>' if name != "three" else b"broken"
        (tmp_path / "images" / image_name(f"https://b.test/{name}.svg")).write_bytes(drawing)
    shelf = Shelf([compose(document, read(document)[0])])
    with (
        scripted_server(shelf, scripted, api_keys="open-sesame", chapterverse_home=tmp_path) as server,
        visiting(browser, server.url) as page,
    ):
        page.get_by_label("API key").fill("open-sesame")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Start reading").click()
        expect(page.locator("main h1")).to_contain_text("Pictures")
        expect(page.locator("main .picture")).to_have_text("lost")
        images = page.locator("main img")
        wait_until(lambda: images.evaluate_all("(images) => images.every((image) => image.naturalWidth === 40)"))
        assert images.evaluate_all("(images) => images.map(({ alt }) => alt)") == ["in line", "alone"]


@pytest.mark.parametrize("shelf", [Shelf(), Shelf(failure=IndexMissing("There is no book yet."))])
def test_page_without_a_book_shows_the_ingest_command(browser: Browser, scripted: Scripted, shelf: Shelf) -> None:
    with scripted_server(shelf, scripted) as server, visiting(browser, server.url) as page:
        expect(page.locator("main")).to_contain_text("chapterverse ingest")
        shoot(page, "25-no-book")


def test_low_confidence_and_truncation_are_shown(page: Page) -> None:
    done: dict[str, Any] = SUMMARY | {
        "type": "done",
        "status": "truncated",
        "confidence_level": "low",
        "disclaimer": "The passages fit the question only loosely.",
        "metadata": SUMMARY["metadata"] | {"sentences_withheld": 2, "stored": False},
    }
    page.evaluate(
        """async ([done, turns]) => {
            const { Turn } = await import(turns);
            const turn = new Turn({ query: "Is it so?", selection: null }, { hrefOf: () => null });
            turn.show({ type: "chunk", content: "It is `list[0]` so [1]. " });
            turn.show({ type: "sources", sources: [] });
            turn.show(done);
            document.querySelector(".turns").replaceChildren(turn.element);
        }""",
        [done, f"../{asset_path('turn.js')}"],
    )
    expect(page.locator(".answer")).to_have_text("It is list[0] so [1].")
    for words in (
        "Confidence: low",
        "only loosely",
        "Cut short",
        "The rest did not arrive",
        "2 sentences withheld",
        "could not be kept",
    ):
        expect(page.locator(".turn")).to_contain_text(words)
    shoot(page, "26-low-confidence")


def test_text_direction_follows_the_script_of_each_block(page: Page) -> None:
    def direction(text: str) -> str:
        found = page.locator("main").get_by_text(text).first
        return str(found.evaluate("node => getComputedStyle(node).direction"))

    assert [direction(text) for text in ("הרובוט הוא", "פריט", "כותרת")] == ["rtl"] * 3
    assert [direction(text) for text in ("A robot", "outer one", "print(")] == ["ltr"] * 3
    left, right = (page.locator("main").get_by_text(text).bounding_box() for text in ("A robot", "הרובוט הוא"))
    assert left and right and left["width"] == right["width"]


def test_print_shows_only_the_page_in_light_colours(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{BOOK.page_id}", color_scheme="dark") as page:
        page.locator("main h1").wait_for()
        page.get_by_role("button", name="Switch to light").click()
        page.get_by_role("button", name="Switch to dark").click()  # chosen by the user, not by the system
        colour = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(colour)
        page.emulate_media(media="print")
        for part in (".bar", ".contents", ".ask-place", ".outline", ".turning"):
            expect(page.locator(part)).to_be_hidden()
        expect(page.locator("main h1")).to_be_visible()
        assert page.evaluate(colour) != dark


def test_page_that_failed_to_load_can_be_retried(browser: Browser, scripted: Scripted) -> None:
    other = replace(BOOK, page_id=page_id_for("other"), url="other.md", title="Other")
    with scripted_server(Shelf([BOOK, other]), scripted) as server, visiting(browser, server.url) as page:
        page.locator(".contents a").first.wait_for()
        page.route("**/pages/*", lambda route: route.abort())
        page.locator(".contents a", has_text="Other").click()
        expect(page.locator("main")).to_contain_text("The server cannot be reached.")
        page.unroute("**/pages/*")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".contents [aria-current=page]")).to_have_text("Other")
        expect(page.locator("main p").nth(1)).to_contain_text("A robot")
