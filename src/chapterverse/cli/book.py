"""Commands that make and look through the book: ingest, search, calibrate.

Owns their arguments and exit codes. Never decides what a page is.
"""

import asyncio
import json
from typing import Any

import click

from chapterverse.arguments import read_request
from chapterverse.cli.command import command, search_fields, search_options
from chapterverse.errors import ValidationFailed


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option("--base-url", default="", help="Where the pages of a folder are published, to cite them by that address.")
@click.option("--module", default="", help="Module of all these pages; default: the first folder of each page's path.")
@click.option(
    "--generator",
    type=click.Choice(["auto", "docusaurus", "mkdocs", "sphinx", "plain"]),
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
@click.option("--reembed", is_flag=True, help="Embed the stored book anew with the model of the settings; no SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def ingest(
    sources: tuple[str, ...], fresh: bool, reembed: bool, workers: int, as_json: bool, **options: Any
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
    from chapterverse.ingestion.crew import open_crew, shared_out
    from chapterverse.ingestion.options import SourceOptions
    from chapterverse.ingestion.sources import open_source
    from chapterverse.terminal import err
    from chapterverse.terminal.book import IngestProgress, show_ledger
    from chapterverse.wiring import open_engines

    if bool(sources) == reembed:
        raise ValidationFailed(
            "Name at least one SOURCE, or use --reembed without one. See: chapterverse ingest --help"
        )
    opened = [open_source(source, SourceOptions(**options)) for source in sources]
    settings = Settings.load()
    async with open_engines(settings) as engines:
        try:
            with open_crew(workers) as crew, IngestProgress() as watch:
                embedder = shared_out(engines.embedder, crew)
                workshop = pipeline.Workshop(engines.index, embedder, settings.chapterverse_home, watch, crew)
                if reembed:
                    ledger = await pipeline.reembed(workshop)
                else:
                    ledger = await pipeline.ingest(opened, workshop, fresh=fresh)
        except asyncio.CancelledError:
            err.print("The book is as it was. Run the same command again to go on where this run stopped.")
            raise
    show_ledger(ledger, str(settings.chapterverse_home / "ledgers"))
    if as_json:
        click.echo(ledger.to_json())
    nothing_read = not any(row.outcome in ("added", "changed", "unchanged") for row in ledger)
    return 10 if nothing_read and ledger.count("failed") else 0


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
    from chapterverse.retrieval import retrieve_with_retry
    from chapterverse.terminal.book import show_passages
    from chapterverse.wiring import open_engines

    request = read_request(RetrievalRequest, query=query, **search_fields(**options))
    async with open_engines(Settings.load()) as engines:
        found = await retrieve_with_retry(request, engines.embedder, engines.index)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show_passages(found)
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the calibration as JSON.")
@command
async def calibrate(as_json: bool) -> int:
    """Fit anew which similarities mean that the book answers a question.

    Every ingest does this; do it by hand after an update of Chapterverse that says so. The pages stay as they are.

    \b
      chapterverse calibrate
    """
    from chapterverse.config import Settings
    from chapterverse.ingestion.pipeline import Workshop, recalibrate
    from chapterverse.terminal.book import show_calibration
    from chapterverse.wiring import open_engines

    settings = Settings.load()
    async with open_engines(settings) as engines:
        manifest = await recalibrate(Workshop(engines.index, engines.embedder, settings.chapterverse_home))
    if as_json:
        click.echo(json.dumps({"pages": manifest.pages, "calibration": manifest.calibration}))
    else:
        show_calibration(manifest)
    return 0
