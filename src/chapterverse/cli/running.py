"""Commands that run and examine the service: serve, mcp, key, doctor."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import command, reported

if TYPE_CHECKING:
    from chapterverse.diagnosis import Diagnosis


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Server processes; each has its own engines.",
)
@reported
def serve(host: str, port: int, workers: int) -> int:
    """Serve the HTTP API. Its description is at /docs, its state at /health."""
    import asyncio
    import gc
    import signal
    import sys

    import uvicorn

    from chapterverse.api.wire import BoundedHttp
    from chapterverse.settings import Settings
    from chapterverse.terminal import err, show_error
    from chapterverse.wiring import check_engines

    gc.disable()  # it takes a sixth of the time that the imports take; `main` switches it on again
    asyncio.run(check_engines(Settings.load()))  # a bad setting is told before anything starts
    if fault := _port_fault(host, port):
        show_error(f"cannot listen on {host}:{port}: {fault}", "Choose another with --port (or PORT=8001 make run).")
        return 1
    # Once it has finished its answers, uvicorn hands the signal that stopped it on: to be stopped is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if err.is_terminal:  # else stderr is the log, one JSON object a line
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        err.print(f"The book: {address}/   The API: {address}/docs   Ctrl-C stops.")
    with _counting_together(workers):
        uvicorn.run(
            "chapterverse.main:create_app",
            factory=True,
            host=host,
            port=port,
            http=BoundedHttp,
            workers=workers,
            log_level="info",
            access_log=False,
            timeout_graceful_shutdown=10,
            server_header=False,
        )
    return 0


@contextmanager
def _counting_together(workers: int) -> Iterator[None]:
    """A folder in which several workers count, so that each can answer `/metrics` with the sum."""
    from chapterverse.telemetry import SHARED_COUNTS

    if workers == 1 or SHARED_COUNTS in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="chapterverse-metrics-") as folder:
        os.environ[SHARED_COUNTS] = folder
        yield


@click.command()
@command
async def mcp() -> int:
    """Serve the book to an MCP client over stdin and stdout.

    Tools: search_documentation, ask_book, read_page, list_books, rate_answer; each page is a resource. A client starts
    this command itself, and it ends when the client closes stdin. stdout carries the protocol alone, errors and the log
    go to stderr. A server that runs anyway has the same at /mcp over HTTP.

    \b
    Register it with a client, in its JSON of MCP servers:
      {"mcpServers": {"book": {"command": "chapterverse", "args": ["mcp"],
                               "env": {"CHAPTERVERSE_HOME": "/path/to/.chapterverse"}}}}
    \b
    Look at it without one:
      chapterverse mcp < /dev/null         starts, and ends at once
      chapterverse -v mcp                  says on stderr what happens
    """
    from chapterverse.api.mcp.stdio import serve_stdio
    from chapterverse.settings import Settings
    from chapterverse.wiring import open_services

    async with open_services(Settings.load()) as services:
        await serve_stdio(services)
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print key, digest and setting as JSON to stdout.")
@reported
def key(as_json: bool) -> int:
    """Make an API key. The key is for its client; its digest is for API_KEYS, so that no key lies on the server.

    The key goes to stdout, the setting to stderr. Several clients: one digest each, separated by commas.

    \b
      chapterverse key > client.key        the setting is shown, the key goes to its client
    """
    import hashlib
    import json
    import secrets

    from chapterverse.settings import DIGEST

    made = f"cv-{secrets.token_urlsafe(32)}"
    digest = f"{DIGEST}{hashlib.sha256(made.encode()).hexdigest()}"
    setting = f"API_KEYS={digest}"
    if as_json:
        click.echo(json.dumps({"key": made, "digest": digest, "setting": setting}))
        return 0
    click.echo(made)
    click.echo(setting, err=True)
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@command
async def doctor(as_json: bool) -> int:
    """Say which engine each part uses and why, probe it, and name the fix. Exit code 1 if something is down."""
    from chapterverse.api.access.rates import RateLimits
    from chapterverse.diagnosis import diagnose
    from chapterverse.settings import Settings
    from chapterverse.telemetry import Telemetry
    from chapterverse.wiring import open_services

    settings = Settings.load()
    rates = RateLimits(Telemetry(), settings.redis_url.get_secret_value() if settings.redis_url else None)
    async with open_services(settings) as services:
        findings = await diagnose(services, rates.dependencies)
    await rates.close()
    if as_json:
        click.echo(findings.to_json())
    else:
        _show_diagnosis(findings)
    return 0 if findings.healthy else 1


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


def _show_diagnosis(diagnosis: "Diagnosis") -> None:
    """Each part, its engine and why, its state, and the fix; on stdout, since it is what was asked for."""
    from rich.text import Text

    from chapterverse.terminal import out

    out.print(f"home: {diagnosis.home}\n")
    for finding in diagnosis.findings:
        colour = {"up": "green", "empty": "yellow"}.get(finding.state, "red")
        out.print(Text.assemble((f"{finding.state:<6}", colour), (f"{finding.part:<12}", "bold"), finding.engine))
        for line in (finding.why, finding.message):
            if line:
                out.print(f"{'':18}{line}")
        if finding.fix:
            out.print(Text.assemble(f"{'':18}", ("fix: ", "bold"), finding.fix))
