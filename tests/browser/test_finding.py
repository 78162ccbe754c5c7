"""Title page, large books, search, the button beside a selection, and the page without a book or a key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from chapterverse.api.web import asset_path
from chapterverse.errors import IndexMissing
from tests.browser.chromium import ask, visiting
from tests.browser.shelf import Shelf, scripted_server
from tests.browser.test_reader_page import CODE_PAGE, LONG_PAGE, NARROW, PAGES, SHAPE, written
from tests.scripted import Scripted
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MANY = [
    written(
        f"part-{number // 10}/page-{number}.md", f"# Page {number}\n\nWords of page {number}.", f"Part {number // 10}"
    )
    for number in range(300)
]


@pytest.fixture(scope="module")
def server(scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(PAGES), scripted, api_rate_limit=100_000) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}") as opened:
        opened.locator("main .headed").first.wait_for()
        yield opened


# ── the title page ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_title_page_of_script_and_server_are_equal(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, java_script_enabled=False) as page:
        sent = page.locator("main").evaluate(SHAPE)
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}") as page:
        page.locator("main .headed").first.wait_for()
        page.locator(".brand").click()
        expect(page.locator("main .cover")).to_be_visible()
        assert page.url == f"{server.url}/"
        assert page.title() == "The book"
        assert page.locator("main").evaluate(SHAPE) == sent
        page.go_back()
        expect(page.locator("main h1")).to_have_text("Long")


@pytest.mark.parametrize(("path", "title"), [("/", "The book"), (f"/read/{CODE_PAGE.page_id}", "Code")])
def test_page_is_shown_after_a_key_is_entered(browser: Browser, scripted: Scripted, path: str, title: str) -> None:
    with (
        scripted_server(Shelf(PAGES), scripted, api_keys="open-sesame") as server,
        visiting(browser, server.url, path) as page,
    ):
        expect(page.locator("#cv-key")).to_be_visible()
        expect(page.locator("#cv-ask")).to_be_hidden()  # the panel cannot be used yet
        page.get_by_label("API key").fill("“open-sesame”")  # cannot be sent
        page.keyboard.press("Enter")
        expect(page.locator("#cv-key-box:invalid")).to_have_count(1)
        page.get_by_label("API key").fill("open-sesame")
        page.keyboard.press("Enter")
        expect(page.locator("main h1")).to_have_text(title)
        expect(page.locator(".brand")).to_have_text("The book")
        expect(page.locator("#cv-ask")).to_be_visible()
        page.locator(".brand").click()
        expect(page.locator("main .cover .lede")).to_have_text("A book about parts.")


def test_cancelling_the_key_dialog_shows_that_a_key_is_needed(browser: Browser, scripted: Scripted) -> None:
    with scripted_server(Shelf(PAGES), scripted, api_keys="x") as server, visiting(browser, server.url) as page:
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("main h1")).to_have_text("This book needs a key")
        expect(page.locator("#cv-ask")).to_be_hidden()
        expect(page.get_by_role("button", name="Enter a key")).to_be_visible()


@pytest.mark.parametrize("shelf", [Shelf(), Shelf(failure=IndexMissing("There is no book yet."))])
@pytest.mark.parametrize("width", [1400, 360])
def test_without_a_book_panels_and_buttons_are_hidden(
    browser: Browser, scripted: Scripted, shelf: Shelf, width: int
) -> None:
    view = {"width": width, "height": 740}
    with scripted_server(shelf, scripted) as server, visiting(browser, server.url, viewport=view) as page:
        expect(page.locator("main")).to_contain_text("chapterverse ingest")
        for name in ("#cv-ask", "#cv-ask-button", "#cv-search-button", ".ask-bar", "#cv-contents-button"):
            expect(page.locator(name)).to_be_hidden()
        if not shelf.failure:
            expect(page.locator("main p")).to_have_count(2)  # instructions and a button


# ── a large book ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_large_book_has_the_open_chapter_and_the_script_adds_the_others(browser: Browser, scripted: Scripted) -> None:
    with scripted_server(Shelf(MANY), scripted) as server:
        path = f"/read/{MANY[42].page_id}"
        with visiting(browser, server.url, path, java_script_enabled=False) as page:
            expect(page.locator(".contents details a")).to_have_count(10)
            page.locator(".contents .folded a", has_text="Part 7").click()
            expect(page.locator("main h1")).to_have_text("Page 70")
        with visiting(browser, server.url, path) as page:
            expect(page.locator(".contents details a[data-url]")).to_have_count(300)
            expect(page.locator(".contents details[open]")).to_have_count(1)
            page.locator("main .turning a[rel=next]").click()
            expect(page.locator("main h1")).to_have_text("Page 43")
            page.keyboard.press("Control+k")
            page.locator("#cv-search-box").fill("page 299")
            expect(page.locator(".titles .hit")).to_contain_text("Part 29")
            page.reload()
            expect(page.locator(".contents details a[data-url]")).to_have_count(300)
            entries = page.evaluate("performance.getEntriesByType('resource').map((e) => [e.name, e.transferSize])")
            assert [size for name, size in entries if "/contents/" in name] == [0], "the contents are fetched once"


def test_title_page_of_a_large_book_has_the_ask_panel_and_the_search(browser: Browser, scripted: Scripted) -> None:
    with scripted_server(Shelf(MANY), scripted) as server, visiting(browser, server.url) as page:
        expect(page.locator("main .cover")).to_be_visible()
        for name in ("#cv-ask", "#cv-search-button"):
            expect(page.locator(name)).to_be_visible()
        expect(page.locator(".contents details a[data-url]")).to_have_count(300)


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def find(page: Page, query: str, *hits: dict[str, Any]) -> None:
    """Searches; the server returns these passages."""
    body = {"results": list(hits), "total_results": len(hits), "query": query, "latency_ms": 1}
    page.route("**/search", lambda route: route.fulfill(json=body))
    page.keyboard.press("Control+k")
    page.locator("#cv-search-box").fill(query)
    if len(query) < 3:
        page.keyboard.press("Enter")  # so short a query is not searched while typing
    page.locator("#cv-results .hit .excerpt, #cv-results .nothing").first.wait_for()


def hit(of: Any, heading: str, text: str) -> dict[str, Any]:
    start = of.text.index(text)
    crumb = f"{of.title} › {heading}" if heading else of.title
    place = {"page_id": of.page_id, "page_title": of.title, "section_heading": heading, "breadcrumb": crumb}
    return {**place, "chunk_text": text, "char_start": start, "char_end": start + len(text), "book": "", "version": ""}


def test_hits_are_grouped_by_page_and_their_words_are_marked_there(page: Page) -> None:
    code = CODE_PAGE.text[CODE_PAGE.text.index("```python") : CODE_PAGE.text.index("no language")].rpartition("\n\n")[0]
    find(
        page,
        "turned words",
        hit(LONG_PAGE, "Part 2", "Words of this part."),
        hit(CODE_PAGE, "", code),
        hit(LONG_PAGE, "Part 3", "Words of this part. Words"),
    )
    expect(page.locator(".of-page")).to_have_text(["LongThe parts", "CodeThe parts"])
    expect(page.locator(".passages .hit strong")).to_have_text(["Part 2", "Part 3", "Code"])
    lines = page.locator(".hit code.excerpt").inner_text()
    assert lines.splitlines()[0].startswith("def turn"), "code keeps its lines"
    page.locator(".hit:has(code)").click()
    expect(page.locator("main h1")).to_have_text("Code")
    expect(page.locator("main mark.found")).to_have_text(["turned"])
    expect(page.locator("main mark.found")).to_be_focused()


def test_what_was_found_in_a_quotation_is_shown_without_its_signs(page: Page) -> None:
    find(
        page,
        "lamp",
        hit(LONG_PAGE, "Part 2", "Words") | {"chunk_text": "Rules.\n>\n> - The lamp\n>\n> > burns > 3 hours."},
    )
    expect(page.locator(".hit .excerpt")).to_have_text("Rules. The lamp burns > 3 hours.")


def test_hit_without_words_of_the_query_is_marked_as_a_whole(page: Page) -> None:
    find(page, "zxqv", hit(LONG_PAGE, "Part 2", "Words of this part."))
    expect(page.locator(".nothing")).to_contain_text("come nearest in meaning")
    page.locator(".passages .hit").click()
    expect(page.locator("main mark.evidence").first).to_have_text("Words of this part.")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("C++", "Use C++ 17 for this."),
        ("हिन्दी", "यह पुस्तक हिन्दी में है।"),
        ("=>", "An arrow => it is."),
        ("猫", "この猫が好き。"),
    ],
)
def test_query_of_signs_or_of_any_script_is_found_as_it_is(page: Page, query: str, text: str) -> None:
    find(page, query, hit(written("q.md", f"# Q\n\n{text}"), "", text))
    expect(page.locator("#cv-results .excerpt mark")).to_have_text(query)
    expect(page.locator("#cv-results .nothing")).to_have_count(0)


@pytest.mark.parametrize("before", ["", "第一章 "])
def test_excerpt_of_a_text_without_blanks_has_the_word_and_the_text_around_it(page: Page, before: str) -> None:
    text = f"{before}{'機械学習の基礎。' * 30}量子計算の章。{'以上。' * 100}"
    find(page, "量子計算", hit(written("q.md", f"# Q\n\n{text}"), "", text))
    excerpt = page.locator("#cv-results .excerpt")
    expect(excerpt.locator("mark")).to_have_text("量子計算")
    assert len(excerpt.inner_text()) > 200


def test_search_behind_a_login_page_says_so(page: Page) -> None:
    page.route("**/search", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
    page.keyboard.press("Control+k")
    page.locator("#cv-search-box").fill("words")
    expect(page.locator("#cv-results .failure")).to_contain_text("sign in again")


def test_keys_while_composing_stay_in_the_field(page: Page) -> None:
    find(page, "words", hit(written("q.md", "# Q\n\nSome words."), "", "Some words."))
    page.locator("#cv-results .excerpt").wait_for()
    press = """(box, key) => box.dispatchEvent(
        new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true })
    )"""
    for key in ("ArrowDown", "Escape"):
        page.locator("#cv-search-box").evaluate(press, key)
        expect(page.locator("#cv-search-box")).to_be_focused()
    page.keyboard.press("Escape")
    field = page.get_by_label("Your question")
    field.focus()
    field.evaluate(press, "Escape")
    expect(field).to_be_focused()
    page.evaluate("document.dispatchEvent(new Event('keydown'))")  # as when the browser fills in a form


def test_page_that_cannot_be_fetched_is_explained_in_front_of_the_contents(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=NARROW) as page:
        page.locator("main .headed").first.wait_for()
        failure = {"error_code": "retrieval_unavailable", "message": "Qdrant is down."}
        page.route(f"**/pages/{CODE_PAGE.page_id}", lambda route: route.fulfill(status=503, json=failure))
        page.get_by_role("button", name="Contents").click()
        page.locator(".contents a", has_text="Code").click()
        expect(page.locator("main [role=alert]")).to_be_in_viewport()
        expect(page.locator(".contents [aria-current=page]")).to_have_count(0)
        expect(page.locator(".contents")).not_to_be_in_viewport()
        assert page.title() == "The book"


def test_each_server_of_a_host_has_its_own_key(page: Page) -> None:
    names = """async ([address, ...bases]) => {
        const { Api } = await import(address);
        return bases.map((base) => new Api(base, async () => null).name);
    }"""
    hosts = ["http://x.test/", "http://x.test/editions/ros/", "http://x.test/k8s/", "http://x.test/k8s/editions/a@1/"]
    found = page.evaluate(names, [f"../{asset_path('api.js')}", *hosts])
    assert found == ["chapterverse.key", "chapterverse.key", "chapterverse.key /k8s/", "chapterverse.key /k8s/"]


def test_search_without_hits_offers_to_ask_the_book(page: Page, scripted: Scripted) -> None:
    find(page, "zxqv blorp")
    expect(page.locator(".nothing")).to_have_text("Nothing found for “zxqv blorp”.")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#cv-search")).to_be_hidden()
    expect(page.locator(".question")).to_have_text("zxqv blorp")
    expect(page.locator(".confidence")).to_be_visible()
    assert scripted.asked[-1].query == "zxqv blorp"


def test_search_shortcut_is_that_of_the_operating_system(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, "/livez") as page:
        page.add_init_script("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })")
        page.goto(server.url)
        expect(page.locator(".search-button kbd")).to_have_text("⌘ K")
        page.keyboard.press("Meta+k")
        expect(page.locator("#cv-search")).to_be_visible()


# ── a selection ──────────────────────────────────────────────────────────────────────────────────────────────────────

SELECT = """([node, where, from, to]) => {
    const words = node.firstChild;
    node.scrollIntoView({ block: where });
    getSelection().setBaseAndExtent(words, from, words, to ?? words.length);
}"""


@pytest.mark.parametrize("view", [{"width": 1400, "height": 700}, NARROW])
@pytest.mark.parametrize("where", ["start", "center", "end"])
@pytest.mark.parametrize("ends", [None, 300])
def test_button_beside_a_selection_is_visible_and_covers_no_fixed_element(
    browser: Browser, server: Served, view: dict[str, int], where: str, ends: int | None
) -> None:
    touch = view is NARROW
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=view, has_touch=touch) as page:
        page.locator("main .headed").first.wait_for()
        paragraph = page.locator("main .headed + p").nth(2)
        paragraph.evaluate(f"(node, [where, from, to]) => ({SELECT})([node, where, from, to])", [where, 5, ends])
        button = page.get_by_role("button", name="Ask about this", exact=True).last
        expect(button).to_be_in_viewport(ratio=1)
        box, bar, below = button.bounding_box(), page.locator(".bar").bounding_box(), page.locator(".ask-bar")
        assert box and bar and box["y"] >= bar["height"]
        if touch:
            asking = below.bounding_box()
            assert asking and box["y"] + box["height"] <= asking["y"]
        else:
            after = page.locator("main .headed").nth(3).bounding_box()
            assert after
            assert where == "start" or box["y"] + box["height"] <= after["y"] + 1, "the next heading is not covered"


def test_selection_is_shown_without_markup(page: Page) -> None:
    page.goto(page.url.rpartition("/")[0] + f"/{CODE_PAGE.page_id}")
    page.locator("main .code").first.wait_for()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('main'))")
    page.get_by_role("button", name="Ask about this", exact=True).last.click()
    shown = page.locator(".asking .selection")
    expect(shown).to_contain_text("Code")
    assert shown.inner_text().startswith("Code def turn") and "```" not in shown.inner_text()
    box = shown.evaluate("node => [node.clientHeight, parseFloat(getComputedStyle(node).lineHeight)]")
    assert abs(box[0] / box[1] - round(box[0] / box[1])) < 0.1, "no line is cut off"
    ask(page, "refuse")
    expect(page.locator(".turn .widen")).to_be_visible()
    expect(page.locator(".turn .remark")).to_have_count(0)
    page.locator(".turn .selected summary").click()
    expect(page.locator(".turn .selection pre").first).to_contain_text("def turn")


def test_quote_of_a_table_is_shown_as_a_table(browser: Browser, server: Served) -> None:
    quote = "| what | how many |\n|---|---|\n| bars | one |"
    with visiting(browser, server.url) as page:
        turn = """async ([address, quote]) => {
            const { Turn } = await import(address);
            const turn = new Turn({ query: "q", selection: null }, { hrefOf: () => "#" });
            const source = { page_title: "P", section_heading: "S", breadcrumb: "P › S", source_url: "p", quote };
            turn.show({ type: "chunk", content: "From “P › S”:\\n\\n" });
            const highlights = [{ start: 0, end: 4 }];
            turn.show({ type: "chunk", content: `${quote}\\n\\n[1]`, highlights, cites: [1], sources: [source] });
            turn.show({ type: "sources", sources: [source] });
            document.querySelector(".turns").replaceChildren(turn.element);
        }"""
        page.evaluate(turn, [f"./{asset_path('turn.js')}", quote])
        expect(page.locator(".answer .from")).to_have_text("From “P › S”:")
        expect(page.locator(".answer .cited .chip")).to_have_count(1)
        page.get_by_text("Quote", exact=True).click()
        expect(page.locator(".quote th")).to_have_text(["what", "how many"])
        expect(page.locator(".quote td")).to_have_text(["bars", "one"])


def test_evidence_in_a_table_highlights_its_row(browser: Browser, scripted: Scripted, tmp_path: Path) -> None:
    table = written("table.md", "# Table\n\n| a | b |\n|---|---|\n| one | two |\n| three | four |\n")
    start = table.text.index("| three")
    with (
        scripted_server(Shelf([table]), scripted) as server,
        visiting(browser, server.url, f"/read/{table.page_id}?quote={start}-{start + 16}") as page,
    ):
        expect(page.locator("td mark.evidence").first).to_have_text("three")
        colour = "node => getComputedStyle(node).backgroundColor"
        one, three = (page.locator("td", has_text=text).evaluate(colour) for text in ("one", "three"))
        assert one != three
        assert page.locator("td mark.evidence").first.evaluate(colour) == "rgba(0, 0, 0, 0)"
