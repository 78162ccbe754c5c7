"""The observed servers: each has one dependency that can be made to fail, and the others work.

They use real engines, proxies and stubs on loopback, and processes that can be killed and stopped.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines
from tests.contract.qdrant_server import qdrant_server
from tests.embeddings.stub import KEY, EmbeddingStub
from tests.faults.observing import Fault, Step, World
from tests.faults.processes import serving, working_in
from tests.faults.proxy import POSTGRES_LIE, REDIS_LIE, Mode, Proxy, to_port, to_socket
from tests.index.places import copy_book
from tests.llm_stub import serving_llm
from tests.redis_server import RedisServer
from tests.served import free_port

T = TypeVar("T")
FLAP_SECONDS = 0.7
HELD_SECONDS = 0.2
GARBAGE = b"\xff\x00 no engine wrote this "
EVERY: tuple[Mode, ...] = ("refuse", "cut", "garbage", "hang", "slow")
BOOK = Path(__file__).parent / "book"


async def entered(stack: AsyncExitStack, manager: AbstractContextManager[T]) -> T:
    """Enters a blocking context manager in a thread, so that proxies keep running; it is also left in a thread."""

    @asynccontextmanager
    async def aside() -> AsyncIterator[T]:
        value = await asyncio.to_thread(manager.__enter__)
        try:
            yield value
        finally:
            await asyncio.to_thread(manager.__exit__, None, None, None)

    return await stack.enter_async_context(aside())


async def served(stack: AsyncExitStack, home: Path, **settings: Any) -> str:
    """Starts a server in its own process; returns its address."""
    return (await entered(stack, serving(home, **settings))).url


def by_proxy(proxy: Proxy, modes: Iterable[Mode] = EVERY) -> tuple[Fault, ...]:
    """Faults of the connection to a dependency."""

    def fault(mode: Mode) -> Fault:
        return Fault(mode, lambda: proxy.become(mode), lambda: proxy.become("pass"), shows=mode != "slow")

    return tuple(fault(mode) for mode in modes)


def lying(proxy: Proxy) -> Fault:
    """A server that returns replies of the wrong type."""
    return Fault("lie", lambda: proxy.become("lie"), lambda: proxy.become("pass"))


def on_and_off(inflict: Step, heal: Step, name: str = "flap", seconds: float = FLAP_SECONDS) -> Fault:
    """A dependency that fails and recovers repeatedly."""
    flapping: list[asyncio.Task[None]] = []

    async def flap() -> None:
        while True:
            await inflict()
            await asyncio.sleep(seconds)
            await heal()
            await asyncio.sleep(seconds)

    async def begin() -> None:
        flapping.append(asyncio.create_task(flap()))

    async def cease() -> None:
        task = flapping.pop()
        task.cancel()
        await asyncio.wait([task])
        await heal()

    return Fault(name, begin, cease)


def flapping(proxy: Proxy) -> Fault:
    """A connection to a dependency that fails and recovers repeatedly."""
    return on_and_off(lambda: proxy.become("refuse"), lambda: proxy.become("pass"))


def by_signal(name: str, number: signal.Signals, find: Callable[[], list[int]], *, shows: bool) -> Fault:
    """A fault of processes. Stopped processes that still exist are continued afterwards."""
    hit: list[int] = []

    async def inflict() -> None:
        hit[:] = find()
        for pid in hit:
            with contextlib.suppress(ProcessLookupError):  # its parent was killed just before
                os.kill(pid, number)

    async def heal() -> None:
        for pid in hit if number == signal.SIGSTOP else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return Fault(name, inflict, heal, shows)


def by_signals(faults: tuple[Fault, Fault], files: Callable[[], list[Path]]) -> tuple[Fault, ...]:
    """More faults of an engine's processes, based on killing and stopping them."""
    killed, stopped = faults
    return (
        on_and_off(killed.inflict, killed.heal),
        on_and_off(stopped.inflict, stopped.heal, "held up", HELD_SECONDS),
        broken(killed, files),
    )


