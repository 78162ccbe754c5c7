"""The commands that change or list the books: ingest, books, sources, forget and calibrate."""

import asyncio
import json
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chapterverse.cli.command import command, edition_filters, edition_options
from chapterverse.editions import NAMELESS
from chapterverse.errors import NotFound, RetrievalUnavailable, ValidationFailed

if TYPE_CHECKING:
    from chapterverse.book import Edition
    from chapterverse.evaluation.refusal_rate import RefusalRate
    from chapterverse.index import Index
    from chapterverse.models import SearchFilters
    from chapterverse.services import Engines


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--base-url", default="", help="Address at which the pages of a folder are published, for citations.")
@click.option("--module", default="", help="Module of all these pages; default: the first folder of each page's path.")
@click.option(
    "--generator",
    type=click.Choice(
        ["auto", "docusaurus", "mkdocs", "mdbook", "hugo", "vitepress", "starlight", "sphinx", "antora", "plain"]
    ),
    default="auto",
    show_default=True,
    help="Site generator of a folder: decides addresses and anchors.",
)
@click.option("--include", multiple=True, metavar="GLOB", help="Read only paths that match; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Do not read paths that match; may be repeated.")
@click.option("--max-pages", default=20_000, show_default=True, help="Stop a crawl after this many pages.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=4, show_default=True, help="Concurrent requests to a website."
)
@click.option("--allow-private", is_flag=True, help="Also read websites on loopback and private networks.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Processes that read and embed; a single one also uses every core.",
)
@click.option("--book", default="", metavar="NAME", help="Name of the book; not needed for a single book.")
@click.option("--version", default="", metavar="V", help="Version of the book: 2.1, 2026-05, stable.")
@click.option("--title", default="", help="Title of the book, for people; default: its name.")
@click.option("--fresh", is_flag=True, help="Start with an empty book: drop this version's earlier pages.")
@click.option("--yes", is_flag=True, help="With --fresh: forget sources that are not named, without asking.")
@click.option("--reembed", is_flag=True, help="Embed the stored book again with the configured model; takes no SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def ingest(
    sources: tuple[str, ...], fresh: bool, yes: bool, reembed: bool, workers: int, as_json: bool, **options: Any
) -> int:
    """Read a folder, a file or a website into the book.

    Formats: Markdown, MDX, reStructuredText, AsciiDoc, HTML, plain text, EPUB, PDF, Word (docx), Jupyter notebooks. Run
    it again at any time: only changed pages are read again, missing ones are removed, and readers see the new book all
    at once. After Ctrl-C the book is unchanged, and the next run continues with the work that was done.

    \b
      chapterverse ingest examples/book
      chapterverse ingest docs/ --base-url https://docs.example.com/ --generator mkdocs
      chapterverse ingest https://docs.example.com/guide/
      chapterverse ingest docs/ --book guide --version 2.1
    """
    from chapterverse.book import Edition
    from chapterverse.editions import require_names
    from chapterverse.ingestion import pipeline
    from chapterverse.ingestion.options import SourceOptions
    from chapterverse.ingestion.sources import open_source
    from chapterverse.ingestion.workers import sharing_work
    from chapterverse.settings import Settings
    from chapterverse.terminal import err
    from chapterverse.terminal.ingestion import IngestProgress, show_ledger, show_refusal_rate, warn_of_other_places
    from chapterverse.wiring import open_engines

    if bool(sources) == reembed:
        raise ValidationFailed(
            "Name at least one SOURCE, or use --reembed without one. See: chapterverse ingest --help"
        )
    edition = Edition(*(options.pop(name) for name in ("book", "version", "title")))
    require_names(edition.book, edition.version)
    opened = [open_source(source, SourceOptions(**options)) for source in sources]
    settings = Settings.load()
    ledgers = settings.chapterverse_home / "ledgers"
    async with open_engines(settings) as engines:
        present = await _present(engines, edition, fresh=fresh)
        warn_of_other_places([source for source in opened if source.key in present], ledgers, edition.key)
        if fresh and not yes and not _may_forget(present, {source.key for source in opened}):
            err.print("The book was not changed.")
            return 1
        try:
            async with sharing_work(engines.embedder, workers) as embedder:
                with IngestProgress() as watch:
                    workshop = pipeline.Workshop(engines.index, embedder, settings.chapterverse_home, watch)
                    if reembed:
                        ledger = await pipeline.reembed(workshop)
                    else:
                        ledger = await pipeline.ingest(opened, workshop, into=edition, fresh=fresh)
        except asyncio.CancelledError:
            err.print("The book was not changed. Run the same command again to continue where this run stopped.")
            raise
        rate = await _rate(engines, edition) if ledger.generation else None
    show_ledger(ledger, str(ledgers))
    if rate is not None:
        show_refusal_rate(rate)
    if as_json:
        click.echo(ledger.to_json())
    nothing_read = not any(row.outcome in ("added", "changed", "unchanged") for row in ledger)
    return 10 if nothing_read and ledger.count("failed") else 0


