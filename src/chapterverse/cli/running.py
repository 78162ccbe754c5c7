"""The commands serve, mcp, key and doctor."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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

    import uvicorn
    from uvicorn import supervisors
    from uvicorn.config import STARTUP_FAILURE

    from chapterverse.settings import Settings
    from chapterverse.terminal import err, show_error
    from chapterverse.wiring import check_engines

    gc.disable()  # garbage collection takes a sixth of the import time; `main` enables it again
    asyncio.run(check_engines(Settings.load()))  # reports invalid settings before anything starts
    if fault := _port_fault(host, port):
        show_error(f"cannot listen on {host}:{port}: {fault}", "Choose another with --port (or PORT=8001 make run).")
        return 1
    # After a graceful shutdown uvicorn raises the signal again; being stopped is not a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if err.is_terminal:  # otherwise stderr is the log, with a JSON object on each line
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        err.print(f"The book: {address}/   The API: {address}/docs   Ctrl-C stops.")
    options: dict[str, Any] = {
        **server_options(),
        "factory": True,
        "host": host,
        "port": port,
        "workers": workers,
        "timeout_worker_healthcheck": 30,  # the default of 5 s kills workers that start slowly on a busy machine
    }
    application = "chapterverse.main:create_app"
    if workers == 1:
        uvicorn.run(application, **options)
        return 0
    with _shared_metrics():
        config = uvicorn.Config(application, **options)
        supervisor = supervisors.Multiprocess(config, sockets=[config.bind_socket()])
        supervisor.run()
    # uvicorn stops if a worker cannot start, but does not report it.
    return int(any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes))


def server_options() -> dict[str, Any]:
    """The options of uvicorn that do not depend on the command line. The tests start their servers with them."""
    from chapterverse.api.wire import BoundedHttp

    return {
        "http": BoundedHttp,
        "log_level": "info",
        "access_log": False,
        "proxy_headers": False,  # `Clients` and `ForwardedScheme` read them, only from TRUSTED_PROXIES
        "timeout_graceful_shutdown": 10,
        "server_header": False,
    }


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Create a folder for the counts of all workers, so that `/metrics` of each worker shows the sum."""
    from chapterverse.telemetry import SHARED_COUNTS

    if SHARED_COUNTS in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="chapterverse-metrics-") as folder:
        os.environ[SHARED_COUNTS] = folder
        try:
            yield
        finally:
            del os.environ[SHARED_COUNTS]


@click.command()
@command
async def mcp() -> int:
    """Serve the book to an MCP client over stdin and stdout.

    Tools: search_documentation, ask_book, read_page, list_books, rate_answer; each page is a resource. The client
    starts this command, and it ends when the client closes stdin. stdout is only for the protocol; errors and the log
    go to stderr. A running server offers the same over HTTP at /mcp.

    \b
    Register it with a client, in its JSON of MCP servers:
      {"mcpServers": {"book": {"command": "chapterverse", "args": ["mcp"],
                               "env": {"CHAPTERVERSE_HOME": "/path/to/.chapterverse"}}}}
    \b
    Try it without a client:
      chapterverse mcp < /dev/null         starts and ends at once
      chapterverse -v mcp                  logs to stderr
    """
    from chapterverse.api.mcp.stdio import serve_stdio
    from chapterverse.settings import Settings
    from chapterverse.terminal import show_note
    from chapterverse.wiring import open_services

    if sys.stdin.isatty():
        show_note("This command is for an MCP client, which starts it itself: see --help. Ctrl-C stops.")
    async with open_services(Settings.load()) as services:
        await serve_stdio(services)
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print key, digest and setting as JSON to stdout.")
@reported
def key(as_json: bool) -> int:
    """Make an API key. The key is for the client; its digest is for API_KEYS, so that the server does not store the
    key.

    The key goes to stdout, the setting to stderr. Several clients: one digest each, separated by commas.

    \b
      chapterverse key > client.key        shows the setting and writes the key to the file
    """
    import hashlib
    import json
    import secrets

    from chapterverse.settings import DIGEST

    secret = f"cv-{secrets.token_urlsafe(32)}"
    digest = f"{DIGEST}{hashlib.sha256(secret.encode()).hexdigest()}"
    setting = f"API_KEYS={digest}"
    if as_json:
        click.echo(json.dumps({"key": secret, "digest": digest, "setting": setting}))
        return 0
    click.echo(secret)
    click.echo(setting, err=True)
    return 0


@click.command(short_help="Show which engine each part uses, its state, and fixes.")
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@command
async def doctor(as_json: bool) -> int:
    """Show which engine each part uses and why, probe it, and suggest fixes. Exit code 1 if something is down."""
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
    """Print each part with its engine, the reason for it, its state, and a fix."""
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
