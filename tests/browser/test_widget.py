"""The widget in a foreign page: one script tag, another origin, conflicting styles."""

import asyncio
import json
import re
import shutil
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect
from pydantic import TypeAdapter

from chapterverse.api.openapi.examples import SOURCE, SUMMARY
from chapterverse.api.web import joined
from chapterverse.models import Event
from tests.api.stream_snapshot import QUESTION, SNAPSHOT, events_of
from tests.browser.chromium import ask as send
from tests.browser.chromium import shoot, shown, visiting
from tests.browser.hosts import Host, hosting
from tests.browser.shelf import Shelf, scripted_server
from tests.browser.test_access import AXE
from tests.scripted import SENTENCES, Scripted, wait_until
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOST_PAGES = Path(__file__).parent / "sites" / "plain"
RECORDED = events_of(SNAPSHOT.read_text("utf-8"))
NARROW = {"width": 360, "height": 740}
STYLES = """root => [root, ...root.querySelectorAll("*:not(script, chapterverse-widget)")].flatMap((node) => {
    const style = getComputedStyle(node);
    return [...style].map((name) => `${node.localName}.${node.className} ${name}: ${style.getPropertyValue(name)}`);
})"""


class Replay(Scripted):
    """Answers with the recorded events. The test releases each one."""

    released = threading.Semaphore(0)

    async def stream(self, prepared: Any, services: Any) -> AsyncGenerator[Event, None]:
        for event in RECORDED:
            assert await asyncio.to_thread(self.released.acquire, timeout=60)
            yield TypeAdapter[Event](Event).validate_python(event)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(HOST_PAGES, folder, dirs_exist_ok=True)
    lines = (folder / "hostile.html").read_text("utf-8").splitlines()
    (folder / "hostile-without.html").write_text("\n".join(line for line in lines if "<script" not in line), "utf-8")
    with hosting(folder) as host:
        yield host


@pytest.fixture(scope="module")
def server(scripted: Scripted, site: Host) -> Iterator[Served]:
    with scripted_server(Shelf(), scripted, api_rate_limit=100_000, cors_origins=site.url) as server:
        yield server


@pytest.fixture(autouse=True)
def plain_site(site: Host, server: Served) -> None:
    site.chapterverse = server.url
    site.headers = {}


@pytest.fixture
def page(browser: Browser, site: Host, server: Served) -> Iterator[Page]:
    with visiting(browser, site.url, asks=server.url) as page:
        yield page


def launcher(page: Page) -> Any:
    return page.locator("chapterverse-widget .launcher")


def ask(page: Page, question: str) -> None:
    if launcher(page).is_visible():
        launcher(page).click()
    send(page, question)


def faults(page: Page) -> list[str]:
    page.evaluate(f"{AXE}; 0")
    found = page.evaluate("axe.run(document)")
    looked = [node["html"] for check in found["passes"] for node in check["nodes"]]
    assert any("launcher" in html or "Your question" in html for html in looked), "axe did not check the shadow DOM"
    return [f"{fault['id']}: {node['html']}" for fault in found["violations"] for node in fault["nodes"]]


def test_widget_outlives_the_body_and_leaves_the_styles_of_the_site(page: Page) -> None:
    launcher(page).wait_for()
    page.evaluate("document.documentElement.style.overflow = 'hidden scroll'")
    launcher(page).click()
    assert page.evaluate("document.documentElement.style.overflow") == "hidden scroll"
    page.locator("chapterverse-widget").get_by_role("button", name=re.compile("Close")).click()
    page.evaluate("""() => {
        const body = document.createElement("body");
        body.innerHTML = "<p id='next'>Words of the next page.</p>";
        document.body.replaceWith(body);
    }""")
    launcher(page).wait_for()
    page.locator("#next").evaluate("node => getSelection().selectAllChildren(node)")
    expect(page.locator("chapterverse-widget .ask-about")).to_be_visible()
    page.evaluate("""() => {
        document.body.animate([{ opacity: 1 }, { opacity: 1 }], { duration: 1000, iterations: Infinity });
        document.body.style.cssText = "background: #111; color: #eee";
    }""")
    expect(page.locator("chapterverse-widget .widget")).to_have_attribute("data-theme", "dark")


