"""The widget on sites built by real generators, ingested over HTTP and asked from their own origin."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from chapterverse.ingestion.options import SourceOptions
from chapterverse.settings import Settings
from tests.api.stream_snapshot import ingest_into
from tests.browser.chromium import shoot, visiting
from tests.browser.generators import build
from tests.browser.hosts import Host, hosting
from tests.browser.test_widget import STYLES, ask, faults, launcher
from tests.scripted import wait_until
from tests.served import serve

# A generator may have to be installed first.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]

QUESTION = "What must the keepers do when the lamp fails?"
ANSWER = "The keepers must then report the failure to the coast guard by radio"
GENERATORS = ["mkdocs", "sphinx", "docusaurus"]
DARK = {"mkdocs": "label[title=Dark]", "docusaurus": "[class*=toggleButton]"}  # Sphinx's default theme has no dark mode


SECOND_COLOUR = """async (address) => {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const context = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, picture.width, picture.height);
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
        const colour = `${data[at]} ${data[at + 1]} ${data[at + 2]}`;
        counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return [...counts.values()].sort((one, other) => other - one)[1] / picture.width / picture.height;
}"""


@dataclass(frozen=True)
class Site:
    generator: str
    host: Host

    @property
    def url(self) -> str:
        return self.host.url


@pytest.fixture(scope="module", params=GENERATORS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A published site, and Chapterverse on another origin with that site ingested."""
    folder = tmp_path_factory.mktemp(request.param)
    home = folder / "home"
    with hosting(build(request.param, folder)) as host:
        ingest_into(home, f"{host.url}/", SourceOptions(allow_private=True, delay=0))
        with serve(Settings.load(chapterverse_home=home, cors_origins=host.url, api_rate_limit=100_000)) as server:
            assert server.http.post("/chat", json={"query": QUESTION}).json()["status"] == "answered"
            host.chapterverse = server.url
            yield Site(request.param, host)


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    with visiting(browser, site.url, asks=site.host.chapterverse, viewport={"width": 1400, "height": 800}) as page:
        launcher(page).wait_for()
        yield page


def test_citation_opens_the_evidence_in_the_site(page: Page, site: Site) -> None:
    shoot(page, f"40-{site.generator}-closed")
    ask(page, QUESTION)
    expect(page.locator(".answer")).to_contain_text(ANSWER)
    expect(page.locator(".confidence")).to_be_visible()
    chip = page.locator(".answer .chip").first
    assert re.search(r"/lamp(/|\.html)?#when-it-fails:~:text=", chip.get_attribute("href") or "")
    shoot(page, f"41-{site.generator}-answer")
    chip.click()  # in this tab
    page.wait_for_url(re.compile(r"/lamp(/|\.html)?#when-it-fails"))
    quoted = page.get_by_role("main").get_by_text(ANSWER).or_(page.locator("[role=main], article").get_by_text(ANSWER))
    expect(quoted.first).to_be_in_viewport()
    expect(page.locator(".answer .chip").first).to_be_visible()  # the answer is still open beside the evidence
    expect(page.locator("chapterverse-widget")).to_have_count(1)
    assert not is_marked(page.locator(".turn .answer"))  # the text fragment marks the page, not the answer
    shoot(page, f"42-{site.generator}-evidence")


def test_question_about_a_selection_can_be_widened(page: Page, site: Site) -> None:
    paragraph = page.locator("p", has_text="Two keepers live there").first
    paragraph.evaluate("node => getSelection().selectAllChildren(node)")
    page.get_by_role("button", name="Ask about this").click()
    expect(page.locator(".asking .selection")).to_contain_text("Two keepers live there")
    ask(page, "When do the keepers live there?")
    page.locator(".turn .sources").wait_for()
    mark = page.locator(".turn .selection mark")
    assert "".join(mark.all_text_contents()) == page.locator(".turn .quote").first.text_content()
    expect(mark.first).to_be_in_viewport()
    shoot(page, f"43-{site.generator}-selection")
    expect(page.locator(".turns")).to_have_attribute("aria-busy", "false")  # sources are shown before the answer ends
    ask(page, QUESTION)
    page.get_by_role("button", name="Search the whole book").click()
    expect(page.locator(".turn").last.locator(".answer")).to_contain_text(ANSWER)


