"""Commands that make and look through the book: ingest, sources, forget, search, calibrate."""

import asyncio
import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chapterverse.arguments import read_request
from chapterverse.cli.command import command, search_fields, search_options
from chapterverse.errors import NotFound, ValidationFailed

if TYPE_CHECKING:
    from chapterverse.answering.refusal_rate import RefusalRate
    from chapterverse.index import Index
    from chapterverse.services import Engines


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--base-url", default="", help="Where the pages of a folder are published, to cite them by that address.")
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
@click.option("--include", multiple=True, metavar="GLOB", help="Only paths that match; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Not the paths that match; may be repeated.")
@click.option("--max-pages", default=20_000, show_default=True, help="Stop a crawl after so many pages.")
@click.option("--concurrency", default=4, show_default=True, help="Requests to a website at once.")
@click.option("--allow-private", is_flag=True, help="Also read websites on loopback and private networks.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Processes that read and embed; one uses every core too.",
)
@click.option("--fresh", is_flag=True, help="Forget the book as it is and start from nothing.")
@click.option("--yes", is_flag=True, help="With --fresh: forget sources that are not named, without asking.")
@click.option("--reembed", is_flag=True, help="Embed the stored book anew with the model of the settings; no SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def ingest(
    sources: tuple[str, ...], fresh: bool, yes: bool, reembed: bool, workers: int, as_json: bool, **options: Any
) -> int:
    """Read a folder, a file or a website into the book.

    Formats: Markdown, MDX, reStructuredText, AsciiDoc, HTML, plain text, EPUB, PDF. Run it again at any time: only what
    changed is read anew, what vanished is removed, and readers see the new book all at once. Ctrl-C leaves the book as
    it was and keeps the work already done for the next run.

    \b
      chapterverse ingest examples/book
      chapterverse ingest docs/ --base-url https://docs.example.com/ --generator mkdocs
      chapterverse ingest https://docs.example.com/guide/
    """
    from chapterverse.config import Settings
    from chapterverse.ingestion import pipeline
    from chapterverse.ingestion.options import SourceOptions
    from chapterverse.ingestion.sources import open_source
    from chapterverse.ingestion.workers import sharing_work
    from chapterverse.terminal import err
    from chapterverse.terminal.book import IngestProgress, show_ledger, show_refusal_rate
    from chapterverse.wiring import open_engines

    if bool(sources) == reembed:
        raise ValidationFailed(
            "Name at least one SOURCE, or use --reembed without one. See: chapterverse ingest --help"
        )
    opened = [open_source(source, SourceOptions(**options)) for source in sources]
    settings = Settings.load()
    async with open_engines(settings) as engines:
        if fresh and not yes and not await _may_forget(engines.index, {source.key for source in opened}):
            err.print("The book is as it was.")
            return 1
        try:
            async with sharing_work(engines.embedder, workers) as embedder:
                with IngestProgress() as watch:
                    workshop = pipeline.Workshop(engines.index, embedder, settings.chapterverse_home, watch)
                    if reembed:
                        ledger = await pipeline.reembed(workshop)
                    else:
                        ledger = await pipeline.ingest(opened, workshop, fresh=fresh)
        except asyncio.CancelledError:
            err.print("The book is as it was. Run the same command again to go on where this run stopped.")
            raise
        rate = await _rate(engines) if ledger.generation else None
    show_ledger(ledger, str(settings.chapterverse_home / "ledgers"))
    if rate is not None:
        show_refusal_rate(rate)
    if as_json:
        click.echo(ledger.to_json())
    nothing_read = not any(row.outcome in ("added", "changed", "unchanged") for row in ledger)
    return 10 if nothing_read and ledger.count("failed") else 0


async def _may_forget(index: "Index", named: set[str]) -> bool:
    """Ask before a fresh start forgets sources that are not read again; without a terminal, refuse."""
    from chapterverse.errors import RetrievalUnavailable

    try:
        held = await _sources_of(index)
    except RetrievalUnavailable:  # no book, or one that cannot be read: nothing that could be lost
        return True
    lost = {source: pages for source, pages in held.items() if source not in named}
    if not lost:
        return True
    told = ", ".join(f"{source} ({pages:,} page{'s' * (pages != 1)})" for source, pages in lost.items())
    if not sys.stdin.isatty():
        raise ValidationFailed(
            f"--fresh would forget {told}. Add --yes if that is meant, or leave --fresh out: sources add up."
        )
    return click.confirm(f"--fresh forgets {told}. Go on?", err=True)


