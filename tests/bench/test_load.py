"""The load generator, and a server under load: fairness between clients, `Retry-After`, slow clients, open streams."""

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from bench.load import MOST_AT_ONCE, Load, Request, loading, mix
from bench.soak import memory, slope

from chapterverse.api.access import slots
from chapterverse.api.access.rates import RateLimits
from chapterverse.conversations.turns import Turn
from chapterverse.models import ChatRequest, Event
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:80", "http://example.com", "http://0.0.0.0:8000", "http://localhost"]
)
def test_load_is_sent_to_loopback_only(url: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        Load(url, 1)


def test_concurrency_of_the_load_is_limited() -> None:
    with pytest.raises(ValueError, match="at once"):
        Load("http://127.0.0.1:1", MOST_AT_ONCE + 1)
    paths = [request.path for request in mix(8)]
    assert paths == ["/chat", "/search", "/search", "/search"] * 2


def test_slope_separates_growth_from_noise() -> None:
    requests = [100.0 * number for number in range(200)]
    flat, off = slope(requests, [300 + number % 7 for number in range(200)])
    assert abs(flat) < 0.2 and off < 0.5
    growing, off = slope(requests, [300 + number * 0.2 + number % 7 for number in range(200)])
    assert abs(growing - 2.0) < 0.2 and off < 0.5
    assert memory([1 << 30]) == 0


class Held(Scripted):
    """Does not finish `prepare` before it is released, so questions keep their slots."""

    released = False

    async def prepare(
        self, request: ChatRequest, services: Any, seconds: float, turns: Sequence[Turn] | None = None
    ) -> ChatRequest:
        while not self.released:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.02)
        return await super().prepare(request, services, seconds, turns)


@contextmanager
def serving(script: Scripted, **settings: Any) -> Iterator[Served]:
    loaded = Settings.load(**{"api_rate_limit": 100_000, "trusted_proxies": "127.0.0.1"} | settings)
    with serve(loaded, opening=without_engines(), answering=script) as served:
        yield served


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def waiting(server: Served) -> int:
    metrics = server.http.get("/metrics").text
    return int(float(metrics.split("\nchapterverse_queue_length ")[1].split("\n")[0]))


def asked(query: str, client: str = "", *, stream: bool = False) -> Request:
    return Request("/chat", {"query": query, "stream": stream}, client)


@pytest.mark.slow
async def test_one_client_with_many_requests_does_not_delay_the_others() -> None:
    """One client has a hundred requests in the queue when another one sends five. The five are served in turn."""
    script = Held()
    with serving(script, max_concurrent_requests=2) as server:
        async with loading(server.url, 100) as greedy, loading(server.url, 5) as modest:
            much = asyncio.create_task(greedy.run(iter([asked("answer", "192.0.2.1")] * 100)))
            await until(lambda: waiting(server) == 98)
            little = asyncio.create_task(modest.run(iter([asked("answer mine", "192.0.2.2")] * 5)))
            await until(lambda: waiting(server) == 103)
            script.released = True
            await asyncio.gather(much, little)
    assert little.result().outcomes == {"ok": 5}
    assert much.result().outcomes == {"ok": 100}
    last = max(number for number, query in enumerate(script.opened) if query == "answer mine")
    assert last <= 2 + 2 * 5, "the second client waited for more than its turn"


@pytest.mark.slow
async def test_clients_that_honour_retry_after_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots.SlotQueue.__init__, "__defaults__", (2, 25.0, slots.OPEN_ANSWERS))  # a queue of two
    monkeypatch.setattr(RateLimits.__init__, "__defaults__", (None, 2))  # a window of two seconds
    with serving(Scripted(), api_rate_limit=8, max_concurrent_requests=1) as server:
        async with loading(server.url, 8) as load:
            account = await load.run(iter([asked("prepare pause 0.05")] * 16), waits=True)
    assert account.outcomes["ok"] == 16
    assert set(account.outcomes) <= {"ok", "rate_limited", "overloaded"}
    assert account.outcomes.total() <= 16 * 10, "Retry-After is nearly always long enough"


@pytest.mark.slow
async def test_slow_clients_do_not_block_others() -> None:
    """There are more slow clients than slots, each reading a byte a second."""
    with serving(Scripted(), max_concurrent_requests=2) as server:
        readers = [slow_reader(server) for _ in range(10)]
        reading = asyncio.create_task(asyncio.to_thread(trickle, readers))
        async with loading(server.url, 4) as load:
            account = await load.run(iter([asked("answer", stream=True)] * 20))
        for reader in readers:
            reader.close()
        await reading
    assert account.outcomes == {"ok": 20}


def slow_reader(server: Served) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect((host, int(port)))
    body = json.dumps({"query": "answer", "stream": True}).encode()
    sort = "Host: localhost\r\nContent-Type: application/json"
    head = f"POST /chat HTTP/1.1\r\n{sort}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def trickle(readers: list[socket.socket]) -> None:
    """Reads a byte of each now and then, until they are closed."""
    for _ in itertools.count():
        for reader in readers:
            try:
                reader.settimeout(1.0 / len(readers))
                reader.recv(1)
            except TimeoutError:
                continue
            except OSError:
                return


class HeldOpen(Scripted):
    """Starts answers but sends no event before it is released."""

    released = False

    async def _events(self, query: str, request: ChatRequest) -> AsyncIterator[Event]:
        while not self.released:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.02)
        async for event in super()._events(query, request):
            yield event


@pytest.mark.slow
async def test_200_streams_can_be_open_at_once() -> None:
    script = HeldOpen()
    with serving(script, max_concurrent_requests=200) as server:
        async with loading(server.url, 200) as load:
            streams = asyncio.create_task(load.run(iter([asked("answer", stream=True)] * 200)))
            await until(lambda: script.most_at_once == 200)
            script.released = True
            account = await streams
    assert account.outcomes == {"ok": 200}
