"""The reader page: title page, outline, code, addresses, ask panel; and the same book without scripts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from chapterverse.api.openapi.examples import EVENTS, SOURCE, SUMMARY
from chapterverse.api.web import asset_path
from chapterverse.book import Page as BookPage
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format
from chapterverse.ingestion.readers import read
from tests.browser.chromium import ask, in_view, shoot, visiting
from tests.browser.shelf import Shelf, odd_page, scripted_server
from tests.browser.test_access import faults
from tests.browser.test_rendering import FIRST, NESTED
from tests.scripted import Scripted, wait_until
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = "\n\n".join(f"## Part {number}\n\n{'Words of this part. ' * 60}" for number in range(1, 7))
CODE = """# Code

```python title="loop.py"
def turn(angle: float) -> str:  # <script>alert(1)</script>
    return f"turned 🤖 {angle}"
```

```
no language
```

```nothing-known
x = 1
```
"""
NOTES = """= Notes

A word,footnote:[Said *here*.] 2^80^, the 1^st^ and stem:[n]; 🤖 stem:[a + b].

.Mind: the `gap`
WARNING: Hot.

.The *sizes*
|===
|a
|===

.The arm
image::arm.png[An arm]
"""
NARROW = {"width": 360, "height": 740}


def written(name: str, text: str, category: str = "", form: Format = "markdown") -> BookPage:
    chapters = (category,) if category else ()
    document = Document(f"the-book/{name}", name, "the-book", form, text.encode(), chapters=chapters)
    return compose(document, read(document)[0])


PAGES = [
    written("parts/long.md", f"# Long\n\nA book about *parts*.\n\n{LONG}", "The parts"),
    written("parts/code.md", CODE, "The parts"),
    written("everything.md", FIRST),
    written("nested.md", NESTED),
    written("notes.adoc", NOTES, form="asciidoc"),
    odd_page(),
]
LONG_PAGE, CODE_PAGE = PAGES[:2]


@pytest.fixture(scope="module")
def server(scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(PAGES), scripted, api_rate_limit=100_000) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}") as opened:
        opened.locator("main .headed").first.wait_for()
        yield opened


def stream(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def answer_with(page: Page, *events: dict[str, Any]) -> None:
    """Answers the next questions with these events."""

    def answer(route: Route) -> None:
        route.fulfill(body=stream(*events), content_type="text/event-stream")

    page.unroute("**/chat/stream")
    page.route("**/chat/stream", answer)


# ── without a script ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [1400, 360])
def test_book_can_be_read_without_scripts(browser: Browser, server: Served, width: int) -> None:
    view = {"width": width, "height": 740}
    with visiting(browser, server.url, java_script_enabled=False, viewport=view) as page:
        expect(page.locator("main h1")).to_have_text("The book")
        page.get_by_role("link", name="Start reading").click()
        expect(page.locator("main h1")).to_have_text("Long")
        page.locator(".turning a[rel=next]").click()
        expect(page.locator("main pre").first).to_contain_text("def turn")
        page.locator(".contents a", has_text="Nested").click()
        expect(page.locator("main h1")).to_have_text("Nested")
        for name in ("#cv-ask", "#cv-ask-button", "#cv-search-button", "#cv-theme", ".ask-bar"):
            expect(page.locator(name)).to_be_hidden()
        shoot(page, f"40-no-script-{width}")


SHAPE = """root => {
    const copy = root.cloneNode(true);
    copy.querySelectorAll(".copy, .anchor, .ask-section").forEach((node) => node.remove());
    copy.querySelectorAll(".headed, .token").forEach((node) => node.replaceWith(...node.childNodes));
    copy.querySelectorAll("[href], [src]").forEach((node) => {
        const name = node.hasAttribute("href") ? "href" : "src";
        node.setAttribute(name, new URL(node.getAttribute(name), root.baseURI).href);
    });
    copy.normalize();
    const attributes = (node) => [...node.attributes].map(({ name, value }) => `${name}=${value}`).sort();
    const shape = (node) =>
        node.nodeType === 3 ? node.data : [node.localName, attributes(node), [...node.childNodes].map(shape)];
    return JSON.stringify([...copy.childNodes].map(shape), null, 1);
}"""


@pytest.mark.parametrize("number", range(len(PAGES)))
def test_page_of_server_and_script_are_equal(browser: Browser, server: Served, number: int) -> None:
    path = f"/read/{PAGES[number].page_id}"
    with visiting(browser, server.url, path, java_script_enabled=False) as page:
        sent = page.locator("main").evaluate(SHAPE)
    with visiting(browser, server.url, path) as page:
        page.wait_for_load_state("networkidle")
        expect(page.locator("main .turning")).to_have_count(1)
        assert page.locator("main").evaluate(SHAPE) == sent


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_navigating_from_the_title_page_and_back(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url) as page:
        expect(page.locator("main h1")).to_have_text("The book")
        expect(page.locator("main .lede")).to_have_text("A book about parts.")
        assert page.locator(".chapter h2").all_text_contents() == ["The parts", "Pages", "Odd"]
        assert page.locator(".contents summary").all_text_contents() == ["The parts", "Pages", "Odd"]
        page.locator(".chapter a", has_text="Code").click()
        expect(page.locator("main h1")).to_have_text("Code")
        expect(page.locator(".module")).to_have_text("The parts")
        assert page.title() == "Code · The book"
        page.go_back()
        expect(page.locator("main .chapter").first).to_be_visible()
        assert page.title() == "The book"
        page.go_forward()
        expect(page.locator("main h1")).to_have_text("Code")
        page.locator(".contents a", has_text="Nested").click()  # a link that the server sent with the title page
        expect(page.locator("main h1")).to_have_text("Nested")
        page.locator(".brand").click()
        expect(page.locator("main .chapter").first).to_be_visible()
        assert page.url == f"{server.url}/"


def test_outline_highlights_the_visible_section(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport={"width": 1700, "height": 700}) as page:
        outline = page.get_by_role("navigation", name="On this page")
        expect(outline.locator("a")).to_have_text([f"Part {number}" for number in range(1, 7)])
        page.set_viewport_size({"width": 1700, "height": 4000})
        page.evaluate("dispatchEvent(new Event('scroll'))")
        expect(outline.locator("[aria-current=location]")).to_have_text("Part 1")  # also where a screen shows several
        page.set_viewport_size({"width": 1700, "height": 700})
        outline.get_by_role("link", name="Part 4").click()
        expect(outline.locator("[aria-current=location]")).to_have_text("Part 4")
        assert in_view(page, "#book-part-4")
        assert page.url.endswith(f"/read/{LONG_PAGE.page_id}#book-part-4")
        page.mouse.move(700, 400)
        page.mouse.wheel(0, -10_000)
        expect(outline.locator("[aria-current=location]")).not_to_have_text("Part 4")
        page.mouse.wheel(0, 100_000)
        expect(outline.locator("[aria-current=location]")).to_have_text("Part 6")
        shoot(page, "41-outline")


@pytest.mark.parametrize(("width", "closed"), [(1400, False), (1000, True)])
def test_contents_list_the_sections_if_the_outline_does_not_fit(
    browser: Browser, server: Served, width: int, closed: bool
) -> None:
    view = {"width": width, "height": 700}
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=view) as page:
        expect(page.locator("#cv-outline")).to_be_hidden()
        if closed:
            page.get_by_role("button", name="Contents").click()
        expect(page.locator(".contents .sections a").first).to_be_visible()


def test_contents_are_scrolled_to_the_open_page_and_its_sections(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}", viewport={"width": 1400, "height": 260}) as page:
        contents = page.locator(".contents")
        contents.locator("a", has_text=LONG_PAGE.title).first.click()
        expect(contents.locator(".sections a").last).to_be_in_viewport()
        expect(contents.locator("[aria-current=page]")).to_be_in_viewport()


def test_link_of_a_heading_is_copied_and_focuses_it(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#book-part-2").hover()
    page.get_by_role("link", name="Link to the section Part 2").click()
    expect(page.locator("#book-part-2")).to_be_focused()
    assert page.url.endswith("#book-part-2")
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_old_hash_addresses_still_work(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/#/{LONG_PAGE.page_id}?section=part-3") as page:
        expect(page.locator("#book-part-3")).to_be_focused()
        assert page.url == f"{server.url}/read/{LONG_PAGE.page_id}#book-part-3"
    start = LONG_PAGE.text.index("Words of")
    with visiting(browser, server.url, f"/#/{LONG_PAGE.page_id}?quote={start}-{start + 5}") as page:
        expect(page.locator("mark.evidence")).to_have_text("Words")


def test_going_back_restores_the_scroll_position(page: Page) -> None:
    page.evaluate("scrollTo(0, 900)")
    page.locator(".contents a", has_text="Code").click()
    expect(page.locator("main h1")).to_have_text("Code")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator("main h1")).to_have_text("Long")
    assert page.evaluate("scrollY") == 900
    page.reload()
    expect(page.locator("main .headed").first).to_be_attached()
    assert page.evaluate("scrollY") == 900


def test_code_has_colours_a_language_and_a_copy_button(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}") as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        block = page.locator(".code").first
        expect(block.locator(".token.keyword").first).to_have_text("def")
        expect(block.locator(".token.comment")).to_have_text("# <script>alert(1)</script>")
        expect(block.locator(".language")).to_have_text("python")
        code = CODE.partition('loop.py"\n')[2].partition("\n```")[0]
        assert block.locator("code").text_content() == code
        block.get_by_role("button", name="Copy the code").click()
        expect(block.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == code
        expect(page.locator(".code").nth(1).locator(".token")).to_have_count(0)
        assert page.locator(".code").nth(2).locator("code").text_content() == "x = 1"
        assert page.locator("main script").count() == 0
        shoot(page, "42-code")


def test_copy_works_without_the_clipboard_api(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}") as page:
        page.context.grant_permissions(["clipboard-read"])
        page.evaluate("navigator.clipboard.writeText = undefined")
        block = page.locator(".code").last
        block.get_by_role("button", name="Copy the code").click()
        expect(block.get_by_role("button", name="Copied")).to_be_focused()
        assert page.evaluate("navigator.clipboard.readText()") == "x = 1"


def test_evidence_is_marked_across_tokens(browser: Browser, server: Served) -> None:
    quote = 'str:  # <script>alert(1)</script>\n    return f"turned 🤖'
    start = CODE_PAGE.text.index(quote)
    with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}?quote={start}-{start + len(quote)}") as page:
        expect(page.locator(".token mark.evidence").first).to_be_visible()
        marked = "".join(page.locator("mark.evidence").all_text_contents())
        assert "".join(marked.split()) == "".join(quote.split())


def test_code_is_shown_if_the_highlighter_cannot_be_loaded(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}") as page:
        page.route("**/prism.js", lambda route: route.abort())
        page.locator(".contents a", has_text="Code").click()
        expect(page.locator(".code").first).to_contain_text("def turn")
        expect(page.locator(".token")).to_have_count(0)


def test_code_of_an_answer_has_colours_on_a_page_without_code(page: Page) -> None:
    parts = ["Turn it [1]:\n\n", "```python\ndef turn():  # by [1]\n    return 1\n```\n\n", "It turns.\n"]
    events = [
        {"type": "chunk", "content": part, "cites": [] if at else [1], "sources": [] if at else [SOURCE]}
        for at, part in enumerate(parts)
    ]
    answer_with(page, EVENTS[0], *events, {"type": "sources", "sources": [SOURCE]}, {"type": "done", **SUMMARY})
    ask(page, "How?")
    expect(page.locator(".answer .token.keyword").first).to_have_text("def")
    assert page.locator(".answer pre code").text_content() == "def turn():  # by [1]\n    return 1"
    expect(page.locator(".answer > div")).to_have_count(1)
    expect(page.locator(".answer p")).to_have_text(["Turn it:\u202f1", "It turns."])


def test_highlighter_is_not_loaded_for_a_page_without_code(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    names = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    assert not [name for name in names if "prism" in name]


def test_fonts_of_the_package_are_used(page: Page) -> None:
    page.evaluate("document.fonts.ready.then(() => null)")
    loaded = page.evaluate(
        "[...document.fonts].filter(({ status }) => status === 'loaded').map(({ family }) => family)"
    )
    assert {name.strip('"') for name in loaded} >= {"Inter", "Source Serif 4"}
    assert (
        page.locator("main p")
        .nth(1)
        .evaluate("node => getComputedStyle(node).fontFamily")
        .startswith('"Source Serif 4"')
    )
    assert page.locator(".hint").evaluate("node => getComputedStyle(node).fontFamily").startswith("Inter")


def test_title_logo_and_accent_are_shown_with_enough_contrast(
    browser: Browser, scripted: Scripted, tmp_path: Path
) -> None:
    logo = tmp_path / "logo.svg"
    logo.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24"><circle cx="12" cy="12" r="11"/></svg>'
    )
    colours = set()
    for accent, scheme in (("#0a7f5b", "light"), ("#ffe100", "light"), ("#0a7f5b", "dark"), ("#101030", "dark")):
        settings = {"book_title": "A <b>book</b>", "book_logo": logo, "accent": accent}
        with (
            scripted_server(Shelf(PAGES), scripted, **settings) as server,
            visiting(browser, server.url, color_scheme=scheme) as page,
        ):
            expect(page.locator(".brand")).to_have_text("A <b>book</b>")
            assert page.locator(".brand img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 24
            button = page.get_by_role("link", name="Start reading")
            colours.add(button.evaluate("node => getComputedStyle(node).backgroundColor"))
            ask(page, "answer")
            expect(page.locator(".confidence")).to_be_visible()
            assert faults(page) == [], "the contrast is too low"
            shoot(page, f"43-accent-{accent[1:]}-{scheme}")
    assert len(colours) == 4


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_clicking_a_suggestion_starts_a_conversation(browser: Browser, server: Served, scripted: Scripted) -> None:
    body = {"suggestions": [{"question": "What <i>is</i> it?", "page": "p"}, {"question": "How?", "page": "p"}]}
    with visiting(browser, server.url, "/livez") as page:
        page.route("**/suggestions*", lambda route: route.fulfill(json=body))
        page.goto(server.url)
        offered = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(offered).to_have_text(["What <i>is</i> it?", "How?"])
        shoot(page, "44-suggestions")
        offered.first.click()
        expect(page.locator(".question")).to_have_text("What <i>is</i> it?")
        expect(page.locator(".confidence")).to_be_visible()
        assert scripted.asked[-1].query == "What <i>is</i> it?"


def offering(page: Page, questions: list[str], **headers: str) -> list[dict[str, list[str]]]:
    """Makes the server suggest these questions; returns the list of requests, which grows."""
    asked: list[dict[str, list[str]]] = []

    def suggest(route: Route) -> None:
        asked.append(parse_qs(urlsplit(route.request.url).query))
        near = SOURCE["source_url"].partition("#")[0]
        offered = [{"question": question, "page": near} for question in questions[: int(asked[-1]["limit"][0])]]
        route.fulfill(json={"suggestions": offered}, headers=headers)

    page.route("**/suggestions*", suggest)
    return asked


def test_questions_to_begin_with_are_near_the_open_page(browser: Browser, server: Served) -> None:
    def suggest(route: Route) -> None:
        near = parse_qs(urlsplit(route.request.url).query).get("page", ["the book"])
        route.fulfill(json={"suggestions": [{"question": f"What is in {near}?", "page": ""}]})

    with visiting(browser, server.url, "/livez") as page:
        page.route("**/suggestions*", suggest)
        page.goto(server.url)
        offered = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(offered).to_have_text("What is in ['the book']?")
        page.locator(".contents a", has_text=LONG_PAGE.title).first.click()
        expect(offered).to_have_text(f"What is in ['{LONG_PAGE.url}']?")
        page.reload()
        expect(offered).to_have_text(f"What is in ['{LONG_PAGE.url}']?")
        page.go_back()
        expect(offered).to_have_text("What is in ['the book']?")


def test_suggestions_after_an_answer_leave_out_asked_questions(
    browser: Browser, server: Served, scripted: Scripted
) -> None:
    with visiting(browser, server.url, "/livez") as page:
        wanted = offering(page, ["Answer", "How?", "Why?", "What <i>is</i> it?", "When?", "Where?"])
        page.goto(server.url)
        ask(page, "answer")
        following = page.locator(".turn:last-child .next")
        offered = following.get_by_role("button")
        expect(offered).to_have_text(["How?", "Why?", "What <i>is</i> it?"])
        expect(following.get_by_role("heading", name="Ask next")).to_be_visible()
        assert wanted[-1]["page"] == [SOURCE["source_url"].partition("#")[0]], (
            "the request names the pages of the answer"
        )
        assert faults(page) == []
        shoot(page, "45-ask-next")
        page.get_by_label("Your question").fill("half a question")
        offered.nth(1).click()
        expect(page.locator(".turn:last-child .question")).to_have_text("Why?")
        expect(offered).to_have_text(["How?", "What <i>is</i> it?", "When?"])
        expect(page.locator(".next")).to_have_count(1)
        expect(page.get_by_label("Your question")).to_have_value("half a question")
        page.reload()
        expect(offered).to_have_text(["How?", "What <i>is</i> it?", "When?"])
        ask(page, "fail agent_unavailable")
        expect(page.locator(".failure")).to_be_visible()
        expect(page.locator(".next")).to_have_count(0)
        page.get_by_role("button", name="New conversation").click()
        begin = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(begin).to_have_text(["Answer", "How?", "Why?", "What <i>is</i> it?"])


@pytest.mark.parametrize(
    ("page_url", "offered"),
    [
        ("https://docs.example.com/guide/here/", True),
        ("https://docs.example.com/guide/beside/", True),
        ("https://docs.example.com/other/", False),
        ("https://docs.example.com/other/part/", False),
    ],
)
@pytest.mark.parametrize("status", ["answered", "refused"])
def test_suggestions_after_an_answer_are_from_nearby_pages_only(
    page: Page, page_url: str, offered: bool, status: str
) -> None:
    near = {"page_title": "Here", "section_heading": "", "source_url": "https://docs.example.com/guide/here/#a"}
    source = SOURCE | {"source_url": near["source_url"]}
    events = [EVENTS[1] | {"sources": [source]}, {"type": "sources", "sources": [source]}]
    if status == "refused":
        events = [{"type": "chunk", "content": "No."}, {"type": "sources", "sources": []}]
    nearest = [near | {"score": 0.7}] if status == "refused" else []
    answer_with(page, EVENTS[0], *events, {"type": "done", **SUMMARY, "status": status, "nearest": nearest})
    suggestion = {"question": "How?", "page": page_url}
    page.route("**/suggestions*", lambda route: route.fulfill(json={"suggestions": [suggestion]}))
    with page.expect_response("**/suggestions*"):
        ask(page, "anything")
    page.wait_for_load_state("networkidle")
    expect(page.locator(".next button")).to_have_text(["How?"] if offered else [])


def test_no_suggestions_after_a_refusal_without_nearest_sections(page: Page) -> None:
    wanted = offering(page, ["How?"])
    ask(page, "refuse")
    answer_with(page, EVENTS[0], {"type": "sources", "sources": []}, {"type": "done", **SUMMARY, "status": "refused"})
    ask(page, "anything")
    expect(page.locator(".turn .tools")).to_have_count(2)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".next")).to_have_count(0)
    assert len(wanted) <= 1


def test_no_suggestions_after_an_answer_from_a_selection(browser: Browser, server: Served, scripted: Scripted) -> None:
    """A suggestion is about the book, and the question goes to the book."""
    with visiting(browser, server.url, "/livez") as page:
        wanted = offering(page, ["How?"])
        page.goto(f"{server.url}/read/{LONG_PAGE.page_id}")
        page.get_by_role("button", name="Ask about the section Part 2").click()
        offered = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(offered).to_have_text(["How?"])
        before = len(wanted)  # for the empty panel, once or, if the click came first, twice
        answer_with(page, *(event for event in EVENTS if event["type"] != "retrieved"))
        ask(page, "What does it say?")
        expect(page.locator(".confidence")).to_be_visible()
        page.wait_for_load_state("networkidle")
        expect(page.locator(".next")).to_have_count(0)
        assert len(wanted) == before
        page.unroute("**/chat/stream")
        page.get_by_role("button", name="New conversation").click()
        page.get_by_role("button", name="Ask about the section Part 2").click()
        offered.first.click()
        expect(page.locator(".turn .tools")).to_be_visible()
        assert (scripted.asked[-1].query, scripted.asked[-1].mode) == ("How?", "general")


@pytest.mark.parametrize("body", [{"suggestions": []}, None])
def test_empty_or_failed_suggestions_are_hidden(browser: Browser, server: Served, body: dict[str, Any] | None) -> None:
    def fulfil(route: Route) -> None:
        route.fulfill(json=body) if body else route.fulfill(status=404, json={"error_code": "not_found"})

    with visiting(browser, server.url, "/livez") as page:
        page.route("**/suggestions*", fulfil)
        page.goto(server.url)
        page.wait_for_load_state("networkidle")
        expect(page.locator(".hint")).to_be_visible()
        expect(page.locator(".suggestions")).to_be_hidden()


def test_composer_grows_with_the_text_and_contains_its_button(page: Page) -> None:
    field, composer = page.get_by_label("Your question"), page.locator(".composer")
    low = composer.bounding_box()
    field.fill("One\nTwo\nThree\nFour")
    high = composer.bounding_box()
    button = page.get_by_role("button", name="Ask", exact=True).last.bounding_box()
    assert low and high and button
    assert low["height"] < 60 < high["height"]
    assert high["y"] <= button["y"] and button["y"] + button["height"] <= high["y"] + high["height"]
    assert min(button["width"], button["height"]) >= 24
    field.fill("x\n" * 100)
    tall = composer.bounding_box()
    assert tall and tall["height"] < 220
    ask(page, "answer")
    expect(page.locator(".confidence")).to_be_visible()
    again = composer.bounding_box()
    assert again and again["height"] == low["height"]


def test_source_cards_show_their_quote_on_click(page: Page) -> None:
    ask(page, "answer")
    card = page.locator(".sources .card")
    expect(card).to_have_count(1)
    expect(card.locator("a")).to_have_text(SOURCE["page_title"])
    expect(card.locator(".quote")).to_be_hidden()  # the answer shows the text already
    card.get_by_text("Quote").click()
    expect(card.locator(".quote")).to_have_text(SOURCE["quote"])


def test_confidence_button_shows_an_explanation(page: Page) -> None:
    ask(page, "answer")
    pill = page.get_by_role("button", name="Confidence: high")
    expect(pill).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".explanation")).to_be_hidden()
    pill.click()
    expect(pill).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".explanation")).to_contain_text("0.93 on a scale from 0 to 1")


def test_aborted_answer_keeps_its_citations(page: Page) -> None:
    source = SOURCE | {"page_id": LONG_PAGE.page_id, "quote_start": 8, "quote_end": 20}
    chunk = EVENTS[1] | {"content": "It is so [1]. ", "sources": [source]}
    for events, expected in (
        ([EVENTS[0], chunk], "The rest did not arrive. The answer broke off"),
        (
            [EVENTS[0], chunk, {"type": "error", "error_code": "agent_unavailable", "message": "Down."}],
            "The rest did not arrive. Down.",
        ),
        (
            [
                EVENTS[0],
                chunk,
                {"type": "sources", "sources": [source]},
                {"type": "done", **SUMMARY, "status": "truncated"},
            ],
            "The rest did not arrive.",
        ),
    ):
        answer_with(page, *events)
        ask(page, "anything")
        turn = page.locator(".turn").last
        expect(turn.locator(".failure, .caution")).to_contain_text(expected)
        expect(turn.locator(".sources .card")).to_have_count(1)
        turn.locator(".answer .chip[href]").click()
        expect(page.locator("mark.evidence").first).to_be_focused()
    shoot(page, "45-cut")


def test_a_stopped_answer_keeps_its_citations(page: Page, server: Served) -> None:
    source = SOURCE | {"page_id": LONG_PAGE.page_id, "quote_start": 8, "quote_end": 20}
    chunk = EVENTS[1] | {"content": "It is so [1]. ", "sources": [source]}
    page.evaluate(
        """([body]) => {
            // Simulates a server that sends the beginning of an answer and then nothing.
            const real = fetch;
            globalThis.fetch = (address, options) => {
                if (!String(address).endsWith("/chat/stream")) return real(address, options);
                return Promise.resolve(new Response(new ReadableStream({
                    start(controller) {
                        controller.enqueue(new TextEncoder().encode(body));
                        const stop = () => controller.error(new DOMException("", "AbortError"));
                        options.signal.addEventListener("abort", stop);
                    },
                })));
            };
        }""",
        [stream(EVENTS[0], chunk)],
    )
    ask(page, "anything")
    expect(page.locator(".answer .chip[href]")).to_have_count(1)  # before the end of the answer
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".remark")).to_contain_text("Stopped. What is shown was verified. The rest did not arrive.")
    expect(page.locator(".sources .card")).to_have_count(1)
    page.locator(".answer .chip").click()
    expect(page.locator("mark.evidence").first).to_be_focused()
    shoot(page, "46-stopped")


def test_refusal_shows_the_nearest_sections_first(page: Page) -> None:
    nearest = [
        {"page_title": "Long", "section_heading": "Part 2", "source_url": f"{LONG_PAGE.url}#part-2", "score": 0.2},
        {"page_title": "Long", "section_heading": "Long", "source_url": LONG_PAGE.url, "score": 0.1},
    ]
    done = {"type": "done", **SUMMARY, "status": "refused", "advice": "Searched for “x”.\n- Long", "nearest": nearest}
    answer_with(
        page,
        EVENTS[0],
        {"type": "chunk", "content": "The book does not say."},
        {"type": "sources", "sources": []},
        done,
    )
    ask(page, "Who?")
    expect(page.locator(".nearest .place")).to_have_text(["Part 2Long", "Long"])  # no name twice
    link = page.locator(".nearest a").first
    above, below = link.bounding_box(), page.locator(".answer").bounding_box()
    assert above and below and above["y"] < below["y"]
    shoot(page, "47-refusal")
    link.click()
    expect(page.locator("#book-part-2")).to_be_focused()


def test_markdown_of_an_answer_is_rendered(page: Page) -> None:
    chunks = ["Two **ways** [1]:\n\n", "- the `first` [1]\n", "- the second\n\n", "```bash\nls <b>\n```\n"]
    events = [
        {
            "type": "chunk",
            "content": chunk,
            "cites": [1] if "[1]" in chunk else [],
            "sources": [SOURCE] if not number else [],
        }
        for number, chunk in enumerate(chunks)
    ]
    answer_with(page, EVENTS[0], *events, {"type": "sources", "sources": [SOURCE]}, {"type": "done", **SUMMARY})
    ask(page, "How?")
    answer = page.locator(".answer")
    expect(answer.locator("strong")).to_have_text("ways")
    expect(answer.locator("li")).to_have_text(["the first 1", "the second"])
    expect(answer.locator("pre code")).to_have_text("ls <b>")
    expect(answer.locator(".chip")).to_have_count(2)


def test_stars_and_brackets_of_the_book_are_shown_as_they_are(page: Page) -> None:
    content = "Powers are 2**3 and 4**5, see Knuth [1] and [2] [1]."
    said = {"type": "chunk", "content": "**Both [2] are exact [1].**", "cites": [1], "sources": [SOURCE]}
    quoted = said | {"content": f"\n\n{content}", "highlights": [{"start": 2, "end": len(content) + 2}], "sources": []}
    sources = {"type": "sources", "sources": [SOURCE]}
    answer_with(page, EVENTS[0], said, quoted, sources, {"type": "done", **SUMMARY})
    ask(page, "How?")
    expect(page.locator(".answer p")).to_have_text(
        ["Both [2] are exact.\u202f1", "Powers are 2**3 and 4**5, see Knuth [1] and [2].\u202f1"]
    )
    expect(page.locator(".answer strong .chip")).to_have_count(1)
    expect(page.locator(".heard")).to_have_text("Powers are 2**3 and 4**5, see Knuth [1] and [2] .")


def test_answer_can_be_copied_and_question_shared(page: Page, server: Served, scripted: Scripted) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "answer")
    page.get_by_role("button", name="Copy the answer").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("ROS 2 is a set of libraries [1].") and f"\n[1] {SOURCE['page_title']}" in copied
    page.get_by_role("button", name="Share the question").click()
    expect(page.get_by_role("button", name="Link copied")).to_be_visible()
    shared = page.evaluate("navigator.clipboard.readText()")
    assert shared == f"{server.url}/?ask=answer"
    before = len(scripted.asked)
    page.goto(shared)
    expect(page.locator(".question")).to_have_text("answer")
    expect(page.locator(".confidence")).to_be_visible()
    assert len(scripted.asked) == before + 1
    assert page.url == f"{server.url}/", "a reload must not ask again"


def test_past_conversations_can_be_reopened_and_deleted(browser: Browser, server: Served) -> None:
    ids = iter(f"00000000-0000-4000-8000-00000000000{number}" for number in range(9))

    def answer(route: Route) -> None:
        asked: Any = route.request.post_data_json
        done = {"type": "done", **SUMMARY, "session_id": asked["session_id"] or next(ids)}
        chunk = EVENTS[1] | {"sources": [SOURCE | {"page_id": LONG_PAGE.page_id}]}
        route.fulfill(
            body=stream(EVENTS[0], chunk, {"type": "sources", "sources": chunk["sources"]}, done),
            content_type="text/event-stream",
        )

    with visiting(browser, server.url) as page:
        page.route("**/chat/stream", answer)
        page.route("**/sessions/*", lambda route: route.fulfill(status=204))
        expect(page.get_by_role("button", name="Past conversations")).to_be_hidden()
        for question in ("First of all?", "And then?"):
            ask(page, question)
            expect(page.locator(".confidence")).to_be_visible()
            page.get_by_role("button", name="New conversation").click()
        page.reload()
        page.get_by_role("button", name="Past conversations").click()
        listed = page.locator(".past .reopen")
        expect(listed.locator("strong")).to_have_text(["And then?", "First of all?"])
        shoot(page, "48-past")
        listed.last.click()
        expect(page.locator(".question")).to_have_text("First of all?")
        page.locator(".answer .chip[href]").first.click()
        expect(page.locator("main h1")).to_have_text("Long")
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete conversation").click()
        expect(page.locator(".status")).to_have_text("The conversation is deleted.")
        page.get_by_role("button", name="Past conversations").click()
        expect(listed.locator("strong")).to_have_text(["And then?"])


def test_closed_ask_panel_stays_closed_after_a_reload(page: Page) -> None:
    button = page.locator("#cv-ask-button")
    page.get_by_role("button", name="Close the ask panel").click()
    expect(page.locator("#cv-ask")).to_be_hidden()
    expect(button).to_be_focused()
    expect(page.locator("#cv-outline")).to_be_visible()
    page.reload()
    expect(page.locator("main .headed").first).to_be_visible()
    expect(page.locator("#cv-ask")).to_be_hidden()
    button.click()
    expect(page.get_by_label("Your question")).to_be_focused()


def test_drawers_on_a_narrow_screen_trap_the_focus(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=NARROW, has_touch=True) as page:
        page.locator("main .headed").first.wait_for()
        page.get_by_role("button", name="Contents").click()
        expect(page.locator(".contents")).to_be_visible()
        page.touchscreen.tap(350, 500)  # outside of the drawer
        expect(page.locator(".contents")).to_be_hidden()
        page.get_by_role("button", name="Ask the book", exact=True).click()
        for _ in range(8):
            page.keyboard.press("Tab")
            assert page.evaluate(
                "document.activeElement === document.body || !!document.activeElement.closest('#cv-ask')"
            )
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Ask the book", exact=True)).to_be_focused()
        page.get_by_role("button", name="Search the book").click()
        expect(page.locator("#cv-search-box")).to_be_focused()


def test_reading_continues_while_an_answer_is_streamed(page: Page) -> None:
    ask(page, "pause 1")
    expect(page.locator(".waiting .dots")).to_be_visible()
    shoot(page, "49-loading")
    page.locator(".contents a", has_text="Code").click()
    expect(page.locator("main h1")).to_have_text("Code")
    expect(page.locator(".confidence")).to_be_visible()


def test_click_targets_are_at_least_24_pixels(browser: Browser, server: Served) -> None:
    """Except for links inside sentences."""
    for view in ({"width": 1400, "height": 800}, NARROW):
        with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}", viewport=view) as page:
            page.locator(".code .copy").first.wait_for()
            if view is NARROW:
                page.locator("#cv-ask-bar").click()
            ask(page, "answer")
            page.locator(".confidence").wait_for()
            small = page.evaluate(
                """[...document.querySelectorAll("button, a, summary")].filter((node) => {
                    const { width, height } = node.getBoundingClientRect();
                    return node.checkVisibility() && width && Math.min(width, height) < 24 && !node.closest("p, .skip");
                }).map((node) => node.outerHTML)"""
            )
            assert small == []


def test_asset_addresses_contain_the_version(page: Page) -> None:
    assert re.search(re.escape(asset_path("reader.css")), page.content())


def test_page_can_be_used_after_the_window_becomes_wide(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=NARROW) as page:
        page.get_by_role("button", name="Ask the book", exact=True).click()
        expect(page.locator("main")).to_have_attribute("inert", "")
        page.set_viewport_size({"width": 1400, "height": 740})
        expect(page.locator("[inert]")).to_have_count(0)
        page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
        expect(page.locator("main")).to_have_attribute("inert", "")


def test_section_of_the_open_page_closes_the_drawer(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=NARROW) as page:
        page.locator("main .headed").first.wait_for()
        page.get_by_role("button", name="Contents").click()
        page.locator(".contents .sections a", has_text="Part 3").click()
        expect(page.locator(".contents")).to_be_hidden()
        assert in_view(page, "#book-part-3")


def test_open_page_can_be_reached_after_another_one_failed(page: Page) -> None:
    page.route("**/pages/*", lambda route: route.abort())
    page.locator(".contents a", has_text="Code").click()
    expect(page.locator("main h1")).to_have_text("The page cannot be shown")
    page.locator(".contents a", has_text="Long").first.click()
    expect(page.locator("main h1")).to_have_text("Long")


def test_copy_button_pressed_twice_gets_its_label_back(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, f"/read/{CODE_PAGE.page_id}") as page:
        page.clock.install()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        copy = page.locator(".code .copy").first
        drawn = copy.inner_html()
        for _ in range(2):
            copy.click()
            expect(copy).to_have_attribute("aria-label", "Copied")
            page.clock.run_for(500)
        page.clock.run_for(5000)
        expect(copy).to_have_attribute("aria-label", "Copy the code")
        assert copy.inner_html() == drawn


def test_retry_waits_for_the_running_answer(page: Page) -> None:
    """Pressed while another answer is running, it removes nothing."""
    page.route("**/chat/stream", lambda route: route.abort(), times=1)
    ask(page, "first")
    expect(page.locator(".turn .failure")).to_be_visible()
    ask(page, "pause 2")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".turn .confidence")).to_be_visible()
    expect(page.locator(".turn .question")).to_have_text(["first", "pause 2"])
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".turn .confidence")).to_have_count(2)
    expect(page.locator(".turn .question")).to_have_text(["pause 2", "first"])


def test_searching_the_whole_book_waits_for_the_running_answer(page: Page) -> None:
    """Pressed while another answer is running, it does not drop the selection."""
    page.locator(".ask-section").first.click()
    ask(page, "refuse")
    widen = page.get_by_role("button", name="Search the whole book")
    expect(widen).to_be_visible()
    ask(page, "pause 2")
    widen.click()
    expect(page.locator(".asking .selected")).to_be_visible()
    expect(page.locator(".turn .confidence")).to_be_visible()
    expect(page.locator(".turn .question")).to_have_text(["refuse", "pause 2"])
    widen.click()
    expect(page.locator(".turn .question")).to_have_text(["refuse", "pause 2", "refuse"])
    expect(page.locator(".asking .selected")).to_be_hidden()


def test_going_forward_restores_the_scroll_position(page: Page) -> None:
    for name in ("Code", "Long"):
        page.locator(".contents a", has_text=name).first.click()
        expect(page.locator("main h1")).to_have_text(name)
    page.evaluate("scrollTo(0, 700)")
    page.wait_for_timeout(300)
    page.go_back()
    expect(page.locator("main h1")).to_have_text("Code")
    page.go_forward()
    expect(page.locator("main h1")).to_have_text("Long")
    assert page.evaluate("scrollY") == 700


def test_long_word_in_a_heading_does_not_widen_a_narrow_page(browser: Browser, scripted: Scripted) -> None:
    wide = written(
        "wide.md", "# Commands\n\nWords.\n\n## MAV_CMD_CAMERA_TRACK_RECTANGLE_AND_FOLLOW_IT to track\n\nWords."
    )
    with (
        scripted_server(Shelf([wide]), scripted) as server,
        visiting(browser, server.url, f"/read/{wide.page_id}", viewport=NARROW) as page,
    ):
        page.locator("main .headed").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]


def test_chapters_of_one_module_are_listed_apart(browser: Browser, scripted: Scripted) -> None:
    """A navigation may sort the pages of one folder into chapters."""
    pages = [
        written(f"{name}.md", f"# {name}\n\nWords.", chapter) for name, chapter in (("One", "First"), ("Two", "Second"))
    ]
    with scripted_server(Shelf(pages), scripted) as server:
        with visiting(browser, server.url) as page:
            expect(page.locator(".chapter h2")).to_have_text(["First", "Second"])
            expect(page.locator(".contents summary")).to_have_text(["First", "Second"])
        with visiting(browser, server.url, f"/read/{pages[1].page_id}") as page:
            page.locator(".brand").click()
            expect(page.locator(".chapter h2")).to_have_text(["First", "Second"])


def test_page_stays_if_the_list_of_pages_cannot_be_fetched(browser: Browser, scripted: Scripted) -> None:
    pages = [written(f"chapter/{number}.md", f"# Page {number}\n\nWords.") for number in range(101)]
    with scripted_server(Shelf(pages), scripted) as server, visiting(browser, server.url, "/livez") as page:
        page.route("**/contents/*", lambda route: route.fulfill(status=503, json={}))
        for path, title in ((f"/read/{pages[3].page_id}", "Page 3"), ("/", "The book")):
            with page.expect_response("**/contents/*"):
                page.goto(server.url + path)
            page.wait_for_timeout(300)
            expect(page.locator("main h1")).to_have_text(title)


def test_question_in_the_address_is_asked_if_the_list_of_pages_cannot_be_fetched(
    browser: Browser, scripted: Scripted
) -> None:
    pages = [written(f"chapter/{number}.md", f"# Page {number}\n\nWords.") for number in range(101)]
    with scripted_server(Shelf(pages), scripted) as server, visiting(browser, server.url, "/livez") as page:
        page.route("**/contents/*", lambda route: route.fulfill(status=503, json={}))
        page.goto(f"{server.url}/?ask=answer")
        expect(page.locator(".turn .confidence")).to_be_visible()
        expect(page.locator("main .cover h1")).to_have_text("The book")


def test_title_page_fetches_the_list_of_pages_again_if_it_is_not_whole(browser: Browser, scripted: Scripted) -> None:
    names = [(part, number) for part in ("One", "Two") for number in range(60)]
    pages = [written(f"{part}/{number}.md", f"# Page {number}\n\nWords.", part) for part, number in names]
    with scripted_server(Shelf(pages), scripted) as server, visiting(browser, server.url, "/livez") as page:
        failing = "**/contents/*"
        page.route(failing, lambda route: route.fulfill(status=503, json={}))
        with page.expect_response(failing):
            page.goto(f"{server.url}/read/{pages[3].page_id}")
        expect(page.locator(".contents .folded")).to_have_count(1)
        with page.expect_response(failing):
            page.locator(".brand").click()
        expect(page.locator("main h1")).to_have_text("The page cannot be shown")
        page.unroute(failing)
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".chapter h2")).to_have_text(["One", "Two"])
        expect(page.locator(".contents summary")).to_have_text(["One", "Two"])


@pytest.mark.parametrize("unknown", ["abc", "131d235f-1f0b-5102-ade4-34deb9f52f84"])
def test_script_keeps_the_message_about_an_unknown_page(browser: Browser, server: Served, unknown: str) -> None:
    with visiting(browser, server.url, f"/read/{unknown}") as page:
        expect(page.get_by_label("Your question")).to_be_visible()
        page.wait_for_timeout(300)
        expect(page.locator("main h1")).to_have_text("There is no such page")
        page.locator(".contents a", has_text="Long").click()
        expect(page.locator("main h1")).to_have_text("Long")


def test_reload_of_the_title_page_restores_the_scroll_position(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, viewport={"width": 360, "height": 400}) as page:
        page.wait_for_load_state("networkidle")  # the script runs
        page.evaluate("scrollTo(0, 200)")
        page.reload()
        wait_until(lambda: page.evaluate("scrollY") == 200)  # the page's policy forbids wait_for_function


def test_quote_is_marked_in_the_text_as_it_is_now(browser: Browser, scripted: Scripted) -> None:
    """The book may have been ingested again while the page is open."""
    shelf = Shelf([written("now.md", "# Now\n\nOld words.")])
    with scripted_server(shelf, scripted) as server:
        path = f"/read/{shelf.shelved[0].page_id}"
        with visiting(browser, server.url, path) as page:
            page.locator("main .headed, main p").first.wait_for()
            page.wait_for_load_state("networkidle")
            shelf.shelved[0] = changed = written("now.md", "# Now\n\nA new sentence. Old words.")
            start = changed.text.index("Old")
            page.evaluate(
                """address => {
                    const link = document.createElement("a");
                    link.href = address;
                    document.querySelector("main").append(link);
                    link.click();
                }""",
                f"{server.url}{path}?quote={start}-{start + 9}",
            )
            expect(page.locator("mark.evidence")).to_have_text(["Old words"])


def test_code_without_its_end_is_shown_whole(page: Page) -> None:
    """As in a part of a page that ends inside code."""
    shown = """async ([excerpts, text]) => {
        const { renderExcerpt } = await import(excerpts);
        return renderExcerpt(text).nodes[0].querySelector("code").textContent;
    }"""
    for text, code in (("```py\na\nb", "a\nb"), ("```py\na", "a"), ("```py\na\nb\n```", "a\nb"), ("```py\n```", "")):
        assert page.evaluate(shown, [f"../{asset_path('excerpts.js')}", text]) == code


def test_code_on_one_line_does_not_open_a_block(page: Page) -> None:
    shown = """async ([excerpts, text]) => {
        const { flat, renderExcerpt } = await import(excerpts);
        return [flat(text), ...renderExcerpt(text).nodes.map((node) => `${node.localName} ${node.innerText}`)];
    }"""
    text = "```make all``` builds it.\n\nThen it is tested."
    assert page.evaluate(shown, [f"../{asset_path('excerpts.js')}", text]) == [
        "make all builds it. Then it is tested.",
        "p make all builds it.",
        "p Then it is tested.",
    ]
