"""The Swagger page in a real browser shows every route and calls only its own server."""

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import open_browser, visiting
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_page_shows_every_route(example_server: Served) -> None:
    with open_browser() as browser, visiting(browser, example_server.url, "/docs") as page:
        expect(page.locator(".opblock-summary-path").first).to_be_visible()
        paths = example_server.http.get("/openapi.json").json()["paths"]
        assert page.locator(".opblock").count() == sum(len(methods) for methods in paths.values())