def test_recorded_stream_is_shown_as_it_arrives(browser: Browser, site: Host) -> None:
    replay = Replay()
    with scripted_server(Shelf(), replay, cors_origins=site.url) as server:
        site.chapterverse = server.url
        with visiting(browser, site.url, asks=server.url) as page:
            ask(page, QUESTION["query"])
            expect(page.locator(".waiting")).to_contain_text("Searching")
            chunks = [event["content"] for event in RECORDED if event["type"] == "chunk"]
            replay.released.release()
            passages = page.locator(".reading a")
            expect(passages).to_have_count(len(RECORDED[0]["passages"]))
            assert passages.first.get_attribute("href") == RECORDED[0]["passages"][0]["source_url"]
            for number in range(len(chunks)):
                replay.released.release()
                so_far = shown(chunks[: number + 1])
                words = r"\s*".join(map(re.escape, so_far.split()))  # there is no white space between blocks
                expect(page.locator(".answer")).to_have_text(re.compile(rf"^\s*{words}\s*$"))
            expect(page.locator(".answer .chip[href]")).not_to_have_count(0)  # before the sources event
            replay.released.release(2)
            sources = next(event["sources"] for event in RECORDED if event["type"] == "sources")
            chip = page.locator(".answer .chip").first
            expect(chip).to_have_attribute("target", "_blank")  # the recorded site is another one
            address = chip.get_attribute("href") or ""
            begins = quote(" ".join(sources[0]["quote"].split()[:3]))
            assert address.startswith(sources[0]["source_url"]) and f":~:text={begins}" in address
            expect(page.locator(".quote")).to_have_text([source["quote"] for source in sources])
            expect(page.locator(".confidence")).to_contain_text(f"Confidence: {RECORDED[-1]['confidence_level']}")
            shoot(page, "30-widget-replay")
        assert replay.asked[0].query == QUESTION["query"]


def test_styles_of_page_and_widget_do_not_affect_each_other(browser: Browser, site: Host, server: Served) -> None:
    inside, outside = {}, {}
    for name in ("bare", "hostile", "hostile-without"):
        with visiting(browser, site.url, f"/{name}.html", asks=server.url) as page:
            if "without" not in name:
                ask(page, "answer")
                page.locator(".sources").wait_for()
                box = page.locator(".panel").bounding_box()
                assert box and box["x"] < 50, "data-position is left"
                if name == "hostile":
                    shoot(page, "31-widget-hostile-styles")
                page.locator("h1").first.click()  # removes the focus
                inside[name] = page.locator("chapterverse-widget .widget").evaluate(STYLES)
                page.get_by_role("button", name="Close").click()
                page.locator("h1").first.click()
            outside[name] = page.locator("html").evaluate(STYLES)
    assert len(inside["bare"]) > 10_000
    assert set(inside["hostile"]) ^ set(inside["bare"]) == set()
    assert len(outside["hostile"]) > 1_000
    assert set(outside["hostile"]) ^ set(outside["hostile-without"]) == set()


def test_widget_works_by_keyboard(page: Page) -> None:
    page.locator("#note").focus()
    page.keyboard.press("Tab")
    expect(launcher(page)).to_be_focused()
    expect(launcher(page)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    field = page.get_by_label("Your question")
    expect(field).to_be_focused()
    page.keyboard.type("answer")
    assert page.evaluate("document.title") == "Notes of a site", (
        "shortcuts of the page must not react to typing in the widget"
    )
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_have_text(shown(SENTENCES))
    expect(page.locator(".status[role=status]")).to_contain_text("Answered. Confidence high")
    shoot(page, "32-widget-keyboard")
    page.keyboard.press("Tab")  # to the button
    page.keyboard.press("Tab")  # and out of the panel
    assert page.evaluate("document.activeElement.localName") != "chapterverse-widget"
    field.focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Ask the site")).to_be_hidden()
    expect(launcher(page)).to_be_focused()
    page.locator("h1").click()
    page.keyboard.type("z")
    assert page.evaluate("document.title") == "z", "shortcuts of the page work outside of the widget"


def test_question_about_a_selection_can_be_widened(page: Page, scripted: Scripted) -> None:
    button = page.get_by_role("button", name="Ask about this")
    expect(launcher(page)).to_be_visible()
    expect(button).to_be_hidden()
    page.locator("#first").evaluate("node => getSelection().selectAllChildren(node)")
    expect(button).to_be_in_viewport()
    place = button.bounding_box()
    page.evaluate("scrollBy(0, 40)")
    wait_until(lambda: bool(place and (now := button.bounding_box()) and now["y"] < place["y"]), 30)
    shoot(page, "33-widget-selecting")
    button.click()
    expect(page.get_by_label("Your question")).to_be_focused()
    expect(page.locator(".asking .selection")).to_have_text(page.locator("#first").inner_text())
    ask(page, "refuse")
    expect(page.locator(".refusal")).to_contain_text("Not in the selection")
    sent = scripted.asked[-1]
    assert (sent.mode, sent.filters) == ("selected_text", None)
    shoot(page, "34-widget-refused-selection")
    page.get_by_role("button", name="Search the whole book").click()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".asking .selected")).to_be_hidden()
    wait_until(lambda: scripted.asked[-1].mode == "general", 30)
    page.locator(".turn").last.locator(".question").click(click_count=3)  # a selection inside the widget does not count
    expect(button).to_be_hidden()
    page.locator("#first").click(click_count=3)
    expect(button).to_be_visible()
    filters = scripted.asked[-1].filters
    assert filters and filters.module == ["notes"] and filters.source_url_prefix == page.url + "guide/"


