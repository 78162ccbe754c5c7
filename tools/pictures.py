"""Pictures of the reader page for the documentation, taken in Chromium from a server that has the example book.

    BOOK_TITLE="Physical AI" chapterverse serve &
    python -m tools.pictures http://127.0.0.1:8000 docs/images

Pictures of several states stand side by side. They are WebP, made by the browser itself.
"""

import base64
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import FLAGS, ask, find_chromium

DESKTOP, LAPTOP, PHONE = (1680, 1000), (1280, 800), (390, 844)
QUESTION = "What is a quality of service profile?"
REFUSED = "Who won the football world cup of 1998?"
SUGGESTED = ("What is a node in ROS 2?", "How do I launch several nodes at once?", "Why simulate?")
QUALITY = 0.55
TO_WEBP = """async ([pictures, quality]) => {
    const images = await Promise.all(pictures.map(async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        return image;
    }));
    const gap = images.length > 1 ? 24 : 0;
    const canvas = document.createElement("canvas");
    canvas.width = images.reduce((width, image) => width + image.width + gap, -gap);
    canvas.height = Math.max(...images.map((image) => image.height));
    const context = canvas.getContext("2d");
    context.fillStyle = "#c9ccd3";
    context.fillRect(0, 0, canvas.width, canvas.height);
    images.reduce((left, image) => (context.drawImage(image, left, 0), left + image.width + gap), 0);
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


@contextmanager
def visiting(browser: Browser, url: str, size: tuple[int, int], scheme: str) -> Iterator[Page]:
    """A reader with a screen of this size, before any page is open."""
    phone = size == PHONE
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        has_touch=phone,
        is_mobile=phone,
    )
    page = context.new_page()
    offered = {"suggestions": [{"question": question, "page": ""} for question in SUGGESTED]}
    page.route("**/suggestions*", lambda route: route.fulfill(json=offered))
    page.goto(url)
    page.wait_for_load_state("networkidle")
    yield page
    context.close()


def open_page(page: Page, title: str) -> None:
    """Go to a page of the book by the table of contents."""
    page.goto(page.locator(".contents a", has_text=title).first.evaluate("link => link.href"))
    page.locator("main .headed").first.wait_for()
    page.wait_for_load_state("networkidle")


def answered(page: Page, question: str = QUESTION) -> None:
    """Ask, and wait for the end of the answer."""
    before = page.locator(".turn .tools").count()
    if page.locator("#cv-ask-bar").is_visible() and not page.locator("#cv-ask").is_visible():
        page.locator("#cv-ask-bar").click()
    ask(page, question)
    page.locator(".turn .tools").nth(before).wait_for()


def cite(page: Page) -> None:
    """Open the first source in the page."""
    page.locator(".answer .chip[href]").first.click()
    page.locator("mark.evidence").first.wait_for()


def wait(page: Page) -> None:
    """A question whose answer does not come."""
    page.route("**/chat/stream", lambda route: None)
    ask(page, "How are nodes tested?")
    page.locator(".waiting").wait_for()


def search(page: Page, words: str) -> None:
    """Search, and wait for passages."""
    page.keyboard.press("Control+k")
    page.locator("#cv-search-box").fill(words)
    page.locator(".hit .excerpt, .nothing").first.wait_for()


Step = Callable[[Page], object]
PAGE: Step = lambda page: open_page(page, "Nodes and Topics")  # noqa: E731
# Name -> screen, scheme, and steps; after each group of steps a picture is taken.
PICTURES: dict[str, tuple[tuple[int, int], str, Sequence[Sequence[Step]]]] = {
    "title": (LAPTOP, "light", [[]]),
    "page": (DESKTOP, "light", [[PAGE, lambda page: page.mouse.wheel(0, 420)]]),
    "answer": (DESKTOP, "light", [[PAGE, answered, cite]]),
    "refusal": (LAPTOP, "dark", [[PAGE, lambda page: answered(page, REFUSED)]]),
    "search": (LAPTOP, "light", [[PAGE, lambda page: search(page, "launch nodes")]]),
    "phone": (PHONE, "light", [[], [PAGE], [answered], [cite]]),
    "panel": (
        PHONE,
        "dark",
        [
            [PAGE, lambda page: page.locator("#cv-ask-bar").click()],
            [answered, lambda page: page.get_by_role("button", name="Not helpful").click()],
            [lambda page: page.get_by_role("button", name="Past conversations").click()],
            [lambda page: page.get_by_role("button", name="New conversation").click(), wait],
        ],
    ),
}


def main(url: str, folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        for name, (size, scheme, groups) in PICTURES.items():
            taken = []
            with visiting(browser, url, size, scheme) as page:
                for steps in groups:
                    for step in steps:
                        step(page)
                    page.wait_for_timeout(300)
                    taken.append(base64.b64encode(page.screenshot()).decode())
            blank = browser.new_page()
            (folder / f"{name}.webp").write_bytes(base64.b64decode(blank.evaluate(TO_WEBP, [taken, QUALITY])))
            blank.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
