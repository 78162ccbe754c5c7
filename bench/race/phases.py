"""The measurements: size and import, cold start, load, the realistic model, ingest, failures.

While load is measured, servers run on the first core, and clients, model and embedder on the last. Starts and ingests
have the whole machine.
"""

import asyncio
import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.race.client import Client, ask
from bench.race.figures import Results, load_figures, outcome, percentile
from bench.race.preparation import BOOK, LARGE_BOOK, installed_mb, pages_of, run_ingest
from bench.race.processes import Server, environment, first_answer
from bench.race.racers import AUX_PORT, CACHE, FIRST_PORT, Racer

SERVER_CORES: Final = (0,)
REALISTIC: Final = {"first_ms": 300, "token_ms": 20, "tokens": 60, "count_tokens": True}
FAULTS: Final = ("down", "429", "500", "malformed_tool", "unknown_tool", "bad_citation", "stream_cut", "hang")
_PATIENCE: Final = 34.0  # seconds; the product ends every answer within 30
_LEAVES_AFTER: Final = 3.0  # seconds; the model then writes for two more
_STREAMED: Final = ("500", "stream_cut")  # faults that are also tried with a stream


async def pace(**wanted: Any) -> None:
    """Configure the model. Settings that are not given return to their defaults."""
    await ask(AUX_PORT, "/admin/pace", wanted)


async def counts(racer: Racer) -> dict[str, int]:
    """Return the counts of a service's requests to the model since the last reset."""
    seen = json.loads((await ask(AUX_PORT, "/admin/counts", {})).body)
    found: dict[str, int] = seen["counts"].get(racer.slug, {})
    return found


def note(results: Results, racer: Racer, **figures: Any) -> None:
    """Add the figures of one round; two underscores in a name stand for a dot."""
    for name, value in figures.items():
        results.setdefault(racer.name, {}).setdefault(name.replace("__", "."), []).append(value)


def measure_size(racer: Racer, results: Results) -> None:
    """Measure the size on disk."""
    megabytes, distributions = installed_mb(racer)
    note(results, racer, installed_mb=megabytes, distributions=distributions)


def measure_import(racer: Racer, results: Results) -> None:
    """Measure how long a process takes to import what it needs to serve."""
    code = f"import time; t = time.perf_counter(); {racer.importing}; print(time.perf_counter() - t)"
    done = subprocess.run(
        [str(racer.python), "-c", code],
        cwd=racer.folder,
        env=environment(racer),
        capture_output=True,
        text=True,
        check=True,
    )
    note(results, racer, import_s=round(float(done.stdout.split()[-1]), 3))


async def measure_start(racer: Racer, results: Results, question: str) -> None:
    """Measure the time from starting the process to the end of the first answer."""
    await pace()
    server = Server(racer, FIRST_PORT)
    try:
        note(results, racer, cold_s=round(await first_answer(server, question), 3))
    finally:
        server.stop()


@dataclass(slots=True)
class _Load:
    """What the clients have seen so far. Times are in seconds."""

    latencies: list[float] = field(default_factory=list)
    first_events: list[float] = field(default_factory=list)
    first_texts: list[float] = field(default_factory=list)
    failed: int = 0
    asked: int = 0


async def _ask_on(server: Server, path: str, asked: Sequence[str], load: _Load, until: float, most: int) -> None:
    dialect, client = server.racer.dialect, Client(server.port)
    while load.asked < most and time.perf_counter() < until:
        question = asked[load.asked % len(asked)]
        load.asked += 1
        began, firsts = time.perf_counter(), [0.0, 0.0]

        def seen(piece: bytes, began: float = began, firsts: list[float] = firsts) -> bool:
            now = time.perf_counter() - began
            firsts[0] = firsts[0] or now
            if dialect.text in piece:
                firsts[1] = firsts[1] or now
            return True

        try:
            async with asyncio.timeout(60):
                reply = await client.post(path, dialect.body(question), seen)
        except (OSError, TimeoutError):
            load.failed += 1
            continue
        streamed = path.endswith("stream")
        if reply.status != 200 or not reply.complete or (streamed and dialect.end not in reply.body):
            load.failed += 1
            continue
        load.latencies.append(time.perf_counter() - began)
        if streamed:
            load.first_events.append(firsts[0])
            load.first_texts.append(firsts[1])
    client.close()


async def _run_load(
    server: Server, path: str, asked: Sequence[str], at_once: int, seconds: float, most: int = 100_000
) -> tuple[_Load, dict[str, float]]:
    load, cpu, began = _Load(), server.cpu_seconds(), time.perf_counter()
    until = began + seconds
    await asyncio.gather(*(_ask_on(server, path, asked, load, until, most) for _ in range(at_once)))
    wall = time.perf_counter() - began
    return load, load_figures(load.latencies, wall, server.cpu_seconds() - cpu)


async def measure_load(server: Server, results: Results, asked: Sequence[str], seconds: float) -> None:
    """Measure 1, 10 and 50 requests at once, with a model that takes no time."""
    await pace()
    await _run_load(server, "/chat", asked, 2, 30.0, most=8)  # warm-up, not counted
    for at_once in (1, 10, 50):
        load, figures = await _run_load(server, "/chat", asked, at_once, seconds)
        note(results, server.racer, **{f"c{at_once}__{name}": value for name, value in figures.items()})
        note(results, server.racer, failed=load.failed)
    note(results, server.racer, memory_mb=server.pss_mb())


