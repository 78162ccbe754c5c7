"""Loading the page: number of requests, no repeated requests, and time until it can be used."""

import os
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import visiting
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Median milliseconds from the start of the navigation until the question field and the contents are there. The second
# limit applies on a machine whose load is higher than its number of cores.
USABLE, WITH_OTHERS = 100, 1000
LOADS = 5
WATCH = """new MutationObserver((_, watch) => {
    const field = document.querySelector("textarea.field");
    if (!field || field.disabled || !document.querySelector(".contents details a")) return;
    window.usable = performance.now();
    watch.disconnect();
}).observe(document, { childList: true, subtree: true });"""


def load(page: Page, url: str) -> tuple[float, list[str]]:
    """Loads the page; returns the milliseconds until it can be used and the files that were fetched."""
    page.goto(url)
    page.locator("main h1").wait_for()
    page.wait_for_load_state("networkidle")
    entries: list[dict[str, Any]] = page.evaluate(
        "performance.getEntriesByType('resource').map(({ name, transferSize }) => ({ name, transferSize }))"
    )
    fetched = [entry["name"].removeprefix(url) for entry in entries if entry["transferSize"]]
    return page.evaluate("window.usable"), fetched


def test_page_loads_with_few_requests_and_in_time(browser: Browser, example_server: Served) -> None:
    url, times = f"{example_server.url}/", []
    example_server.http.get(
        "/pages"
    )  # the first to ask for the table of contents after a start may have to wait for it
    for _ in range(LOADS):
        with visiting(browser, example_server.url, "/livez") as page:
            page.add_init_script(WATCH)
            cold, fetched = load(page, url)
            assert len(fetched) <= 7, "more than a style, two scripts, the icon, two fonts and the suggestions"
            assert "pages" not in fetched, "the contents are part of the page"
            warm, again = load(page, url)
            assert {name.partition("?")[0] for name in again} <= {"suggestions"}, (
                "files are cached without revalidation"
            )
            times += [cold, warm]
    others, cores = os.getloadavg()[0], os.cpu_count() or 1
    cold, warm = median(times[::2]), median(times[1::2])
    print(f"usable after {cold:.0f} ms cold, {warm:.0f} ms warm; load {others:.1f} on {cores} cores")
    assert max(cold, warm) < (USABLE if others < cores else WITH_OTHERS)
