"""Takes pictures of the reader page and the widget for the documentation, in Chromium.

    python -m tools.pictures docs/images [NAME…]

Starts the servers that it needs. The picture of the widget in Docusaurus needs `make test-docusaurus` first. For each
state, a sheet (`states/NAME.webp`) shows it on a desktop and a phone in light mode, and on a laptop and a phone in dark
mode, each in full size. A state is checked before its picture is taken: its subject must be in view. Answers are those
of the example book without a key, and suggestions are the server's. Pictures are WebP, encoded by the browser.
"""

import asyncio
import base64
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from tests.api.stream_snapshot import ingest_into
from tests.browser.chromium import FLAGS, ask, find_chromium
from tests.browser.generators import SITES, build, build_sphinx
from tests.browser.hosts import hosting
from tests.served import Served, serve

from bench import editions
from chapterverse import SyncBook
from chapterverse.evaluation.suggestion_store import Shelf, refresh
from chapterverse.evaluation.usage import make_usage_report
from chapterverse.evaluation.usage_page import make_usage_page
from chapterverse.ingestion.options import SourceOptions
from chapterverse.settings import Settings
from chapterverse.wiring import open_services

ROOT = Path(__file__).parents[1]
DESKTOP, LAPTOP, PHONE = (1600, 900), (1280, 800), (390, 844)
SHEET = [("light", (DESKTOP, PHONE)), ("dark", (LAPTOP, PHONE))]
QUESTION = "What is a quality of service profile?"
FOLLOW_UP = "And what is latched data?"
REFUSED = "How much does Isaac Sim cost?"
OFF_TOPIC = "Who won the football world cup of 1998?"
ASKED = [
    "What does a PID controller compute?",
    "What is a node?",
    "What is a quality of service profile?",
    "How do I install ROS 2 on Windows?",
    "Does ROS 2 run on Windows 11?",
    "How much does Isaac Sim cost?",
    "Is Isaac Sim free?",
    "What is Gazebo?",
]
OF_SITE = "What must the keepers do when the lamp fails?"
QUALITY, SHEET_QUALITY = 0.55, 0.35
# Rows of pictures, one below the other.
TO_WEBP = """async ([rows, quality]) => {
    const load = async (data) => {
        const image = new Image();
        image.src = `data:image/png;base64,${data}`;
        await image.decode();
        return { image, width: image.width, height: image.height };
    };
    const loaded = await Promise.all(rows.map((row) => Promise.all(row.map(load))));
    const gap = 24;
    const widths = loaded.map((row) => row.reduce((width, each) => width + each.width + gap, -gap));
    const heights = loaded.map((row) => Math.max(...row.map((each) => each.height)));
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(...widths);
    canvas.height = heights.reduce((sum, each) => sum + each + gap, -gap);
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.fillStyle = "#c9ccd3";
    context.fillRect(0, 0, canvas.width, canvas.height);
    let top = 0;
    loaded.forEach((row, index) => {
        row.reduce((left, each) => {
            context.drawImage(each.image, left, top, each.width, each.height);
            return left + each.width + gap;
        }, 0);
        top += heights[index] + gap;
    });
    return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""
# A page that no generator made.
PLAIN = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The Skerry Light</title><style>
:root { color-scheme: light dark; } body { max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
body { font: 1.1rem/1.6 Georgia; }
a { color: #a4133c; } @media (prefers-color-scheme: dark) { a { color: #ff8fa3; } }
</style><script src="http://chapterverse.test/widget.js" data-title="Ask the keepers" async></script>
<h1>The Skerry Light</h1><p>A handbook for <a href="#">those who keep it</a>, in plain HTML.</p></html>"""
DRAWN = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" width="720" height="400">
<rect width="720" height="400" fill="#dbe9f4"/><circle cx="590" cy="90" r="42" fill="#f6d77a"/>
<path d="M0 300 q90 -30 180 0 t180 0 t180 0 t180 0 v100 h-720z" fill="#5b87ad"/><path d="M230 330 l40 -60 h160 l50 60z"
fill="#6d6a64"/><path d="M315 270 l14 -160 h42 l14 160z" fill="#fff" stroke="#b23a3a" stroke-width="4"/>
<path d="M322 200 h56 l3 34 h-62z" fill="#b23a3a"/><rect x="326" y="78" width="48" height="32" fill="#ffe27a"/>
<path d="M320 78 l30 -24 l30 24z" fill="#b23a3a"/></svg>"""
PICTURED = """# The light

