"""The menu of books and versions in the header, on a real server in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.editions import facts
from playwright.sync_api import Browser, Page, expect

from chapterverse.settings import Settings
from tests.browser.chromium import ask, shoot, visiting
from tests.served import Served, serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PORT = facts(parts=1)[0]


@pytest.fixture(scope="module")
def server(editions_home: Path, small_home: Path, postgres_url: str) -> Iterator[Served]:
    """Requests `small_home`, too: no home can be filled once the browser is open."""
    settings = Settings.load(chapterverse_home=editions_home, database_url=postgres_url, api_rate_limit=100_000)
    with serve(settings) as served:
        yield served


def ask_and_expect(page: Page, text: str) -> None:
    """Asks, and expects this text in the last turn."""
    ask(page, PORT.question)
    expect(page.locator(".turn").last).to_contain_text(text)


def test_switching_book_and_version_changes_the_answers(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url) as page:
        book = page.get_by_label("Book", exact=True)
        expect(book.locator("option")).to_have_text(["All books", "The Harbor", "robots"])
        expect(page.get_by_label("Version", exact=True)).to_have_count(0)
        book.select_option("The Harbor")
        page.wait_for_url("**/editions/harbor/**")
        version = page.get_by_label("Version", exact=True)
        expect(version.locator("option")).to_have_text(["2.0 (latest)", "1.0"])
        ask_and_expect(page, PORT.text_in("2.0").rstrip("."))
        expect(page.locator(".older")).to_have_count(0)
        version.select_option("1.0")
        page.wait_for_url("**/editions/harbor@1.0/**")
        expect(page.get_by_label("Version", exact=True)).to_have_value("/editions/harbor@1.0/")
        expect(page.locator(".older")).to_have_text("You are reading version 1.0. The latest is 2.0.")
        ask_and_expect(page, PORT.text_in("1.0").rstrip("."))
        expect(page.locator(".card .crumb").last).to_contain_text("harbor 1.0 › ")
        shoot(page, "books-switched")
        page.get_by_label("Book", exact=True).select_option("All books")
        page.wait_for_url(f"{server.url}/**")
        expect(page.get_by_label("Version", exact=True)).to_have_count(0)


def test_every_page_of_an_old_version_leads_to_the_latest(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url, "/editions/harbor@1.0/") as page:
        page.locator(".chapter a").first.click()
        page.locator("main .turning").wait_for()
        expect(page.locator(".older")).to_have_count(1)
        page.locator(".brand").click()
        page.locator(".cover").wait_for()
        expect(page.locator(".older")).to_have_count(1)
        page.locator(".older a").click()
        page.wait_for_url("**/editions/harbor/")
        expect(page.locator(".older")).to_have_count(0)


def test_contents_list_all_books_and_a_page_names_its_book(browser: Browser, server: Served) -> None:
    with visiting(browser, server.url) as page:
        expect(page.locator(".contents h2")).to_have_text(["The Harbor 2.0", "robots"])
        shoot(page, "books-all")
        page.set_viewport_size({"width": 390, "height": 800})
        shoot(page, "books-phone")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.set_viewport_size({"width": 1400, "height": 900})
        page.locator(".contents a").first.click()
        expect(page.locator("main .module")).to_contain_text("harbor 2.0")
        shoot(page, "books-page")
        served = page.locator("main .module").inner_text()
        page.reload()
        expect(page.locator("main .module")).to_have_text(served)
        page.get_by_label("Book", exact=True).select_option("robots")
        page.wait_for_url("**/editions/robots/")
        expect(page.locator(".contents h2")).to_have_count(0)
        expect(page.get_by_label("Version", exact=True)).to_have_count(0)


def test_menu_of_books_is_loaded_after_a_key_is_entered(
    browser: Browser, editions_home: Path, postgres_url: str
) -> None:
    key = "secret-key-of-mine"
    settings = Settings.load(chapterverse_home=editions_home, database_url=postgres_url, api_keys=key)
    with serve(settings) as served, visiting(browser, served.url) as page:
        assert page.locator("#book-switch").inner_html() == ""
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Open the book").click()
        expect(page.get_by_label("Book", exact=True).locator("option")).to_have_count(3)
        expect(page.locator(".contents h2")).to_have_text(["The Harbor 2.0", "robots"])


def test_single_book_has_no_menu(browser: Browser, small_server: Served) -> None:
    with visiting(browser, small_server.url) as page:
        expect(page.locator("main h1")).to_be_visible()
        assert page.locator("#book-switch").inner_html() == ""
        assert "books.js" not in page.content()
