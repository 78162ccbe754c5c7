"""A real Chromium, driven by Playwright. Where there is none, its tests are skipped and the run ends with what to do.

A visit fails when the page logs an error, breaks its policy, or asks anyone but its own server.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request, expect, sync_playwright

SCREENSHOTS = Path(__file__).parents[2] / ".cache" / "screenshots"
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/snap/bin/chromium",
)
MISSING = (
    "no Chromium. Get one with `apt-get install -y chromium-headless-shell` or "
    "`.venv/bin/playwright install chromium`, or name yours in CHROMIUM."
)
# As root in a container, without a display, and silent towards the network.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDE = {"width": 1400, "height": 900}
PATIENCE = 30_000  # milliseconds for a state to come about, on a machine that has much else to do

expect.set_options(timeout=PATIENCE)


def find_chromium(playwright: Playwright) -> str | None:
    """The one that is named, else one that is installed, else Playwright's own."""
    if named := os.environ.get("CHROMIUM"):
        return named
    installed = [path for name in NAMES if (path := shutil.which(name))]
    return next(
        (path for path in (*installed, *PLACES, playwright.chromium.executable_path) if Path(path).exists()), None
    )


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = find_chromium(playwright)
        if found is None:
            pytest.skip(MISSING)
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def visiting(browser: Browser, url: str, path: str = "/", asks: str = "", **options: Any) -> Iterator[Page]:
    """A fresh visitor on the page, whose complaints fail the test; `asks` is another server that the page may ask."""
    context = browser.new_context(**({"viewport": WIDE, "reduced_motion": "reduce"} | options))
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    known = {urlsplit(url).netloc, urlsplit(asks).netloc, ""}

    def hear(message: ConsoleMessage) -> None:
        # A status that the page shows in its own words is logged by the browser, too.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            complaints.append(message.text)

    def watch(request: Request) -> None:
        if urlsplit(request.url).netloc not in known:
            complaints.append(request.url)

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", watch)
    page.goto(url + path)
    yield page
    context.close()
    assert complaints == []


def ask(page: Page, question: str) -> None:
    """Type a question and send it."""
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def shown(chunks: Iterable[str]) -> str:
    """The text of an answer as it is shown: chips instead of markers, behind the end of their sentence."""
    behind = re.sub(r" ((?: ?\[\d+\])+)([.,;:!?]+)", r"\2 \1", "".join(chunks))
    return re.sub(r"\[(\d+)\]", r"\1", behind)


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the state, where somebody wants to look at it: `SCREENSHOTS=1`."""
    if not os.environ.get("SCREENSHOTS"):
        return
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def in_view(page: Page, selector: str) -> bool:
    """Whether the first such element is wholly inside the window and below the bar."""
    box = page.locator(selector).first.bounding_box()
    bar = page.locator(".bar").bounding_box()
    size = page.viewport_size
    assert box and bar and size
    return bar["height"] <= box["y"] and box["y"] + box["height"] <= size["height"]