The lamp is seen from eighteen miles away, because it stands sixty feet above the highest tide.

![The tower on its rock, with the lamp room at the top](tower.svg)

## The tower

The tower has three parts: the base, the stair and the lamp room. The keepers paint it every other summer.
"""
# Holds back the stream of an answer after its first sentences.
HELD_BACK = """() => {
    const fetched = window.fetch;
    window.fetch = async (...asked) => {
        const answer = await fetched(...asked);
        if (!String(asked[0]?.url ?? asked[0]).endsWith("chat/stream")) return answer;
        const text = await answer.text();
        const body = new ReadableStream({
            start: (stream) => {
                stream.enqueue(new TextEncoder().encode(text.split(/data: {"type": ?"sources"/)[0]));
                asked[1].signal.addEventListener("abort", () => stream.error(asked[1].signal.reason));
            },
        });
        return new Response(body, { headers: answer.headers });
    };
}"""

Step = Callable[[Page], object]


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def served(fill: Callable[[Path], object] | None = None, **settings: Any) -> Iterator[Served]:
    """A server whose home is filled first and whose suggestions are ready."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        if fill is not None:
            apart(partial(fill, home))
        known = Settings.load(chapterverse_home=home, api_rate_limit=100_000, **settings)
        if fill is not None and not known.api_keys:
            apart(partial(asyncio.run, _suggest(known)))
        with serve(known) as server:
            yield server


def apart(work: Callable[[], object]) -> None:
    """Run a function in another thread: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


async def _suggest(settings: Settings) -> None:
    async with open_services(settings) as services:
        await refresh(Shelf(settings.chapterverse_home), services)


def example(home: Path) -> None:
    """The example book."""
    with SyncBook.open(home) as book:
        book.ingest(ROOT / "examples/book")


def several(home: Path) -> None:
    """Two versions of one book, and another book."""
    with SyncBook.open(home) as book:
        for version in editions.VERSIONS:
            docs = editions.write_docs(home.with_name(version) / "docs", version, parts=3)
            book.ingest(docs, book=editions.BOOK, version=version, title="The Harbor")
        book.ingest(ROOT / "examples/book", book="robots", title="Physical AI")


def pictured(home: Path) -> None:
    """A page with an image."""
    folder = home.with_name("light")
    folder.mkdir()
    (folder / "tower.svg").write_text(DRAWN, "utf-8")
    (folder / "light.md").write_text(PICTURED, "utf-8")
    with SyncBook.open(home) as book:
        book.ingest(folder)


@contextmanager
def reported() -> Iterator[str]:
    """The author's report on questions about the example book."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        apart(partial(example, home))
        settings = Settings.load(chapterverse_home=home, api_rate_limit=100_000)
        with serve(settings) as server:
            for question in ASKED:
                turn = server.http.post("/chat", json={"query": question}).json()["turn_id"]
                if question == ASKED[0]:
                    rating = {"turn_id": turn, "rating": "down", "reason": "incomplete", "comment": "Which unit?"}
                    server.http.post("/feedback", json=rating)
        page = Path(folder) / "report.html"
        apart(lambda: page.write_text(asyncio.run(_report(settings)), "utf-8"))
        yield page.as_uri()


async def _report(settings: Settings) -> str:
    until = datetime.now(UTC)
    since = until - timedelta(days=6)
    async with open_services(settings) as services:
        asked = await services.conversations.asked(since, until)
        return make_usage_page(await make_usage_report(asked, services, since, until))


@contextmanager
def site(generator: str) -> Iterator[str]:
    """A published site with the widget. Its pages are the book of the server that it asks."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if generator == "plain":
            built = scratch
            (built / "index.html").write_text(PLAIN, "utf-8")
        else:
            built = build_sphinx(scratch, html_theme="furo") if generator == "furo" else build(generator, scratch)
        with hosting(built) as host:

            def fill(home: Path) -> None:
                book = str(SITES / "pages") if generator == "plain" else f"{host.url}/"
                ingest_into(home, book, SourceOptions(allow_private=True, delay=0))

            with served(fill, cors_origins=host.url) as server:
                host.chapterverse = server.url
                yield host.url


# ── what a reader does ───────────────────────────────────────────────────────────────────────────────────────────────


def open_page(page: Page, title: str = "Nodes and Topics") -> None:
    """Open a page of the book from the table of contents."""
    page.goto(page.locator(".contents a", has_text=title).first.evaluate("link => link.href"))
    page.locator("main .headed").first.wait_for()
    page.wait_for_load_state("networkidle")


def open_panel(page: Page) -> None:
    """On a phone, the bar opens the panel."""
    if page.locator("#cv-ask-bar").is_visible() and not page.locator("#cv-ask").is_visible():
        page.locator("#cv-ask-bar").click()


def answered(page: Page, question: str = QUESTION) -> None:
    """Ask, and wait for the end of the answer."""
    before = page.locator(".turn .tools").count()
    open_panel(page)
    ask(page, question)
    page.locator(".turn .tools").nth(before).wait_for()
    page.wait_for_load_state("networkidle")


def refused(page: Page) -> None:
    """Ask something that the book does not say."""
    answered(page, REFUSED)


def cite(page: Page) -> None:
    """Open the first source in the page."""
    page.locator(".answer .chip[href]").first.click()
    page.locator("mark.evidence").first.wait_for()


def to_the_end(page: Page) -> None:
    """Scroll to the end of an answer."""
    page.locator(".turns").evaluate("node => node.scrollTo(0, node.scrollHeight)")


def follow_up(page: Page) -> None:
    """Ask a question that depends on the previous one."""
    answered(page, FOLLOW_UP)
    page.locator(".question").last.scroll_into_view_if_needed()
    page.locator(".turns").evaluate("node => node.scrollBy(0, -260)")


def open_contents(page: Page) -> None:
    """On narrow screens the contents are a drawer."""
    button = page.locator("#cv-contents-button")
    if button.is_visible():
        button.click()
    page.wait_for_timeout(300)


def old_version(page: Page) -> None:
    """Open a page of a version that is not the latest."""
    page.goto(f"{page.url}editions/{editions.BOOK}@{editions.VERSIONS[0]}/")
    open_page(page, page.locator(".contents a").first.text_content() or "")


def explained(page: Page) -> None:
    """Show the quote of a source, and what the confidence means."""
    page.locator(".quoting").first.click()
    page.locator(".confidence").first.click()


def wait(page: Page) -> None:
    """Ask a question whose answer does not arrive."""
    page.route("**/chat/stream", lambda route: None)
    open_panel(page)
    ask(page, "How are nodes tested?")
    page.locator(".waiting").wait_for()


def stop(page: Page) -> None:
    """Stop an answer."""
    page.evaluate(f"({HELD_BACK})()")
    open_panel(page)
    ask(page, QUESTION)
    page.locator(".answer .chip").first.wait_for()
    page.get_by_role("button", name="Stop").click()
    page.locator(".stopping").wait_for()


def break_off(page: Page) -> None:
    """Lose the connection during an answer."""

    def cut(route: Any) -> None:
        whole = route.fetch().text()
        route.fulfill(body=re.split(r'data: {"type": ?"sources"', whole)[0], content_type="text/event-stream")

    page.route("**/chat/stream", cut)
    open_panel(page)
    ask(page, QUESTION)
    page.locator(".failure").wait_for()


def search(page: Page, words: str) -> None:
    """Search, and wait for passages."""
    page.keyboard.press("Control+k")
    page.locator("#cv-search-box").fill(words)
    page.locator(".hit .excerpt, .nothing").first.wait_for()


def select(page: Page) -> None:
    """Select a paragraph."""
    page.locator("main .headed + p").first.evaluate(
        "node => { node.scrollIntoView({ block: 'center' }); getSelection().selectAllChildren(node); }"
    )
    page.get_by_role("button", name="Ask about this", exact=True).last.wait_for()


def ask_selected(page: Page) -> None:
    """Ask about one section only."""
    page.locator(".ask-section").nth(1).evaluate("button => button.click()")
    answered(page, "Which port does it use?")


def ask_widget(page: Page) -> None:
    """Open the widget and ask."""
    launcher = page.locator("chapterverse-widget .launcher")
    launcher.wait_for()
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    if dark and page.locator("[data-md-color-scheme=default]").count():
        page.locator("label.md-header__button[for^=__palette]:not([hidden])").first.click()
        page.locator("body[data-md-color-scheme=slate]").wait_for()
    if dark and page.locator("html[data-theme=light]").count():  # Docusaurus, as its button does
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.locator(f".widget[data-theme={'dark' if dark else 'light'}]").wait_for(state="attached")
    if launcher.is_visible():
        launcher.click()
    page.get_by_label("Your question").fill(OF_SITE)
    page.keyboard.press("Enter")
    page.locator("chapterverse-widget .turn .tools").wait_for()
    page.wait_for_load_state("networkidle")


def press(name: str) -> Step:
    """Press a button."""
    return lambda page: page.get_by_role("button", name=name).first.click()


def wheel(pixels: int) -> Step:
    """Scroll the page."""
    return lambda page: page.mouse.wheel(0, pixels)


# ── the pictures ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class State:
    """A state on a sheet: the page, the steps to reach it, what must be in view then, and the browser's settings."""

    shows: str
    steps: Sequence[Step] = ()
    where: str = "book"
    options: Mapping[str, Any] = field(default_factory=dict)


STATES: dict[str, State] = {
    "title": State(".cover h1"),
    "several-books": State(".chapter >> nth=0", where="several"),
    "old-version": State("main h1", [old_version], where="several"),
    "page": State("main .code-head >> nth=0", [open_page, wheel(420)]),
    "image": State("main figure img", [lambda page: open_page(page, "The light")], where="pictured"),
    "contents": State(".contents [aria-current=page]", [open_page, open_contents]),
    "without-script": State(".cover h1", options={"java_script_enabled": False}),
    "empty-panel": State(".suggestions button >> nth=0", [open_page, open_panel]),
    "waiting": State(".waiting .dots", [open_page, wait]),
    "answer": State(".turn .from", [open_page, answered]),
    "follow-up": State(".question >> nth=1", [open_page, answered, follow_up]),
    "under-an-answer": State(".explanation", [open_page, answered, explained, to_the_end]),
    "evidence": State("mark.evidence >> nth=0", [open_page, answered, cite]),
    "refusal": State(".nearest .card >> nth=0", [open_page, refused]),
    "off-topic": State(".refusal", [open_page, lambda page: answered(page, OFF_TOPIC)]),
    "stopped": State(".stopping", [open_page, stop]),
    "broken-off": State(".failure", [open_page, break_off]),
    "feedback": State(".rating form", [open_page, answered, press("Not helpful")]),
    "past-conversations": State(
        ".past .reopen >> nth=0",
        [open_page, answered, press("New conversation"), refused, press("Past conversations")],
    ),
    "selection": State(".ask-about", [open_page, select]),
    "selected-answer": State(".turn .widen", [open_page, ask_selected]),
    "search": State(".passages .hit >> nth=0", [open_page, lambda page: search(page, "launch nodes")]),
    "search-nothing": State(".ask-instead", [open_page, lambda page: search(page, "zxqv blorp")]),
    "key": State("#cv-key", where="locked"),
    "no-book": State("main pre", where="empty"),
    "report": State("h1", where="report"),
    **{
        f"widget-{name}": State(".answer .chip >> nth=0", [ask_widget], name)
        for name in ("mkdocs", "docusaurus", "furo", "plain")
    },
}
# Full size: name -> screen, colour scheme, and groups of steps; a picture is taken after each group.
PICTURES: dict[str, tuple[tuple[int, int], str, Sequence[Sequence[Step]]]] = {
    "title": (LAPTOP, "light", [[]]),
    "page": (DESKTOP, "light", [[open_page, wheel(420)]]),
    "answer": (DESKTOP, "light", [[open_page, answered, cite]]),
    "refusal": (LAPTOP, "dark", [[open_page, refused]]),
    "search": (LAPTOP, "light", [[open_page, lambda page: search(page, "launch nodes")]]),
    "phone": (PHONE, "light", [[], [open_page], [answered], [cite]]),
    "panel": (
        PHONE,
        "dark",
        [
            [open_page, open_panel],
            [answered, to_the_end],
            [press("Past conversations")],
            [press("New conversation"), wait],
        ],
    ),
}


class Studio:
    """A browser, and servers that are started when a picture needs them."""

    def __init__(self, browser: Browser, folder: Path, held: ExitStack) -> None:
        self.browser, self.folder, self.held = browser, folder, held
        self.addresses: dict[str, str] = {}

    def address(self, where: str) -> str:
        """The address of a book or a site."""
        if where not in self.addresses:
            if where == "report":
                self.addresses[where] = self.held.enter_context(reported())
            elif where in ("book", "several", "locked", "empty", "pictured"):
                keys = {"api_keys": "open-sesame-1234"} if where == "locked" else {}
                title = {"several": None, "pictured": "The Skerry Light"}.get(where, "Physical AI")
                fill = {"book": example, "locked": example, "several": several, "pictured": pictured}.get(where)
                self.addresses[where] = self.held.enter_context(served(fill, book_title=title, **keys)).url
            else:
                self.addresses[where] = self.held.enter_context(site(where))
        return self.addresses[where]

    @contextmanager
    def visiting(self, where: str, size: tuple[int, int], scheme: str, **options: Any) -> Iterator[Page]:
        """A page of a browser with a screen of this size."""
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
            has_touch=size == PHONE,
            is_mobile=size == PHONE,
            **options,
        )
        page = context.new_page()
        page.goto(self.address(where))
        page.wait_for_load_state("networkidle")
        yield page
        context.close()

    def sheet(self, name: str, state: State) -> None:
        """Take a sheet: one state on every screen, in light and in dark mode."""
        rows = []
        for scheme, sizes in SHEET:
            row = []
            for size in sizes:
                with self.visiting(state.where, size, scheme, **state.options) as page:
                    row.append(_taken(page, state.steps, state.shows))
            rows.append(row)
        self._keep(self.folder / "states" / f"{name}.webp", rows, SHEET_QUALITY)

    def picture(self, name: str) -> None:
        """Take a picture of states side by side, in full size."""
        size, scheme, groups = PICTURES[name]
        with self.visiting("book", size, scheme) as page:
            self._keep(self.folder / f"{name}.webp", [[_taken(page, steps) for steps in groups]], QUALITY)

    def _keep(self, file: Path, rows: list[list[str]], quality: float) -> None:
        blank = self.browser.new_page()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(blank.evaluate(TO_WEBP, [rows, quality])))
        blank.close()


def _taken(page: Page, steps: Sequence[Step], shows: str = "") -> str:
    for step in steps:
        step(page)
    page.wait_for_timeout(300)
    if shows:
        expect(page.locator(shows)).to_be_in_viewport(ratio=0.9)
    return base64.b64encode(page.screenshot()).decode()


def main(folder: Path, names: Sequence[str]) -> None:
    """Take all pictures or the named ones: `answer` in full size, `states/answer` as a sheet."""
    with ExitStack() as held, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        studio = Studio(browser, folder, held)
        sheets = {f"states/{name}": partial(studio.sheet, name, state) for name, state in STATES.items()}
        failed = []
        for name, take in (sheets | {name: partial(studio.picture, name) for name in PICTURES}).items():
            try:
                if not names or name in names:
                    take()
            except (AssertionError, Error, pytest.skip.Exception) as failure:  # the other pictures are still taken
                failed.append(f"{name}: {failure}")
        browser.close()
    sys.exit("\n".join(failed) or 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