def test_nearest_section_without_a_site_is_opened_in_the_reader_page(page: Page, server: Served) -> None:
    path = "/read/131d235f-1f0b-5102-ade4-34deb9f52f84#book-winch"
    section = {"page_title": "Kestrel", "section_heading": "Winch", "source_url": "book/kestrel.md#winch", "score": 0.7}
    done = {"type": "done", **SUMMARY, "status": "refused", "nearest": [section | {"reader_url": path}]}
    body = f"data: {json.dumps(done)}\n\n"
    headers = {"Access-Control-Allow-Origin": "*"}
    page.route("**/chat/stream", lambda route: route.fulfill(body=body, headers=headers))
    ask(page, "Which winch?")
    expect(page.locator(".nearest a")).to_have_attribute("href", server.url + path)


def test_conversation_continues_on_the_next_page(page: Page, scripted: Scripted) -> None:
    ask(page, "answer")
    page.locator(".sources").wait_for()
    page.goto(page.url + "bare.html")
    expect(page.locator(".answer .chip[aria-label^=Source]")).to_have_count(3)
    expect(page.get_by_label("Your question")).not_to_be_focused()
    ask(page, "answer")
    expect(page.locator(".sources")).to_have_count(2)
    assert scripted.asked[-1].session_id is not None
    page.get_by_role("button", name="New conversation").click()
    page.reload()
    expect(page.get_by_label("Your question")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)
    page.keyboard.press("Escape")  # the focus is in the page, so the widget ignores it
    expect(page.get_by_label("Your question")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    page.reload()
    expect(launcher(page)).to_be_visible()


def test_failures_are_shown_with_a_retry(page: Page) -> None:
    ask(page, "prepare fail")
    expect(page.locator("[role=alert]")).to_contain_text("The search took too long.")
    expect(page.get_by_role("button", name="Try again in")).to_be_disabled()
    shoot(page, "35-widget-unavailable")
    page.get_by_role("button", name="Try again", exact=True).click()
    expect(page.locator("[role=alert]")).to_have_count(1)
    ask(page, "fail agent_unavailable")
    expect(page.locator("[role=alert]").last).to_contain_text("As the script says.")


def test_rate_limit_key_and_origin_errors_are_shown(browser: Browser, site: Host, scripted: Scripted) -> None:
    for settings, expected in (
        ({"api_rate_limit": 1, "cors_origins": site.url}, "Too many questions"),
        ({"api_keys": "sesame", "cors_origins": site.url}, "key"),
    ):
        with scripted_server(Shelf(), scripted, **settings) as server:
            site.chapterverse = server.url
            with visiting(browser, site.url, asks=server.url) as page:
                ask(page, "answer")
                page.locator(".confidence, .failure").wait_for()
                ask(page, "answer")
                expect(page.locator("[role=alert]").last).to_contain_text(expected)
                if "api_keys" not in settings:
                    button = page.get_by_role("button", name="Try again in")
                    count = button.inner_text()
                    expect(button).not_to_have_text(count)  # it counts down
                    shoot(page, "36-widget-rate-limited")
    with scripted_server(Shelf(), scripted) as server:
        site.chapterverse = server.url
        page = browser.new_page()  # without the check for console errors: the CORS error is expected
        page.goto(site.url)
        ask(page, "answer")
        expect(page.locator("[role=alert]")).to_contain_text("The server cannot be reached.")
        page.close()


POLICIES = {
    "named": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' http://chapterverse.test; "
    "connect-src http://chapterverse.test; require-trusted-types-for 'script'",
    "nonce": "default-src 'none'; style-src 'nonce-n0nce'; script-src 'nonce-n0nce' 'strict-dynamic'; "
    "connect-src http://chapterverse.test",
}


@pytest.mark.parametrize("policy", POLICIES)
def test_widget_works_with_strict_content_security_policies(
    browser: Browser, site: Host, server: Served, policy: str
) -> None:
    site.headers = {
        "Content-Security-Policy": POLICIES[policy],
        "Cross-Origin-Embedder-Policy": "require-corp",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    with visiting(browser, site.url, asks=server.url) as page:
        ask(page, "answer")
        expect(page.locator(".confidence")).to_be_visible()
        assert page.locator(".panel").evaluate("node => getComputedStyle(node).borderRadius") == "12px"


def test_widget_works_without_session_storage(browser: Browser, site: Host, server: Served) -> None:
    with visiting(browser, site.url, asks=server.url) as page:
        page.add_init_script(
            "Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('no') } })"
        )
        page.reload()
        ask(page, "answer")
        expect(page.locator(".confidence")).to_be_visible()
        ask(page, "answer")
        expect(page.locator(".confidence")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 360])
def test_axe_finds_no_violation_in_the_widget(
    browser: Browser, site: Host, server: Served, scheme: str, width: int
) -> None:
    view = {"width": width, "height": 740}
    with visiting(browser, site.url, asks=server.url, viewport=view, color_scheme=scheme) as page:
        launcher(page).wait_for()
        expect(page.locator(f".widget[data-theme={scheme}]")).to_have_count(1)
        assert faults(page) == []
        page.locator("#first").evaluate("node => getSelection().selectAllChildren(node)")
        page.get_by_role("button", name="Ask about this").click()
        ask(page, "refuse")
        page.get_by_role("button", name="Search the whole book").wait_for()
        page.get_by_role("button", name="Remove the selection").click()
        ask(page, "prepare fail")
        page.locator(".failure").wait_for()
        ask(page, "answer")
        page.locator(".confidence").wait_for()
        assert faults(page) == []
        shoot(page, f"37-widget-{scheme}-{width}")


def test_widget_theme_follows_the_background_of_the_page(page: Page) -> None:
    widget = page.locator("chapterverse-widget .widget")
    expect(widget).to_have_attribute("data-theme", "light")
    for colour, theme in (("oklch(0.2 0 0)", "dark"), ("#fff", "light"), ("rgb(20 20 30 / 90%)", "dark")):
        page.evaluate("colour => { document.body.style.background = colour }", colour)
        expect(widget).to_have_attribute("data-theme", theme)


def test_widget_covers_a_narrow_screen_and_traps_the_focus(browser: Browser, site: Host, server: Served) -> None:
    with visiting(browser, site.url, asks=server.url, viewport=NARROW, has_touch=True, is_mobile=True) as page:
        ask(page, "answer")
        page.locator(".sources").wait_for()
        assert page.locator(".panel").bounding_box() == {"x": 0, "y": 0} | NARROW
        shoot(page, "38-widget-narrow")
        expect(page.get_by_role("dialog")).to_have_attribute("aria-modal", "true")
        for _ in range(12):  # Tab never leaves the panel
            page.keyboard.press("Tab")
            assert page.evaluate("['BODY', 'CHAPTERVERSE-WIDGET'].includes(document.activeElement.tagName)")
        page.mouse.move(180, 300)
        page.mouse.wheel(0, 2000)
        assert page.evaluate("scrollY") == 0
        page.get_by_role("button", name="Close").click()
        assert page.locator("[inert]").count() == 0
        page.locator("#note").focus()
        expect(page.locator("#note")).to_be_focused()
        expect(page.locator(".panel")).not_to_have_attribute("aria-modal", "true")
        assert page.evaluate("getComputedStyle(document.documentElement).overflowY") != "hidden"
        launcher(page).click()
        page.reload()  # an open panel would cover the new page
        expect(launcher(page)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


def test_widget_can_be_placed_inside_the_page(browser: Browser, site: Host, server: Served) -> None:
    with visiting(browser, site.url, "/in-page.html", asks=server.url) as page:
        expect(page.get_by_role("region", name="Ask the book")).to_be_visible()
        expect(launcher(page)).to_be_hidden()
        page.get_by_label("Your question").fill("answer")
        page.keyboard.press("Enter")
        page.locator(".sources").wait_for()
        shoot(page, "39-widget-in-the-page")
        page.keyboard.press("Escape")
        expect(page.locator(".sources")).to_be_visible()
        # A single-page site removes the target element and adds it again.
        page.evaluate("document.querySelector('#ask-here').remove()")
        expect(page.locator("chapterverse-widget")).to_have_count(0)
        page.evaluate(
            "document.querySelector('main').append(Object.assign(document.createElement('div'), {id: 'ask-here'}))"
        )
        expect(page.locator("#ask-here .sources")).to_be_visible()
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {src: document.scripts[0].src}))"
        )
        page.wait_for_function(
            "performance.getEntriesByType('resource').filter((each) => each.name.endsWith('widget.js')).length >= 1"
        )
        expect(page.locator("chapterverse-widget")).to_have_count(1)


