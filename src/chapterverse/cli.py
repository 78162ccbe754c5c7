"""The command line: ingest a book, search it, serve it, and see what is wrong.

Owns arguments, exit codes and what is printed where: data to stdout, the rest to stderr. Never decides what a page or
an answer is.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import click

from chapterverse import __version__
from chapterverse.config import Settings
from chapterverse.errors import ChapterverseError, ValidationFailed

P = ParamSpec("P")

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Settings come from the environment or a .env file, see .env.example; `doctor` shows their effect.",
)
@click.version_option(__version__, prog_name="chapterverse")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens to stderr.")
def main(verbose: bool) -> None:
    """Ask a book, and get answers whose every sentence was checked against the passage it cites.

    \b
    First steps, without any key:
      chapterverse ingest docs/            read a folder, file or website into the book
      chapterverse search "what is a node" find passages
      chapterverse serve                   the HTTP API on port 8000, described at /docs
      chapterverse doctor                  which engine each part uses, why, and how it does
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )


def command(run: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, None]:
    """Run an async command; our errors become a message, a hint and their exit code."""

    @wraps(run)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        from chapterverse import terminal

        try:
            sys.exit(asyncio.run(run(*args, **kwargs)))
        except ChapterverseError as failure:
            terminal.show_error(failure.message)
            sys.exit(failure.exit_code)
        except KeyboardInterrupt:
            terminal.err.print("Interrupted.")
            sys.exit(INTERRUPTED)

    return wrapped


@main.command()
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
@click.option("--fresh", is_flag=True, help="Forget the book as it is and start from nothing.")
@click.option("--reembed", is_flag=True, help="Embed the stored book anew with the model of the settings; no SOURCE.")
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON to stdout.")
@command
async def ingest(sources: tuple[str, ...], fresh: bool, reembed: bool, as_json: bool, **options: Any) -> int:
    """Read a folder, a file or a website into the book.

    Formats: Markdown, MDX, reStructuredText, AsciiDoc, HTML, plain text, EPUB, PDF. Run it again at any time: only what
    changed is read anew, what vanished is removed, and readers see the new book all at once. Ctrl-C leaves the book as
    it was and keeps the work already done for the next run.

    \b
      chapterverse ingest examples/book
      chapterverse ingest docs/ --base-url https://docs.example.com/ --generator mkdocs
      chapterverse ingest https://docs.example.com/guide/
    """
    from chapterverse.ingestion import pipeline
    from chapterverse.ingestion.options import SourceOptions
    from chapterverse.ingestion.sources import open_source
    from chapterverse.terminal import IngestProgress, err, show_ledger
    from chapterverse.wiring import open_engines

    if bool(sources) == reembed:
        raise ValidationFailed(
            "Name at least one SOURCE, or use --reembed without one. See: chapterverse ingest --help"
        )
    opened = [open_source(source, SourceOptions(**options)) for source in sources]
    settings = Settings.load()
    async with open_engines(settings) as engines:
        try:
            with IngestProgress() as watch:
                workshop = pipeline.Workshop(engines.index, engines.embedder, settings.chapterverse_home, watch)
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


@main.command()
@click.argument("query")
@click.option("-k", "--top-k", default=5, show_default=True, help="Passages to show, 1–20.")
@click.option("--threshold", type=float, help="Least similarity, 0–1.")
@click.option(
    "-f",
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="source_url, source_url_prefix, page_title, section_heading or module; may be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the SearchResult as JSON.")
@command
async def search(query: str, top_k: int, threshold: float | None, filters: tuple[str, ...], as_json: bool) -> int:
    """Find the passages of the book that fit QUERY best. No language model is asked.

    \b
      chapterverse search "How do nodes find each other?"
      chapterverse search "quality of service" -k 3 -f module=ros2 --json
    """
    from chapterverse.retrieval import retrieve_with_retry
    from chapterverse.terminal import show_passages
    from chapterverse.wiring import open_engines

    request = _retrieval_request(query, top_k, threshold, filters)
    async with open_engines(Settings.load()) as engines:
        found = await retrieve_with_retry(request, engines.embedder, engines.index)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show_passages(found)
    return 0


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8000, show_default=True, help="Port to listen on.")
@click.option("--workers", default=1, show_default=True, help="Server processes; each has its own engines.")
def serve(host: str, port: int, workers: int) -> None:
    """Serve the HTTP API. Its description is at /docs, its state at /health."""
    import uvicorn

    from chapterverse.terminal import show_error

    try:
        Settings.load()
    except ChapterverseError as failure:
        show_error(failure.message)
        sys.exit(failure.exit_code)
    if fault := _port_fault(host, port):
        show_error(f"cannot listen on {host}:{port}: {fault}", "Choose another with --port (or PORT=8001 make run).")
        sys.exit(1)
    uvicorn.run(
        "chapterverse.main:create_app",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="info",
        access_log=False,
        timeout_graceful_shutdown=10,
        server_header=False,
    )


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@command
async def doctor(as_json: bool) -> int:
    """Say which engine each part uses and why, probe it, and name the fix. Exit code 1 if something is down."""
    from chapterverse.diagnosis import diagnose
    from chapterverse.terminal import show_diagnosis
    from chapterverse.wiring import open_services

    settings = Settings.load()
    async with open_services(settings) as services:
        findings = await diagnose(services)
    if as_json:
        click.echo(findings.to_json())
    else:
        show_diagnosis(findings)
    return 0 if findings.healthy else 1


def _retrieval_request(query: str, top_k: int, threshold: float | None, filters: tuple[str, ...]) -> Any:
    from pydantic import ValidationError

    from chapterverse.models import RetrievalRequest

    fields: dict[str, Any] = {}
    for one in filters:
        key, equals, value = one.partition("=")
        if not equals:
            raise ValidationFailed(f"--filter {one}: write it as KEY=VALUE, for example module=ros2")
        if key == "source_url_prefix":
            fields[key] = value
        else:
            fields.setdefault(key, []).append(value)
    try:
        return RetrievalRequest.model_validate(
            {"query": query, "top_k": top_k, "score_threshold": threshold, "filters": fields or None}
        )
    except ValidationError as failure:
        faults = "; ".join(f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in failure.errors())
        raise ValidationFailed(faults) from None


def _port_fault(host: str, port: int) -> str:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as failure:
            return failure.strerror or str(failure)
    return ""


if __name__ == "__main__":
    main()
