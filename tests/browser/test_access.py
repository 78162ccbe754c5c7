"""What axe finds wrong for readers with a screen reader, a keyboard or weak eyes: nothing, in any state."""

from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import visiting
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def faults(page: Page) -> list[str]:
    page.evaluate(f"{AXE}; 0")
    found = page.evaluate("axe.run(document, { rules: { 'target-size': { enabled: true } } })")
    assert len(found["passes"]) > 20
    return [f"{fault['id']}: {node['html']}" for fault in found["violations"] for node in fault["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 360])
def test_axe_finds_nothing(browser: Browser, example_server: Served, scheme: str, width: int) -> None:
    view = {"width": width, "height": 800}
    pages = example_server.http.get("/pages").json()["pages"]
    path = next(f"/read/{one['page_id']}" for one in pages if one["title"] == "Control Loops and Timing")
    with visiting(browser, example_server.url, path, viewport=view, color_scheme=scheme) as page:
        page.locator("main h1").wait_for()
        assert faults(page) == []
        page.locator("main .ask-section").first.press("Enter")
        page.keyboard.type("Who won the football world cup of 1998?")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Search the whole book").wait_for()
        page.keyboard.type("What does a closed-loop controller measure?")
        page.keyboard.press("Enter")
        page.locator(".sources").last.wait_for()
        assert faults(page) == []
        page.locator(".turn").last.get_by_text("Quote").first.click()
        page.locator(".turn").last.locator(".confidence").click()
        assert faults(page) == []
        page.get_by_role("button", name="Past conversations").click()
        page.locator(".past button").first.wait_for()
        assert faults(page) == []
        page.keyboard.press("Control+k")
        page.locator("#cv-search-box").fill("gain")
        page.locator("#cv-results .hit .excerpt").first.wait_for()
        assert faults(page) == []
        page.locator("#cv-results .hit:has(.excerpt)").first.click()
        page.locator("mark.evidence").first.wait_for()
        assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1600, 360])
def test_axe_finds_nothing_on_the_title_page(browser: Browser, example_server: Served, scheme: str, width: int) -> None:
    view = {"width": width, "height": 800}
    with visiting(browser, example_server.url, viewport=view, color_scheme=scheme) as page:
        page.locator("main .chapter").first.wait_for()
        assert faults(page) == []
