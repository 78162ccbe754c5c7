"""Fixtures of the browser tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import open_browser
from tests.scripted import Scripted


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def scripted() -> Scripted:
    return Scripted()