def computed(page: Page, selector: str, name: str) -> str:
    found: str = page.locator(selector).first.evaluate(f"node => getComputedStyle(node).{name}")
    return found


def branded(site: Host, name: str, attributes: str) -> str:
    """Writes a copy of brand.html with these attributes on the script tag; returns its path."""
    text = (site.folder / "brand.html").read_text("utf-8").replace('widget.js" async', f'widget.js" async {attributes}')
    (site.folder / f"{name}.html").write_text(text, "utf-8")
    return f"/{name}.html"


def test_widget_takes_font_and_colours_from_the_site(browser: Browser, site: Host, server: Served) -> None:
    with visiting(browser, site.url, "/brand.html", asks=server.url) as page:
        ask(page, "answer")
        page.locator(".sources").wait_for()
        for part in (".panel", ".answer", ".ask-head h2", ".field"):
            assert computed(page, part, "fontFamily") == computed(page, "main", "fontFamily")
        assert computed(page, ".panel", "backgroundColor") == "rgb(244, 248, 255)"
        assert computed(page, ".panel", "color") == "rgb(16, 32, 48)"
        assert computed(page, "form .main-button", "backgroundColor") == "rgb(0, 105, 92)"
        assert faults(page) == []
        shoot(page, "50-widget-brand")
        page.evaluate("document.body.className = 'night'")
        expect(page.locator(".widget")).to_have_attribute("data-theme", "dark")
        assert computed(page, ".panel", "backgroundColor") == "rgb(11, 21, 36)"
        assert computed(page, "form .main-button", "backgroundColor") == "rgb(111, 224, 207)"
        assert computed(page, "form .main-button", "color") == "rgb(0, 0, 0)"  # white has too little contrast
        assert faults(page) == []
        shoot(page, "51-widget-brand-night")
        assert page.locator("main a, main code").count() == 1, "the probe elements were removed"