async def _present(engines: "Engines", edition: "Edition", *, fresh: bool) -> Counter[str]:
    """Return how many pages of each source are in the book. Without `fresh` they are only for a hint: none if the book
    cannot be searched."""
    from chapterverse.ingestion import pipeline

    if fresh:
        return Counter(record.source for record in (await pipeline.pages_before(engines.index, edition))[0])
    with suppress(RetrievalUnavailable):
        return Counter(page.source for page in await engines.index.pages() if page.edition == edition.key)
    return Counter()


def _may_forget(present: Counter[str], named: set[str]) -> bool:
    """Ask for confirmation if `--fresh` would forget sources that are not read again; without a terminal, refuse.
    `present`: the pages of each source."""
    lost = {source: pages for source, pages in present.items() if source not in named}
    if not lost:
        return True
    listed = ", ".join(f"{source} ({pages:,} page{'s' * (pages != 1)})" for source, pages in lost.items())
    if not sys.stdin.isatty():
        raise ValidationFailed(
            f"--fresh would forget {listed}. Add --yes to do that, or leave --fresh out to add to the book."
        )
    return click.confirm(f"--fresh forgets {listed}. Continue?", err=True)


async def _sources_of(index: "Index", filters: "SearchFilters | None") -> dict[tuple[str, str], int]:
    """Count the pages by edition and source, for all editions or for those that the filters name."""
    from chapterverse.retrieval import editions_in

    keys = {edition.key for edition in await editions_in(filters, index)} if filters else None
    found = ((page.edition, page.source) for page in await index.pages() if keys is None or page.edition in keys)
    return dict(Counter(found))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the BookList as JSON.")
@command
async def books(as_json: bool) -> int:
    """List the books and their versions, the latest first.

    \b
      chapterverse books
      chapterverse ask "Which port is used?" --book guide --version 1.0
    """
    from chapterverse.api.pages import list_books
    from chapterverse.settings import Settings
    from chapterverse.terminal.ingestion import show_books
    from chapterverse.wiring import open_engines

    async with open_engines(Settings.load()) as engines:
        listed = list_books((await engines.index.manifest()).shelf)
    if as_json:
        click.echo(listed.model_dump_json(indent=2))
    else:
        show_books(listed)
    return 0


@click.command(short_help="List the ingested folders, files and websites.")
@edition_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def sources(book: tuple[str, ...], version: tuple[str, ...], as_json: bool) -> int:
    """List the sources of all books: the folders, files and websites that were ingested, and their pages.

    \b
      chapterverse sources
      chapterverse sources --book guide --version 1.0
      chapterverse forget https://docs.example.com
    """
    from chapterverse.book import edition_names
    from chapterverse.settings import Settings
    from chapterverse.terminal import out, printable
    from chapterverse.wiring import open_engines

    async with open_engines(Settings.load()) as engines:
        counts = await _sources_of(engines.index, edition_filters(book, version))
    if as_json:
        names = {
            key: dict(zip(("book", "version"), edition_names(key), strict=True)) if key else {} for key, _ in counts
        }
        rows = [{"source": source, "pages": pages} | names[key] for (key, source), pages in counts.items()]
        click.echo(json.dumps(rows, indent=2))
    else:
        for (key, source), pages in counts.items():
            where = printable(f"{key}: {source}" if key else source)
            out.print(f"{pages:>7,} page{'s' if pages != 1 else ' '}  {where}")
    return 0


