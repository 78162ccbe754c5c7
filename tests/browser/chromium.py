"""A real Chromium, driven by Playwright. Without one, browser tests are skipped and the run ends with a hint.

A visit fails if the page logs an error, violates its content security policy or sends a request to another server.
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
# As root in a container, without a display and without requests of the browser itself.
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
PATIENCE = 30_000  # milliseconds to wait for a state, also on a busy machine

expect.set_options(timeout=PATIENCE)


def find_chromium(playwright: Playwright) -> str | None:
    """Returns the browser that CHROMIUM names, otherwise an installed one, otherwise Playwright's own."""
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
    """Opens the page in a new context. Console errors fail the test. `asks`: another server the page may call."""
    context = browser.new_context(**({"viewport": WIDE, "reduced_motion": "reduce"} | options))
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    problems: list[str] = []
    known = {urlsplit(url).netloc, urlsplit(asks).netloc, ""}

    def hear(message: ConsoleMessage) -> None:
        # The browser also logs HTTP errors that the page handles.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            problems.append(message.text)

    def watch(request: Request) -> None:
        if urlsplit(request.url).netloc not in known:
            problems.append(request.url)

    page.on("console", hear)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", watch)
    page.goto(url + path)
    yield page
    context.close()
    assert problems == []


def ask(page: Page, question: str) -> None:
    """Types a question and sends it after the answer before it has ended. It cannot be sent earlier."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")


def shown(chunks: Iterable[str]) -> str:
    """Converts the text of an answer to how it is shown: markers become chips, after the end of their sentence."""
    behind = re.sub(r" ((?: ?\[\d+\])+)([.,;:!?]+)", r"\2 \1", "".join(chunks))
    return re.sub(r"\[(\d+)\]", r"\1", behind)


def shoot(page: Page, name: str) -> None:
    """Saves a screenshot if `SCREENSHOTS=1`."""
    if not os.environ.get("SCREENSHOTS"):
        return
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")


def in_view(page: Page, selector: str) -> bool:
    """Whether the first matching element is completely inside the window and below the top bar."""
    box = page.locator(selector).first.bounding_box()
    bar = page.locator(".bar").bounding_box()
    size = page.viewport_size
    assert box and bar and size
    return bar["height"] <= box["y"] and box["y"] + box["height"] <= size["height"]