def test_widget_does_not_change_the_styles_of_the_site(browser: Browser, page: Page, site: Site) -> None:
    outside = f"root => ({STYLES})(root).filter((each) => !/transition|animation/.test(each))"
    site.host.chapterverse, server = "about:invalid", site.host.chapterverse
    with visiting(browser, site.url, viewport={"width": 1400, "height": 800}) as without:
        without.wait_for_load_state("networkidle")
        expect(launcher(without)).to_have_count(0)
        for _ in range(50):  # scripts of the site lay out its parts a little later
            shown, expected = (one.locator("body").evaluate(outside) for one in (page, without))
            if set(shown) == set(expected):
                break
            without.wait_for_timeout(100)
    site.host.chapterverse = server
    assert len(expected) > 10_000
    assert set(shown) ^ set(expected) == set()


def test_conversation_continues_across_pages(page: Page, site: Site) -> None:
    ask(page, "What is the horn?")
    page.locator(".sources").wait_for()
    page.evaluate("window.same = true")
    page.get_by_role("link", name=re.compile("^(The )?fog horn$")).first.click()
    expect(page).to_have_title(re.compile("^The fog horn"))
    in_place = page.evaluate("window.same === true")
    assert in_place == (site.generator != "sphinx")
    expect(page.locator("chapterverse-widget")).to_have_count(1)
    expect(page.locator(".sources")).to_be_visible()
    ask(page, "What is the engine?")
    expect(page.locator(".sources")).to_have_count(2)
    page.go_back()
    expect(page).to_have_title(re.compile("^The Skerry Light"))
    expect(page.locator("chapterverse-widget")).to_have_count(1)
    page.get_by_role("button", name="Close").click()
    page.locator("p", has_text="Two keepers live there").first.evaluate(
        "node => getSelection().selectAllChildren(node)"
    )
    expect(page.get_by_role("button", name="Ask about this")).to_have_count(1)


def test_widget_works_in_dark_mode_and_by_keyboard(page: Page, site: Site) -> None:
    if site.generator in DARK:
        page.locator(DARK[site.generator]).first.click()
        if site.generator == "docusaurus" and page.locator("html[data-theme=light]").count():
            page.locator(DARK[site.generator]).first.click()  # system, light, dark
        expect(page.locator(".widget")).to_have_attribute("data-theme", "dark")
    launcher(page).focus()
    page.keyboard.press("Enter")
    page.keyboard.type("What is the lamp? s/fnp")  # s, /, f, n and p are shortcuts of the generators
    expect(page.get_by_label("Your question")).to_have_value("What is the lamp? s/fnp")
    for _ in range(7):
        page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    page.locator(".sources").wait_for()
    assert faults_of_the_widget(page) == []
    shoot(page, f"44-{site.generator}-dark")
    page.keyboard.press("Escape")
    expect(launcher(page)).to_be_focused()


def faults_of_the_widget(page: Page) -> list[str]:
    """Violations inside the widget. The site has some of its own."""
    inside = page.locator("chapterverse-widget .widget").evaluate("node => node.innerHTML")
    return [fault for fault in faults(page) if fault.partition(": ")[2][:40] in inside]


def is_marked(paragraph: Locator) -> bool:
    """Whether the browser highlights the text: then the second most frequent colour covers more than 20 %."""
    picture = base64.b64encode(paragraph.screenshot()).decode()
    share: float = paragraph.page.evaluate(SECOND_COLOUR, f"data:image/png;base64,{picture}")
    return share > 0.2


def test_evidence_is_visible_on_a_narrow_screen(browser: Browser, site: Site) -> None:
    view = {"width": 360, "height": 740}
    with visiting(
        browser, site.url, asks=site.host.chapterverse, viewport=view, has_touch=True, is_mobile=True
    ) as page:
        expect(launcher(page)).to_be_in_viewport()
        ask(page, QUESTION)
        page.locator(".sources").wait_for()
        shoot(page, f"45-{site.generator}-narrow")
        page.locator(".answer .chip").first.click()
        page.wait_for_url(re.compile("when-it-fails"))
        expect(launcher(page)).to_be_visible()  # the panel does not cover the evidence
        assert page.evaluate("document.documentElement.scrollWidth") <= view["width"]
        wait_until(lambda: is_marked(page.locator("p", has_text=ANSWER).first), 30)
        assert not is_marked(page.locator("p", has_text="The light shows two white flashes").first)
        shoot(page, f"46-{site.generator}-narrow-evidence")