def broken(killed: Fault, files: Callable[[], list[Path]]) -> Fault:
    """An engine with garbage in its files, which the new processes cannot read after the old ones were killed."""
    kept: dict[Path, bytes] = {}

    async def inflict() -> None:
        for path in files():
            kept[path] = path.read_bytes()
            path.write_bytes(GARBAGE * (len(kept[path]) // len(GARBAGE) + 1))
        await killed.inflict()

    async def heal() -> None:
        for path in list(kept):
            path.write_bytes(kept.pop(path))

    return Fault("broken", inflict, heal)


async def fill(settings: Settings) -> None:
    """Ingests the small book."""
    async with open_engines(settings) as engines:
        workshop = Workshop(engines.index, engines.embedder, settings.chapterverse_home)
        ledger = await ingest([open_source(str(BOOK), SourceOptions())], workshop)
        assert ledger.count("failed") == 0


# ── the worlds ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def qdrant(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """A Qdrant server behind a proxy."""
    url = await entered(stack, qdrant_server())
    proxy = await stack.enter_async_context(Proxy(to_port(urlsplit(url).port or 0)))
    settings = {"qdrant_url": f"http://127.0.0.1:{proxy.port}", "qdrant_collection_name": "faults"}
    await fill(Settings.load(chapterverse_home=home, **settings))
    url = await served(stack, home, database_url=database_url, **settings)
    return World("qdrant", url, by_proxy(proxy), lambda: proxy.accepted, more=(lying(proxy), flapping(proxy)))


async def embeddings(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """An embedding service behind a proxy, and a language model that does not need it."""
    stub = await stack.enter_async_context(EmbeddingStub())
    llm = await entered(stack, serving_llm())
    proxy = await stack.enter_async_context(Proxy(to_port(urlsplit(stub.url).port or 0)))
    settings = {"embeddings": "cohere", "cohere_api_key": KEY, "cohere_base_url": f"http://127.0.0.1:{proxy.port}"}
    await fill(Settings.load(chapterverse_home=home, **settings))
    settings |= {"openai_api_key": "k", "openai_base_url": llm.url, "openai_model": "stub"}
    url = await served(stack, home, database_url=database_url, **settings)
    return World("embeddings", url, by_proxy(proxy), lambda: proxy.accepted, more=(lying(proxy), flapping(proxy)))


async def llm(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """A language model behind a proxy."""
    stub = await entered(stack, serving_llm())
    proxy = await stack.enter_async_context(Proxy(to_port(stub.port)))
    settings = {"openai_api_key": "k", "openai_base_url": f"http://127.0.0.1:{proxy.port}/v1", "openai_model": "stub"}
    url = await served(stack, home, database_url=database_url, **settings)
    return World(
        "llm", url, by_proxy(proxy), lambda: proxy.accepted, ("cut", "chat"), more=(lying(proxy), flapping(proxy))
    )


async def database(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """A Postgres behind a proxy."""
    parts = urlsplit(database_url)
    folder = parse_qs(parts.query)["host"][0]
    proxy = await stack.enter_async_context(Proxy(to_socket(f"{folder}/.s.PGSQL.5432"), POSTGRES_LIE))
    reached = f"postgresql://chapterverse@127.0.0.1:{proxy.port}{parts.path}?sslmode=disable"
    url = await served(stack, home, database_url=reached)
    return World("database", url, by_proxy(proxy), rests=True, more=(lying(proxy), flapping(proxy)))


async def redis(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """A Redis behind a proxy."""
    server = RedisServer(free_port())
    server.start()
    stack.callback(server.stop)
    proxy = await stack.enter_async_context(Proxy(to_port(server.port), REDIS_LIE))
    address = f"redis://127.0.0.1:{proxy.port}/0"
    url = await served(stack, home, database_url=database_url, redis_url=address)
    return World("redis", url, by_proxy(proxy), more=(lying(proxy), flapping(proxy)))


async def edge(stack: AsyncExitStack, home: Path, database_url: str) -> World:
    """The embedded index, whose process is killed and stopped."""

    def children() -> list[int]:
        return [int(path.name.split("-")[0]) for path in (home / "index" / "readers").glob("*-*")]

    faults = (
        by_signal("killed", signal.SIGKILL, children, shows=False),
        by_signal("stopped", signal.SIGSTOP, children, shows=False),
    )

    def files() -> list[Path]:
        # Not files that are hard-linked into a copy in use, because a generation never changes.
        current = home / "index" / "generations" / (home / "index" / "CURRENT").read_text()
        return [path for path in current.rglob("*") if path.is_file() and path.stat().st_nlink == 1]

    return World("qdrant", await served(stack, home, database_url=database_url), faults, more=by_signals(faults, files))


async def embedded_postgres(stack: AsyncExitStack, home: Path, _: str) -> World:
    """The embedded Postgres, whose processes are killed and stopped."""
    data = home / "postgres" / "data"

    faults = (
        by_signal("killed", signal.SIGKILL, lambda: working_in(data), shows=False),
        by_signal("stopped", signal.SIGSTOP, lambda: working_in(data), shows=True),
    )

    def files() -> list[Path]:
        return [data / "global" / "pg_control"]

    return World("database", await served(stack, home), faults, rests=True, more=by_signals(faults, files))


def copied_book(book: Path, home: Path) -> Path:
    """Copies the book into another home; returns it."""
    copy_book(book / "index", home / "index")
    return home
