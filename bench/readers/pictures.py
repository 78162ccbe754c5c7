"""Takes pictures of real pages, each on its own site and in our reader, for `docs/READERS.md`.

The sites are those that the bench builds. Our server ingests and shows only the pages that are in pictures. Both sides
are cropped to the content, so that it is visible that nothing is missing. Needs Chromium. Run with
`python -m bench.readers.pictures [NAME ...]`.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.chromium import FLAGS, find_chromium
from tests.served import free_port

from bench.readers import asciidoc_oracle, markdown_site, sphinx_site
from bench.readers.ours import SITE
from bench.results import ROOT
from chapterverse.book import page_id_for

PICTURES: Final = ROOT / "docs" / "images" / "readers"
_WIDTH: Final = 600  # width of each side
_HEIGHT: Final = 900
_MAX_BYTES: Final = 100_000
_BOTH = """<body style="margin:0;display:flex;gap:12px;background:#888;font:16px sans-serif">
<div style="background:#fff"><b style="display:block;padding:6px">the site</b><img src="{0}"></div>
<div style="background:#fff"><b style="display:block;padding:6px">our page</b><img src="{1}"></div></body>"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page, and the heading where the picture begins."""

    name: str
    shows: str
    book: str
    page: str  # its address relative to the site
    source: str  # its file, relative to the folder that is ingested
    heading: str


SHOWN: Final = (
    Picture(
        "admonitions", "admonitions, code with titles, links", "mkdocs/material", "reference/admonitions/index.html",
        "reference/admonitions.md", "Usage",
    ),
    Picture(
        "maths", "formulas", "mkdocs/material", "reference/math/index.html", "reference/math.md", "Usage",
    ),
    Picture(
        "lists", "nested lists, definition lists, code with titles", "mkdocs/material", "reference/lists/index.html",
        "reference/lists.md", "Usage",
    ),
    Picture(
        "asciidoc", "code, emphasis, links", "asciidoc/git-doc", "gittutorial.html",
        "gittutorial.adoc", "Making changes",
    ),
    Picture(
        "images", "images, code, links", "mkdocs/mkdocs", "getting-started/index.html", "getting-started.md",
        "Creating a new project",
    ),
    Picture(
        "settings", "lists of choices, code, links", "mkdocs/mkdocs", "user-guide/configuration/index.html",
        "user-guide/configuration.md", "validation",
    ),
    Picture(
        "tables", "tables, admonitions, code", "mkdocs/material", "reference/data-tables/index.html",
        "reference/data-tables.md", "Usage",
    ),
    Picture(
        "tabs", "tabs with code, nested lists", "mkdocs/material", "reference/content-tabs/index.html",
        "reference/content-tabs.md", "Usage",
    ),
    Picture(
        "parameters", "parameters of a reference, versions, links", "sphinx/flask", "config.html", "config.rst",
        "Builtin Configuration Values",
    ),
    Picture(
        "sphinx", "code, a table, lists, admonitions", "sphinx/flask", "quickstart.html", "quickstart.rst",
        "Variable Rules",
    ),
)  # fmt: skip
_CONTENT: Final = {"sphinx": "div.body", "mkdocs": "article", "asciidoc": "#content"}


def main(names: Sequence[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(playwright), args=FLAGS)
        for book in dict.fromkeys(one.book for one in SHOWN):
            wanted = [one for one in SHOWN if one.book == book and (not names or one.name in names)]
            if wanted:
                folder, site = _built(book)
                with _served(book, folder, [one.source for one in wanted]) as server:
                    for one in wanted:
                        print(_picture(browser, one, site / one.page, server))
        browser.close()


def _built(book: str) -> tuple[Path, Path]:
    """The folder that is ingested, and the site."""
    kind, name = book.split("/")
    if kind == "sphinx":
        (made,) = (one for one in sphinx_site.BOOKS if one.name == name)
        return sphinx_site.project(made), sphinx_site.build(made) / "html"
    if kind == "asciidoc":
        (page,) = (one for one in asciidoc_oracle.BOOKS if one.name == name)
        return asciidoc_oracle.sources(page), asciidoc_oracle.render(page)
    (written,) = (one for one in markdown_site.BOOKS if one.name == name)
    return markdown_site.build(written)


@contextmanager
def _served(book: str, folder: Path, sources: Sequence[str]) -> Iterator[str]:
    """Our server with some pages of a book."""
    home = sphinx_site.CACHE / "pictures" / book
    environment = os.environ | {"CHAPTERVERSE_HOME": str(home)}
    included = [word for source in sources for word in ("--include", source)]
    command = [sys.executable, "-m", "chapterverse"]
    subprocess.run(
        [*command, "ingest", str(folder), "--base-url", SITE, "--fresh", *included], env=environment, check=True
    )
    url = f"http://127.0.0.1:{(port := free_port())}"
    server = subprocess.Popen([*command, "serve", "--port", str(port)], env=environment)
    try:
        while not _answers(url):
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def _answers(url: str) -> bool:
    try:
        return bool(urlopen(f"{url}/livez", timeout=5).status == 200)
    except OSError:
        return False


def _picture(browser: Browser, one: Picture, site: Path, server: str) -> Path:
    page = browser.new_page(
        viewport={"width": _WIDTH, "height": _HEIGHT}, reduced_motion="reduce", color_scheme="light"
    )
    page.route("https://**", lambda route: route.abort())
    page.goto(site.as_uri(), wait_until="load")
    left = _cut(page, _CONTENT[one.book.split("/")[0]], one.heading)
    address = one.page.removesuffix("index.html") if one.book.startswith("mkdocs") else one.page
    address = f"{address.removesuffix('.html')}.adoc" if one.book.startswith("asciidoc") else address
    page.goto(f"{server}/#/{page_id_for(f'{SITE}/{address}')}", wait_until="networkidle")
    right = _cut(page, "main", one.heading)
    place = PICTURES / f"{one.name}.jpg"
    page.set_viewport_size({"width": 2 * _WIDTH + 12, "height": _HEIGHT})
    both = sphinx_site.CACHE / "pictures" / "both.html"
    both.write_text(_BOTH.format(left.as_uri(), right.as_uri()))
    page.goto(both.as_uri(), wait_until="load")
    for quality in range(70, 10, -6):
        page.screenshot(path=place, type="jpeg", quality=quality, full_page=True)
        if place.stat().st_size <= _MAX_BYTES:
            break
    page.close()
    return place


def _cut(page: Page, selector: str, heading: str) -> Path:
    """Take a picture of the content below a heading."""
    content = page.locator(selector).first
    content.wait_for()
    content.evaluate("content => { document.body.replaceChildren(content); document.body.style.margin = '0 12px' }")
    top = page.get_by_role("heading", name=heading).first.evaluate("one => one.getBoundingClientRect().top + scrollY")
    place = sphinx_site.CACHE / "pictures" / f"{'ours' if selector == 'main' else 'site'}.png"
    size = page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0.0, "y": max(0.0, top - 10), "width": float(_WIDTH), "height": float(min(_HEIGHT, size - top + 10))}
    page.screenshot(path=place, full_page=True, clip=clip)  # type: ignore[arg-type]
    return place


if __name__ == "__main__":
    main(sys.argv[1:])
