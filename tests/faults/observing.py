"""Observes how clients experience a server while one of its dependencies fails.

The steps of an observation: cause the fault, call every interface at once, read `/health` until it reports the fault,
end the fault, wait until everything works again. The table in `test_dependencies` has the expected results.
"""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx2

from tests.faults.readers import QUESTION, in_other_letters

_NUMBERS = itertools.count(1)
SELECTION = "A node is a process that performs computation. Nodes talk over topics."
PATIENCE = 75.0  # seconds: more than any request may take
WELL_PATIENCE = 180.0  # seconds until everything must work again; callers check the time

Step = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A way to make a dependency fail, and to make it work again."""

    name: str
    inflict: Step
    heal: Step
    shows: bool = True  # whether it can be seen in `/health` before it is healed


@dataclass(frozen=True)
class World:
    """A running server and the dependency that is made to fail."""

    dependency: str  # as `/health` names it
    url: str
    faults: tuple[Fault, ...]
    tries: Callable[[], int] | None = None  # how often the dependency was called so far
    counted: tuple[str, str] = ("cut", "search")  # the fault and the interface at which calls are counted
    rests: bool = False  # whether it is not called for a while after a failure
    more: tuple[Fault, ...] = ()  # for storms: wrong replies, and failing repeatedly


@dataclass
class Observation:
    """The outcome of each client's request, and after how many seconds it came."""

    outcomes: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    reported: float = 0.0  # seconds from the fault until `/health` reported it
    status: str = ""  # of `/health` then
    down: list[str] = field(default_factory=list)  # according to it
    message: str = ""
    tries: int | None = None
    again: float = 0.0  # seconds that the fastest of the next three questions took
    back: float = 0.0  # seconds from the healing until `/health` was healthy and a question was answered and stored

    def __str__(self) -> str:
        requests = "  ".join(f"{name}: {self.outcomes[name]} {self.seconds[name]:.1f}s" for name in self.outcomes)
        health = f"health: {self.status} {self.down} {self.reported:.1f}s"
        return f"{requests}  {health}  back: {self.back:.1f}s  tries: {self.tries}"


class Requests:
    """Calls the interfaces of a server; returns the outcome in a word or two."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def chat(self) -> str:
        return _answer(await self._http.post("/chat", json={"query": _new_question(), "session_id": str(uuid4())}))

    async def selection(self) -> str:
        question = {"query": "What is a node?", "mode": "selected_text", "selected_text": SELECTION}
        return _answer(await self._http.post("/chat", json=question))

    async def stream(self) -> str:
        answer = await self._http.post("/chat/stream", json={"query": _new_question()})
        if answer.status_code != 200:
            return _answer(answer)
        events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        ends = [event for event in events if event["type"] in ("done", "error")]
        assert len(ends) == 1 and events[-1] == ends[0], "a stream ends once"
        return str(ends[0]["error_code"]) if ends[0]["type"] == "error" else _done(ends[0])

    async def search(self) -> str:
        answer = await self._http.post("/search", json={"query": _new_question()})
        return "found" if answer.status_code == 200 and answer.json()["results"] else _answer(answer)

    async def session(self) -> str:
        answer = await self._http.get(f"/sessions/{uuid4()}")
        return "read" if answer.status_code == 404 else _answer(answer)

    async def alive(self) -> str:
        return str((await self._http.get("/livez")).status_code)

    async def health(self) -> dict[str, Any]:
        answer = await self._http.get("/health")
        body: dict[str, Any] = answer.json()
        assert (answer.status_code == 503) == (body["status"] == "unhealthy")
        return body


REQUESTS = ("chat", "selection", "stream", "search", "session", "alive")


async def until_well(world: World) -> None:
    """Waits until everything works."""
    async with _client(world) as http:
        await _until_well(Requests(http))


async def observe(world: World) -> dict[str, Observation]:
    """Observes each fault of a world, one after the other."""
    seen = {}
    async with _client(world) as http:
        requests = Requests(http)
        for fault in world.faults:
            seen[fault.name] = await _observe(world, fault, requests)
    return seen


def _client(world: World) -> httpx2.AsyncClient:
    # No keep-alive: the server closes idle connections after 5 s, perhaps just when one is used again.
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(base_url=world.url, timeout=PATIENCE, trust_env=False, limits=limits)


async def _observe(world: World, fault: Fault, requests: Requests) -> Observation:
    seen = Observation()
    await fault.inflict()
    try:
        began = time.monotonic()
        health_checks = [_read_health(world, requests, seen, began)] if fault.shows else []
        await asyncio.gather(*(_ask(requests, name, seen) for name in REQUESTS), *health_checks)
        if world.tries and fault.name == world.counted[0]:
            before = world.tries()
            await getattr(requests, world.counted[1])()
            seen.tries = world.tries() - before
        if world.rests and fault.shows:
            seen.again = min([await _seconds(requests.chat()) for _ in range(3)])
    finally:
        await fault.heal()
    healed = time.monotonic()
    await _until_well(requests)
    seen.back = time.monotonic() - healed
    return seen


async def _ask(requests: Requests, name: str, seen: Observation) -> None:
    began = time.monotonic()
    seen.outcomes[name] = await getattr(requests, name)()
    seen.seconds[name] = time.monotonic() - began


async def _seconds(work: Awaitable[object]) -> float:
    began = time.monotonic()
    await work
    return time.monotonic() - began


async def _read_health(world: World, requests: Requests, seen: Observation, began: float) -> None:
    """Reads until it names the dependency and no other one, because on a busy machine any probe may time out once."""
    also = {"cohere", "gemini", "judge"}  # other names for the same service; the language model is also the judge
    async with asyncio.timeout(PATIENCE):
        while True:
            body = await requests.health()
            seen.down = [name for name, it in body["services"].items() if it["status"] != "up" and name not in also]
            if world.dependency in seen.down:
                seen.reported = seen.reported or time.monotonic() - began
                seen.status, seen.message = body["status"], body["services"][world.dependency]["message"]
                if len(seen.down) == 1 or time.monotonic() - began > PATIENCE / 2:
                    return
            await asyncio.sleep(0.05)


async def _until_well(requests: Requests) -> None:
    last: object = None
    try:
        async with asyncio.timeout(WELL_PATIENCE):
            # A model whose last answer failed is down until one succeeds.
            while (last := await requests.chat()) != "answered":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            while (last := await requests.health())["status"] != "healthy":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not well after {WELL_PATIENCE:g} s: {last}") from None


def _new_question() -> str:
    """A new question, because vectors of known questions are cached and need no service."""
    return in_other_letters(QUESTION, next(_NUMBERS))


def _answer(answer: httpx2.Response) -> str:
    return _done(answer.json()) if answer.status_code == 200 else str(answer.json()["error_code"])


def _done(body: dict[str, Any]) -> str:
    return str(body["status"]) if body["metadata"]["stored"] else f"{body['status']}, not stored"
