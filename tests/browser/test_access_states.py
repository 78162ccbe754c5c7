"""axe finds no accessibility problem in rare states, in light and dark, on wide and narrow screens."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from chapterverse.api.openapi.examples import EVENTS
from chapterverse.evaluation.usage_page import make_usage_page
from chapterverse.settings import Settings
from tests.browser.chromium import ask, visiting
from tests.browser.shelf import Shelf, scripted_server
from tests.browser.test_access import faults_in_light_and_dark
from tests.browser.test_finding import find
from tests.browser.test_keeping import CHUNK, ERROR, hold_back
from tests.browser.test_reader_page import LONG_PAGE, PAGES, answer_with
from tests.evaluation.test_usage import report
from tests.scripted import Scripted
from tests.served import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = [1400, 360]


@pytest.fixture(scope="module")
def several_books(editions_home: Path, postgres_url: str) -> Iterator[Served]:
    """Starts before the browser, because an open browser blocks the event loop that filling a home needs."""
    with serve(Settings.load(chapterverse_home=editions_home, database_url=postgres_url)) as served:
        yield served


@pytest.fixture(scope="module")
def server(several_books: Served, scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(PAGES), scripted, api_rate_limit=100_000) as running:
        yield running


def open_panel(page: Page) -> None:
    if page.locator("#cv-ask-bar").is_visible():
        page.locator("#cv-ask-bar").click()


def wait(page: Page) -> None:
    open_panel(page)
    hold_back(page, EVENTS[0])
    ask(page, "anything")
    page.locator(".waiting").wait_for()


def stop(page: Page) -> None:
    open_panel(page)
    hold_back(page, EVENTS[0], CHUNK)
    ask(page, "anything")
    page.locator(".answer .chip[href]").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".stopping").wait_for()


def fail(page: Page) -> None:
    open_panel(page)
    answer_with(page, EVENTS[0], CHUNK, ERROR)
    ask(page, "anything")
    page.locator(".failure").wait_for()


def find_nothing(page: Page) -> None:
    find(page, "zxqv")
    page.locator(".ask-instead").wait_for()


def open_contents(page: Page) -> None:
    button = page.get_by_role("button", name="Contents")
    if button.is_visible():
        button.click()
    expect(page.locator("#cv-contents")).to_be_visible()


def list_past(page: Page) -> None:
    stop(page)
    page.get_by_role("button", name="Past conversations").click()
    page.locator(".past .reopen").wait_for()


@pytest.mark.parametrize("state", [wait, stop, fail, find_nothing, open_contents, list_past])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation_in_rare_states_of_a_page(
    browser: Browser, server: Served, state: Callable[[Page], None], width: int
) -> None:
    view = {"width": width, "height": 800}
    path = f"/read/{LONG_PAGE.page_id}"
    with visiting(browser, server.url, path, viewport=view, color_scheme="light") as page:
        page.locator("main .headed").first.wait_for()
        state(page)
        assert faults_in_light_and_dark(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation_without_a_book_and_without_a_key(
    browser: Browser, scripted: Scripted, width: int
) -> None:
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": "light"}
    with scripted_server(Shelf(), scripted) as server, visiting(browser, server.url, **options) as page:
        page.locator("main pre").wait_for()
        assert faults_in_light_and_dark(page) == []
    with (
        scripted_server(Shelf(PAGES), scripted, api_keys="x") as server,
        visiting(browser, server.url, **options) as page,
    ):
        page.locator("#cv-key[open]").wait_for()
        assert faults_in_light_and_dark(page) == []
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Enter a key").wait_for()
        assert faults_in_light_and_dark(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation_with_several_books(several_books: Served, browser: Browser, width: int) -> None:
    view = {"width": width, "height": 800}
    with visiting(browser, several_books.url, viewport=view, color_scheme="light") as page:
        page.locator("main .chapter").first.wait_for()
        assert faults_in_light_and_dark(page) == []
        choice = page.get_by_label("Book", exact=True).bounding_box()
        assert choice and choice["width"] >= 100, "the name of the book is readable"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_violation_in_the_usage_report(browser: Browser, tmp_path: Path, width: int) -> None:
    (tmp_path / "report.html").write_text(make_usage_page(report()), "utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.goto(f"file://{tmp_path}/report.html")
    expect(page.locator("h1")).to_have_text("What readers asked")
    assert page.locator("svg").count() > 0
    assert faults_in_light_and_dark(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