async def _sources_of(index: "Index") -> dict[str, int]:
    """The sources of the book by their names, with how many pages each has."""
    return dict(Counter(page.source for page in await index.pages()))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def sources(as_json: bool) -> int:
    """List the sources of the book: the folders, files and websites that were ingested, and their pages.

    \b
      chapterverse sources
      chapterverse forget https://docs.example.com
    """
    from chapterverse.config import Settings
    from chapterverse.terminal import out, printable
    from chapterverse.wiring import open_engines

    async with open_engines(Settings.load()) as engines:
        held = await _sources_of(engines.index)
    if as_json:
        click.echo(json.dumps([{"source": source, "pages": pages} for source, pages in held.items()], indent=2))
    else:
        for source, pages in held.items():
            out.print(f"{pages:>7,} page{'s' if pages != 1 else ' '}  {printable(source)}")
    return 0


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def forget(names: tuple[str, ...], as_json: bool) -> int:
    """Take all pages of a SOURCE out of the book. Name it as `chapterverse sources` does.

    Readers see the new book all at once. Ingesting the source again brings its pages back.

    \b
      chapterverse forget https://docs.example.com
    """
    from chapterverse.config import Settings
    from chapterverse.ingestion import pipeline
    from chapterverse.terminal.book import show_ledger
    from chapterverse.wiring import open_engines

    settings = Settings.load()
    async with open_engines(settings) as engines:
        held = await _sources_of(engines.index)
        if unknown := [name for name in names if name not in held]:
            raise NotFound(f"The book has no source {', '.join(unknown)}. It has: {', '.join(held)}")
        workshop = pipeline.Workshop(engines.index, engines.embedder, settings.chapterverse_home)
        ledger = await pipeline.forget(names, workshop)
    show_ledger(ledger, str(settings.chapterverse_home / "ledgers"))
    if as_json:
        click.echo(ledger.to_json())
    return 0


@click.command()
@click.argument("query")
@search_options
@click.option("--json", "as_json", is_flag=True, help="Print the SearchResult as JSON.")
@command
async def search(query: str, as_json: bool, **options: Any) -> int:
    """Find the passages of the book that fit QUERY best. No language model is asked.

    \b
      chapterverse search "How do nodes find each other?"
      chapterverse search "quality of service" -k 3 -f module=ros2 --json
    """
    from chapterverse.config import Settings
    from chapterverse.models import RetrievalRequest
    from chapterverse.retrieval import find_passages
    from chapterverse.terminal.book import show_passages
    from chapterverse.wiring import open_engines

    request = read_request(RetrievalRequest, query=query, **search_fields(**options))
    async with open_engines(Settings.load()) as engines:
        found = await find_passages(request, engines.embedder, engines.index)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show_passages(found)
    return 0


@click.command()
@click.option(
    "--false-answers",
    type=click.FloatRange(0, 1),
    default=None,
    help="Share of questions that the book does not answer which may be answered without a key; kept for this book.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as JSON.")
@command
async def calibrate(false_answers: float | None, as_json: bool) -> int:
    """Fit anew which similarities mean that the book answers a question, and set how readily it answers without a key.

    Every ingest fits; do it by hand after an update of Chapterverse that says so. The pages stay as they are.

    \b
      chapterverse calibrate
      chapterverse calibrate --false-answers 0.05
    """
    from chapterverse.config import Settings
    from chapterverse.ingestion.pipeline import Workshop, recalibrate
    from chapterverse.terminal.book import show_calibration, show_refusal_rate
    from chapterverse.wiring import open_engines

    settings = Settings.load()
    async with open_engines(settings) as engines:
        workshop = Workshop(engines.index, engines.embedder, settings.chapterverse_home)
        manifest = await recalibrate(workshop, false_answers)
        rate = await _rate(engines)
    if as_json:
        told = {"pages": manifest.pages, "calibration": manifest.calibration, "refusals": asdict(rate)}
        click.echo(json.dumps(told))
    else:
        show_calibration(manifest)
        show_refusal_rate(rate)
    return 0


async def _rate(engines: "Engines") -> "RefusalRate":
    from chapterverse.answering.refusal_rate import refusal_rate

    return await refusal_rate(engines)