CIRCLE = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><circle cx='4.5' cy='4.5' r='4'/></svg>"
LOGO = f"data:image/svg+xml,{CIRCLE}"


def test_attributes_of_the_tag_override_the_site(
    browser: Browser, site: Host, server: Served, scripted: Scripted
) -> None:
    look = f"data-accent='var(--brand)' data-font='Georgia, serif' data-logo=\"{LOGO}\""
    path = branded(site, "said", f"{look} data-title='Ask Ada' data-suggestions='answer | Why two?|'")
    with visiting(browser, site.url, path, asks=server.url) as page:
        expect(launcher(page)).to_have_text("Ask Ada")
        assert launcher(page).locator("img").evaluate("node => node.decode().then(() => node.naturalWidth > 0)")
        assert computed(page, ".launcher", "backgroundColor") == "rgb(179, 0, 94)"
        launcher(page).click()
        assert computed(page, ".panel", "fontFamily") == "Georgia, serif"
        expect(page.locator(".ask-head img")).to_be_visible()
        offered = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(offered).to_have_text(["answer", "Why two?"])
        assert faults(page) == []
        shoot(page, "52-widget-suggestions")
        offered.first.click()
        page.locator(".sources").wait_for()
        assert scripted.asked[-1].query == "answer"
        expect(offered.first).to_be_hidden()


NEAR = SOURCE["source_url"].partition("#")[0]
SUGGESTED = {"suggestions": [{"question": "What <i>is</i> it?", "page": NEAR}, {"question": "How?", "page": NEAR}]}


