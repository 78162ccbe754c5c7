"""axe finds no accessibility problem in the usual states of the page."""

from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import visiting
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def faults(page: Page, rules: str = "rules: { 'target-size': { enabled: true } }", least: int = 20) -> list[str]:
    """The violations that axe finds. More than `least` of its rules must have applied."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{AXE}; 0")
    found = page.evaluate(f"axe.run(document, {{ {rules} }})")
    assert len(found["passes"]) > least
    return [f"{fault['id']}: {node['html']}" for fault in found["violations"] for node in fault["nodes"]]


def faults_in_light_and_dark(page: Page) -> list[str]:
    """The violations that axe finds in both colour schemes. A scheme changes only colours, so in dark only the rules
    about colours run. The page is light afterwards."""
    paper = "getComputedStyle(document.body).backgroundColor"
    light, found = page.evaluate(paper), faults(page)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(paper) != light
    found += [f"dark: {fault}" for fault in faults(page, "runOnly: ['color-contrast', 'link-in-text-block']", least=0)]
    page.emulate_media(color_scheme="light")
    return found


@pytest.mark.parametrize("width", [1400, 360])
def test_axe_finds_no_violation_while_reading_asking_and_searching(
    browser: Browser, example_server: Served, width: int
) -> None:
    view = {"width": width, "height": 800}
    pages = example_server.http.get("/pages").json()["pages"]
    path = next(f"/read/{one['page_id']}" for one in pages if one["title"] == "Control Loops and Timing")
    with visiting(browser, example_server.url, path, viewport=view, color_scheme="light") as page:
        page.locator("main h1").wait_for()
        assert faults_in_light_and_dark(page) == []
        page.locator("main .ask-section").first.press("Enter")
        page.keyboard.type("Who won the football world cup of 1998?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Search the whole book").wait_for()
        page.keyboard.type("What does a closed-loop controller measure?")
        page.keyboard.press("Enter")
        page.locator(".sources").last.wait_for()
        assert faults_in_light_and_dark(page) == []
        page.locator(".turn").last.get_by_text("Quote").first.click()
        page.locator(".turn").last.locator(".confidence").click()
        assert faults_in_light_and_dark(page) == []
        page.get_by_role("button", name="Past conversations").click()
        page.locator(".past button").first.wait_for()
        assert faults_in_light_and_dark(page) == []
        page.keyboard.press("Control+k")
        page.locator("#cv-search-box").fill("gain")
        page.locator("#cv-results .hit .excerpt").first.wait_for()
        assert faults_in_light_and_dark(page) == []
        page.locator("#cv-results .hit:has(.excerpt)").first.click()
        page.locator("mark.evidence").first.wait_for()
        assert faults_in_light_and_dark(page) == []


@pytest.mark.parametrize("width", [1600, 360])
def test_axe_finds_no_violation_on_the_title_page(browser: Browser, example_server: Served, width: int) -> None:
    view = {"width": width, "height": 800}
    with visiting(browser, example_server.url, viewport=view, color_scheme="light") as page:
        page.locator("main .chapter").first.wait_for()
        assert faults_in_light_and_dark(page) == []