@click.command()
@click.argument("names", nargs=-1, metavar="SOURCE...")
@edition_options
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def forget(names: tuple[str, ...], book: tuple[str, ...], version: tuple[str, ...], as_json: bool) -> int:
    """Remove all pages of a SOURCE from the book. `chapterverse sources` lists the sources.

    --book and --version limit this to some editions; without a SOURCE all pages of these editions are removed. Readers
    see the new book all at once. To get the pages back, ingest the source again.

    \b
      chapterverse forget https://docs.example.com
      chapterverse forget --book guide --version 1.0
    """
    from chapterverse.ingestion import pipeline
    from chapterverse.settings import Settings
    from chapterverse.terminal.ingestion import show_ledger
    from chapterverse.wiring import open_engines

    settings, filters = Settings.load(), edition_filters(book, version)
    if not names and filters is None:
        raise ValidationFailed("Name at least one SOURCE, or a --book or --version. See: chapterverse forget --help")
    async with open_engines(settings) as engines:
        counts = await _sources_of(engines.index, filters)
        known = dict.fromkeys(source for _, source in counts)
        if unknown := [name for name in names if name not in known]:
            raise NotFound(f"The book has no source {', '.join(unknown)}. It has: {', '.join(known)}")
        editions = list(dict.fromkeys(key for key, source in counts if source in (names or known)))
        if filters is None and len(editions) > 1:
            raise ValidationFailed(
                f"{', '.join(names)} is in {', '.join(key or NAMELESS for key in editions)}. "
                "Say which with --book and --version."
            )
        workshop = pipeline.Workshop(engines.index, engines.embedder, settings.chapterverse_home)
        ledger = await pipeline.forget(names or list(known), workshop, editions)
    show_ledger(ledger, str(settings.chapterverse_home / "ledgers"))
    if as_json:
        click.echo(ledger.to_json())
    return 0


@click.command(short_help="Recalibrate the relevance; set how readily the book answers.")
@click.option(
    "--false-answers",
    type=click.FloatRange(0, 1),
    default=None,
    help="Share of questions without an answer in the book that may be answered without a key; stored with the book.",
)
@edition_options
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as JSON.")
@command
async def calibrate(false_answers: float | None, book: tuple[str, ...], version: tuple[str, ...], as_json: bool) -> int:
    """Recalibrate the relevance of passages, and set how readily the book answers without a key.

    Every ingest recalibrates. Run this command after an update of Chapterverse that asks for it. The pages are not
    changed. Each book and version is calibrated separately; --book and --version select some.

    \b
      chapterverse calibrate
      chapterverse calibrate --false-answers 0.05
    """
    from chapterverse.evaluation.refusal_rate import refusal_rate
    from chapterverse.ingestion.pipeline import Workshop, recalibrate
    from chapterverse.retrieval import calibration_of, editions_in, false_answers_in
    from chapterverse.settings import Settings
    from chapterverse.terminal.ingestion import show_calibration, show_refusal_rate
    from chapterverse.wiring import open_engines

    settings, filters = Settings.load(), edition_filters(book, version)
    async with open_engines(settings) as engines:
        workshop = Workshop(engines.index, engines.embedder, settings.chapterverse_home)
        keys = [edition.key for edition in await editions_in(filters, engines.index)] if filters else None
        manifest = await recalibrate(workshop, false_answers, keys)
        scope = await editions_in(filters, engines.index)
        rate = await refusal_rate(engines, filters)
    if as_json:
        calibration = calibration_of(scope).to_dict()
        if (rate_set := false_answers_in(scope)) is not None:
            calibration["false_answers"] = rate_set
        click.echo(json.dumps({"pages": manifest.pages, "calibration": calibration, "refusals": asdict(rate)}))
    else:
        show_calibration(calibration_of(scope))
        show_refusal_rate(rate)
    return 0


async def _rate(engines: "Engines", edition: "Edition") -> "RefusalRate":
    from chapterverse.evaluation.refusal_rate import refusal_rate

    return await refusal_rate(engines, edition_filters((edition.book,), (edition.version,)))
