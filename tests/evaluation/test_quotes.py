"""Locating a quote after the book changed, with real engines and a book of two pages."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.book import Edition, Page
from chapterverse.evaluation.quotes import Quote, Standing, locate
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.services import Engines
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines

pytestmark = pytest.mark.slow

HERON = (
    "# Heron\n\nHeron is a boat of the harbour.\n\nIts battery lasts nine hours in calm water.\n\n"
    "## Winch\n\nThe winch lifts 12 kg.\n"
)
KESTREL = "# Kestrel\n\nKestrel is a drone that looks for leaks in roofs.\n"
BATTERY = "Its battery lasts nine hours in calm water."


class Library:
    """A book whose files can be changed."""

    def __init__(self, folder: Path, engines: Engines, home: Path) -> None:
        self.folder, self.engines, self.home = folder, engines, home

    async def write(self, into: Edition | None = None, **pages: str | None) -> None:
        for name, text in pages.items():
            path = self.folder / f"{name}.md"
            if text is None:
                path.unlink()
            else:
                path.write_text(text, "utf-8")
        workshop = Workshop(self.engines.index, self.engines.embedder, self.home)
        await ingest([open_source(str(self.folder), SourceOptions())], workshop, into=into or Edition())

    async def page(self, title: str, edition: str = "") -> Page:
        pages = await self.engines.index.pages()
        listed = next(page for page in pages if (page.title, page.edition) == (title, edition))
        page = await self.engines.index.page(listed.page_id)
        assert page is not None
        return page

    async def quote(self, text: str, title: str = "Heron", edition: str = "") -> Quote:
        page = await self.page(title, edition)
        start = page.text.index(text)
        return Quote(page.page_id, start, start + len(text), text, edition)

    async def locate(self, quote: Quote) -> Standing:
        return await locate(quote, self.engines.embedder, self.engines.index)


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    folder, home = tmp_path / "book", tmp_path / "home"
    folder.mkdir()
    async with open_engines(Settings.load(chapterverse_home=home)) as engines:
        library = Library(folder, engines, home)
        await library.write(heron=HERON, kestrel=KESTREL)
        yield library


async def test_unchanged_quote_stands(library: Library) -> None:
    found = await library.locate(await library.quote(BATTERY))
    assert (found.state, found.now) == ("stands", BATTERY)


async def test_a_sentence_that_is_alike_only_in_small_words_is_another_one(library: Library) -> None:
    settings = (
        "# Settings\n\n## site_url\n\nSet the canonical URL of the site.\n\n"
        "## site_author\n\nSet the name of the author.\n"
    )
    await library.write(heron=settings)
    quote = await library.quote("Set the canonical URL of the site.", "Settings")
    await library.write(heron=settings.replace("Set the canonical URL of the site.", "Used for a preview."))
    assert (await library.locate(quote)).state == "gone"


async def test_moved_quote_is_found_on_its_page_and_on_others(library: Library) -> None:
    quote = await library.quote(BATTERY)
    await library.write(heron=HERON.replace("# Heron\n\n", "# Heron\n\nRead this first.\n\n"))
    on_page = await library.locate(quote)
    assert (on_page.state, on_page.now) == ("moved", BATTERY)
    assert on_page.start > quote.start
    await library.write(heron=HERON.replace(BATTERY, ""), kestrel=f"{KESTREL}\n{BATTERY}\n")
    elsewhere = await library.locate(quote)
    assert elsewhere.state == "moved"
    assert elsewhere.page is not None and elsewhere.page.title == "Kestrel"


async def test_changed_quote_has_its_new_text(library: Library) -> None:
    quote = await library.quote(BATTERY)
    await library.write(heron=HERON.replace("nine hours", "seven hours"))
    found = await library.locate(quote)
    assert (found.state, found.now) == ("changed", "Its battery lasts seven hours in calm water.")


@pytest.mark.parametrize("now", ["The timeout is 300", "The timeout is 30.5"])
async def test_number_that_goes_on_is_another_one(library: Library, now: str) -> None:
    settings = HERON + "\n- port: 80\n- The timeout is 30\n"
    await library.write(heron=settings)
    quote = await library.quote("- The timeout is 30")
    await library.write(heron=settings.replace("The timeout is 30", now))
    found = await library.locate(quote)
    assert (found.state, found.now) == ("changed", f"- {now}")


async def test_quote_of_a_deleted_paragraph_or_page_is_gone(library: Library) -> None:
    quote = await library.quote(BATTERY)
    await library.write(heron=HERON.replace(BATTERY, ""))
    assert (await library.locate(quote)).state == "gone"
    await library.write(heron=None)
    assert (await library.locate(quote)).state == "gone"


async def test_quote_is_located_in_its_own_edition(library: Library) -> None:
    await library.write(heron=HERON, into=Edition("fleet", "1"))
    quote = await library.quote(BATTERY, edition="fleet@1")
    await library.write(heron=HERON, into=Edition("fleet", "2"))
    await library.write(heron=HERON.replace(BATTERY, ""), into=Edition("fleet", "1"))
    assert (await library.locate(quote)).state == "gone", "the other version does not count"
    assert (await library.locate(replace(quote, edition="fleet@2"))).state == "moved"
    assert (await library.locate(replace(quote, edition="fleet@3", page_id="none"))).state == "gone"


async def test_nearest_of_several_places_is_used(library: Library) -> None:
    quote = await library.quote("The winch lifts 12 kg.")
    await library.write(heron=HERON.replace("# Heron\n\n", "# Heron\n\nThe winch lifts 12 kg. Mind it.\n\n"))
    found = await library.locate(quote)
    assert found.state == "moved"
    assert found.start > quote.start, "the place under its heading, not the first one"
