"""Rating an answer in the reader page and in the widget; the real server stores it in a real Postgres."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from chapterverse.settings import Settings
from tests.browser.chromium import ask, shoot, visiting
from tests.browser.hosts import hosting
from tests.browser.test_access import faults
from tests.browser.test_widget import HOST_PAGES, launcher
from tests.served import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUESTION = "What is a node in ROS 2?"


@pytest.fixture
def page(browser: Browser, small_server: Served) -> Iterator[Page]:
    with visiting(browser, small_server.url) as page:
        yield page


def stored_feedback(page: Page, server: Served, name: str = "chapterverse.session") -> Any:
    """The feedback that the server stored for the last answer of the page's session."""
    session = page.evaluate("name => sessionStorage.getItem(name)", name)
    return server.http.get(f"/sessions/{session}").json()["messages"][-1]["feedback"]


def test_rating_is_stored_at_once_and_shown_after_a_reload(page: Page, small_server: Served) -> None:
    ask(page, QUESTION)
    up, down = (page.get_by_role("button", name=name, exact=True) for name in ("Helpful", "Not helpful"))
    expect(up).to_have_attribute("aria-pressed", "false")
    up.click()
    expect(page.locator(".rating [role=status]")).to_have_text("Thank you.")
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("What is wrong with it?")).to_be_hidden()
    assert stored_feedback(page, small_server)["rating"] == "up"
    for thumb in (up, down):
        box = thumb.bounding_box()
        assert box and min(box["width"], box["height"]) >= 24
    page.reload()
    expect(up).to_have_attribute("aria-pressed", "true")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "true")
    expect(up).to_have_attribute("aria-pressed", "false")
    assert stored_feedback(page, small_server)["rating"] == "down"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reason_can_be_given_with_the_keyboard(browser: Browser, small_server: Served, scheme: str) -> None:
    with visiting(browser, small_server.url, color_scheme=scheme) as page:
        ask(page, QUESTION)
        page.get_by_role("button", name="Not helpful").press("Enter")
        reason = page.get_by_label("What is wrong with it?")
        expect(reason).to_be_focused()
        assert faults(page) == []
        shoot(page, f"27-feedback-{scheme}")
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Not helpful")).to_be_focused()
        expect(reason).to_be_hidden()
        page.keyboard.press("Space")
        expect(reason).to_be_focused()
        page.keyboard.type("Something is m")
        page.keyboard.press("Tab")
        page.keyboard.type("Which camera? <b>🤖</b>")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator(".rating [role=status]")).to_contain_text("the reason is stored")
        expect(reason).to_be_hidden()
        expect(page.get_by_role("button", name="Not helpful")).to_be_focused()
        feedback = stored_feedback(page, small_server)
        assert (feedback["reason"], feedback["comment"]) == ("incomplete", "Which camera? <b>🤖</b>")


def test_failed_rating_of_a_refusal_shows_the_error(page: Page) -> None:
    ask(page, "Who won the football world cup of 1998?")
    page.locator(".refusal").wait_for()
    body = '{"error_code": "not_found", "message": "There is no such turn."}'
    page.route("**/feedback", lambda route: route.fulfill(status=404, body=body, content_type="application/json"))
    page.get_by_role("button", name="Not helpful").click()
    expect(page.locator(".rating [role=status]")).to_contain_text("Not stored. There is no such turn.")
    expect(page.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "false")


def test_widget_stores_a_rating(browser: Browser, small_home: Path) -> None:
    with hosting(HOST_PAGES) as site:
        settings = Settings.load(chapterverse_home=small_home, api_rate_limit=10_000, cors_origins=site.url)
        with serve(settings) as server:
            site.chapterverse = server.url
            with visiting(browser, site.url, "/bare.html", asks=server.url) as page:
                launcher(page).click()
                ask(page, QUESTION)
                page.get_by_role("button", name="Not helpful").click()
                reason = page.get_by_label("What is wrong with it?")
                expect(reason).to_be_focused()
                page.keyboard.press("Escape")
                expect(reason).to_be_hidden()
                expect(page.locator("chapterverse-widget .panel")).to_be_visible()  # Escape closed only the reason
                page.get_by_role("button", name="Helpful", exact=True).click()
                expect(page.locator(".rating [role=status]")).to_have_text("Thank you.")
                assert stored_feedback(page, server, f"chapterverse.widget {server.url}/")["rating"] == "up"