async def measure_realistic(server: Server, results: Results, asked: Sequence[str], most: int) -> None:
    """Measure four streams at once with a model of realistic pace, for so long that they get out of step, like streams
    of real readers."""
    await pace(**REALISTIC)
    await ask(AUX_PORT, "/admin/reset", {})
    load, figures = await _run_load(server, "/chat/stream", asked, 4, 60.0, most=most)
    spent = await counts(server.racer)
    answered = max(1, len(load.latencies))
    note(
        results,
        server.racer,
        real__p50_ms=figures["p50_ms"],
        real__p95_ms=figures["p95_ms"],
        real__first_event_p50_ms=round(percentile(load.first_events, 0.5) * 1000, 1),
        real__first_event_p95_ms=round(percentile(load.first_events, 0.95) * 1000, 1),
        real__first_text_p50_ms=round(percentile(load.first_texts, 0.5) * 1000, 1),
        real__calls=round(spent.get("calls", 0) / answered, 2),
        real__prompt_tokens=round(spent.get("prompt_tokens", 0) / answered),
        real__judge_calls=round(spent.get("judge_calls", 0) / answered, 2),
        real__judge_tokens=round(spent.get("judge_tokens", 0) / answered),
        failed=load.failed,
    )
    await pace()


async def measure_ingest(racer: Racer, results: Results) -> None:
    """Measure the ingest of the example book with the real embedder, and of a larger one with vectors that take no
    time."""
    store = CACHE / "stores" / "ingest"
    await ask(AUX_PORT, "/admin/forget", {})
    for figure, book, embed in (
        ("ingest_pages_s", BOOK, "real"),
        ("ingest_free_pages_s", LARGE_BOOK, "hash"),
    ):
        if racer.ingest and book.is_dir():
            await pace(embed=embed)
            shutil.rmtree(store, ignore_errors=True)
            began = time.perf_counter()
            await asyncio.to_thread(run_ingest, racer, book, store)
            note(results, racer, **{figure: round(pages_of(book) / (time.perf_counter() - began), 2)})
    shutil.rmtree(store, ignore_errors=True)
    await pace()


async def measure_fault(servers: Sequence[Server], results: Results, mode: str, question: str) -> None:
    """Measure one fault of the model, for all services at the same time."""
    await pace(mode=mode)
    for path in ("/chat", "/chat/stream") if mode in _STREAMED else ("/chat",):
        if mode == "stream_cut" and path == "/chat":
            continue
        await ask(AUX_PORT, "/admin/reset", {})
        await asyncio.gather(*(_probe(server, results, mode, path, question) for server in servers))
    await pace()


async def _probe(server: Server, results: Results, mode: str, path: str, question: str) -> None:
    racer, streamed = server.racer, path.endswith("stream")
    if mode.endswith("_tool") and not racer.agentic:
        return
    began = time.perf_counter()
    try:
        reply = await ask(server.port, path, racer.dialect.body(question), seconds=_PATIENCE)
        status, body, complete = reply.status, bytes(reply.body), reply.complete
    except (OSError, TimeoutError):
        status, body, complete = 0, b"", False
    end = racer.dialect.end if streamed else b""
    words = outcome(status, body, complete=complete, stream_end=end, stream_error=racer.dialect.error)
    if mode == "bad_citation" and words == "answer":
        words = "delivered" if b"[9]" in body else "withheld"
    seconds = time.perf_counter() - began
    calls = (await counts(racer)).get("calls", 0)
    label = f"fault {mode}{', streamed' if streamed else ''}"
    note(results, racer, **{label: f"{words}, {seconds:.1f} s, {calls} calls"})


async def leave(port: int, body: dict[str, Any], seconds: float = _LEAVES_AFTER) -> None:
    """Ask for a stream, and disconnect before its end."""
    with contextlib.suppress(TimeoutError):
        await ask(port, "/chat/stream", body, seconds=seconds)


async def measure_leaving(servers: Sequence[Server], results: Results, question: str) -> None:
    """Measure whether the model's answer is cancelled if the reader disconnects while the model is writing, whether or
    not there was text to show by then."""
    await pace(first_ms=100, token_ms=50, tokens=100)
    await ask(AUX_PORT, "/admin/reset", {})
    await asyncio.gather(*(leave(server.port, server.racer.dialect.body(question)) for server in servers))
    await asyncio.sleep(1.2)
    for server in servers:
        cancelled = bool((await counts(server.racer)).get("aborted"))
        seen = "no model" if not server.racer.llm else "cancelled" if cancelled else "runs on"
        note(results, server.racer, **{"fault reader leaves": seen})
    await pace()


async def measure_empty(racer: Racer, results: Results, port: int, question: str) -> None:
    """Ask a service whose book is empty."""
    store = CACHE / "stores" / f"empty-{racer.slug}"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    store.chmod(0o755)
    server = Server(racer, port, store=store)
    seen = "no reply"
    try:
        while time.perf_counter() - server.started < 60:
            if server.process.poll() is not None:
                seen = "does not start"
                break
            try:
                reply = await ask(port, "/chat", racer.dialect.body(question))
                words = outcome(reply.status, bytes(reply.body), complete=True, stream_end=b"", stream_error=b"")
                seen = words
                break
            except (OSError, TimeoutError):
                await asyncio.sleep(0.1)
    finally:
        await asyncio.to_thread(server.stop)
        shutil.rmtree(store, ignore_errors=True)
    note(results, racer, **{"fault no book": seen})