@pytest.mark.parametrize(
    ("tag", "offered"),
    [
        ("", ["What <i>is</i> it?", "How?"]),
        ('data-target="main"', ["What <i>is</i> it?", "How?"]),
        ('data-suggestions="Why?"', ["Why?"]),
        ('data-book="guide" data-version="2"', ["What <i>is</i> it?", "How?"]),
        ('data-module="intro"', []),
        ('data-prefix="/"', []),
    ],
)
def test_suggestions_of_the_server_are_used_if_the_tag_has_none(
    browser: Browser, site: Host, server: Served, scripted: Scripted, tag: str, offered: list[str]
) -> None:
    asked: list[str] = []

    def suggest(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(json=SUGGESTED, headers={"Access-Control-Allow-Origin": site.url})

    path = branded(site, "suggesting", tag)
    with visiting(browser, site.url, "/bare.html", asks=server.url) as page:
        page.route("**/suggestions*", suggest)
        page.goto(f"{site.url}{path}")
        if "target" not in tag:
            expect(launcher(page)).to_be_visible()
            assert asked == [], "suggestions were requested before the panel was opened"
            launcher(page).click()
        shown = page.get_by_role("list", name="Questions to begin with").get_by_role("button")
        expect(shown).to_have_text(offered)
        assert len(asked) == int(len(offered) == 2)
        assert all(("book=guide&version=2" in url) == ("book" in tag) for url in asked)
        if offered:
            shown.first.click()
            expect(page.locator(".question")).to_have_text(offered[0])
            left = [one["question"] for one in SUGGESTED["suggestions"] if one["question"] != offered[0]]
            expect(page.locator(".next button")).to_have_text(left)
            assert scripted.asked[-1].query == offered[0]
            assert "page=" in asked[-1], "the request names the pages of the answer"
            page.locator(".next button").last.click()
            expect(page.locator(".question").last).to_have_text(left[-1])


def test_invalid_accent_and_logo_are_ignored(browser: Browser, site: Host, server: Served) -> None:
    path = branded(site, "odd", "data-accent='no colour;' data-logo='missing.png'")
    with visiting(browser, site.url, path, asks=server.url) as page:
        assert computed(page, ".launcher", "backgroundColor") == "rgb(0, 105, 92)"
        expect(page.locator("chapterverse-widget img")).to_have_count(0)
    path = branded(site, "pale", "data-accent='#ffd0d0'")  # too little contrast on a nearly white background
    with visiting(browser, site.url, path, asks=server.url) as page:
        launcher(page).click()
        assert faults(page) == []
        assert computed(page, ".close", "color") != "rgb(255, 208, 208)"


@pytest.mark.parametrize(("rule", "height"), [("", 384), ("#ask-here { height: auto !important; }", 544)])
def test_widget_fills_its_target_element(browser: Browser, site: Host, server: Served, rule: str, height: int) -> None:
    path = branded(site, "filled", "data-target='#ask-here'")
    file = site.folder / path[1:]
    file.write_text(file.read_text("utf-8").replace("</style>", f"{rule}</style>"), "utf-8")
    with visiting(browser, site.url, path, asks=server.url) as page:
        for _ in range(3):
            ask(page, "answer")
            page.locator(".sources").last.wait_for()
        box = page.locator(".panel").bounding_box()
        assert box and (box["width"], box["height"]) == (960, height)
        shoot(page, f"53-widget-target-{height}")


QUOTES = {
    "One sentence.": "#:~:text=One%20sentence.",
    "A well-known, small & `odd` thing.": "#:~:text=A%20well%2Dknown%2C%20small%20%26%20odd%20thing.",
    "- first point\n- second point": "#:~:text=first%20point,second%20point",
    "| bulb | 9,000 hours |": "#:~:text=bulb,9%2C000%20hours",
    "Note: Mind the gap.": "#:~:text=Mind%20the%20gap.",
    " ".join(map(str, range(100, 140))): "#:~:text=100%20101%20102%20103%20104%20105,134%20135%20136%20137%20138%20139",
    "x" * 300: "#:~:text=" + "x" * 300,
    "``": "",
}


def test_text_fragment_of_a_quote(page: Page) -> None:
    source = joined("fragments.js").replace("export ", "")
    for quotation, fragment in QUOTES.items():
        for url in ("https://docs.example.com/a/", "https://docs.example.com/a/#b"):
            found = page.evaluate(f"([url, quote]) => {{ {source}; return pointTo(url, quote); }}", [url, quotation])
            assert found == url + (fragment.removeprefix("#") if "#" in url else fragment)
