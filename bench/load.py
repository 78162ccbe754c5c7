"""A bounded load generator for a server on this machine.

Refuses every address that is not loopback, so that it cannot be used against others. Requests, concurrency and time are
limited. `python -m bench.load [REQUESTS]` starts a server over the example book, without a key and with the embedded
Postgres, and sends it 1, 10, 50 and 200 requests at once.
"""

import asyncio
import ipaddress
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import numpy as np
from tests.faults.processes import Server, serving

from bench.results import ROOT, save
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines

MOST_AT_ONCE: Final = 500
PATIENCE: Final = 60.0  # seconds for one request: twice the server's own limit
CHAT_EVERY: Final = 4  # every n-th request is a question, the others are searches


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the load."""

    path: str
    body: dict[str, Any]
    client: str = ""  # its address, if the server trusts us as a proxy


@dataclass(slots=True)
class Account:
    """The outcomes of all requests."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # by path, successful requests only
    took: float = 0.0

    def note(self, request: Request, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1
        if outcome == "ok":
            self.seconds.setdefault(request.path, []).append(seconds)

    def figures(self) -> dict[str, Any]:
        """Return counts by outcome, requests a second, and p50, p95 and p99 of each path in milliseconds."""
        paths = {
            path: {f"p{share}_ms": round(1000 * float(np.percentile(all_, share)), 1) for share in (50, 95, 99)}
            for path, all_ in self.seconds.items()
        }
        total = self.outcomes.total()
        return {"requests": total, "outcomes": dict(self.outcomes), "per_second": round(total / self.took, 1), **paths}


def require_loopback(url: str) -> None:
    """Raise unless the address is a loopback address."""
    host = urlsplit(url).hostname or ""
    try:
        safe = ipaddress.ip_address(host).is_loopback
    except ValueError:  # a host name may resolve to any address
        safe = False
    if not safe:
        raise ValueError(f"{host or url!r} is not a loopback address; the load generator accepts no other")


class Load:
    """Sends requests to a server on this machine, at most `at_once` at a time."""

    def __init__(self, url: str, at_once: int) -> None:
        require_loopback(url)
        if not 1 <= at_once <= MOST_AT_ONCE:
            raise ValueError(f"1 to {MOST_AT_ONCE} requests at once")
        self.account = Account()
        self._at_once = at_once
        limits = httpx2.Limits(max_connections=at_once, keepalive_expiry=1.0)  # the server closes idle ones after 5 s
        self._http = httpx2.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits, trust_env=False)

    async def run(self, requests: Iterator[Request], waits: bool = False) -> Account:
        """Send all requests. With `waits`, a request that is told to retry later does so until it succeeds."""
        began = time.monotonic()
        await asyncio.gather(*(self._client(requests, waits) for _ in range(self._at_once)))
        self.account.took += time.monotonic() - began
        return self.account

    async def send(self, request: Request) -> tuple[str, float]:
        """Send a request. Return its outcome (`ok`, an error code, or what failed) and the Retry-After time, if any."""
        headers = {"X-Forwarded-For": request.client} if request.client else {}
        try:
            answer = await self._http.post(request.path, json=request.body, headers=headers)
        except httpx2.TransportError as failure:
            return type(failure).__name__, 0.0
        if answer.status_code != 200:
            return str(answer.json()["error_code"]), float(answer.headers.get("Retry-After", 0))
        if answer.headers["content-type"].startswith("text/event-stream"):
            return _end_of_stream(answer.text), 0.0
        return "ok", 0.0

    async def close(self) -> None:
        await self._http.aclose()

    async def _client(self, requests: Iterator[Request], waits: bool) -> None:
        for request in requests:
            while True:
                began = time.monotonic()
                outcome, wait = await self.send(request)
                self.account.note(request, outcome, time.monotonic() - began)
                if not (waits and wait):
                    break
                await asyncio.sleep(wait)


@asynccontextmanager
async def loading(url: str, at_once: int) -> AsyncIterator[Load]:
    """A load generator that is closed at the end."""
    load = Load(url, at_once)
    try:
        yield load
    finally:
        await load.close()


def mix(count: int, question_of: Callable[[int], str] | None = None) -> Iterator[Request]:
    """Searches, questions and streams over the example book, in a fixed order."""
    lines = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = itertools.cycle([json.loads(line)["question"] for line in lines])
    for number in range(count):
        question = question_of(number) if question_of else next(asked)
        if number % CHAT_EVERY:
            yield Request("/search", {"query": question})
        else:
            yield Request("/chat", {"query": question, "stream": number % (2 * CHAT_EVERY) == 0})


def _end_of_stream(text: str) -> str:
    blocks = [block for block in text.split("\n\n") if block.startswith("data: ")]
    if not blocks:
        return "empty stream"
    try:
        last = json.loads(blocks[-1].removeprefix("data: "))
    except ValueError:
        print(f"cannot be read: {blocks[-1]!r}", file=sys.stderr)
        return "event that cannot be read"
    if last["type"] not in ("done", "error"):
        return "stream without an end"
    return "ok" if last["type"] == "done" else str(last["error_code"])


@contextmanager
def book_server() -> Iterator[tuple[Server, Path]]:
    """A server over the example book, with its home."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)  # the embedded Postgres does not run as root and must be able to read the folder
        asyncio.run(make_book(home))
        with serving(home) as server:
            yield server, home


async def make_book(home: Path) -> None:
    """Ingest the example book."""
    async with open_engines(Settings.load(chapterverse_home=home)) as engines:
        source = open_source(str(ROOT / "examples" / "book"), SourceOptions())
        await ingest([source], Workshop(engines.index, engines.embedder, home))


async def _measure(url: str, requests: int, at_once: int) -> dict[str, Any]:
    async with loading(url, at_once) as load:
        return (await load.run(mix(requests))).figures()


def bench(requests: int) -> None:
    """Measure, print and save."""
    results: dict[str, Any] = {"model": "none: excerpts of the book", "load_before": os.getloadavg()[0]}
    with book_server() as (server, _):
        asyncio.run(_measure(server.url, 20, 1))  # warm up caches and pools
        for at_once in (1, 10, 50, 200):
            results[f"{at_once}_at_once"] = asyncio.run(_measure(server.url, requests, at_once))
            print(f"{at_once:4} at once: {json.dumps(results[f'{at_once}_at_once'])}")
    results["load_after"] = os.getloadavg()[0]
    print(f"written to {save('load', results).relative_to(ROOT)}")


if __name__ == "__main__":
    bench(int(sys.argv[1]) if sys.argv[1:] else 1000)
