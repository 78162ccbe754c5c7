"""Clients that keep asking while something fails, and the outcomes they saw.

Each client has its own session. Every turn that was acknowledged as stored must be in that session afterwards, in the
same order. `lost` counts the turns that are not.
"""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx2

QUESTION = "What is a node in ROS 2?"
PATIENCE = 75.0  # seconds: more than any request may take
PAUSE = 0.05  # seconds between two questions of a reader
CONNECTION_LOST = "connection lost"
REFUSED = "connection refused"


def in_other_letters(question: str, number: int) -> str:
    """Returns the question with other capitals for each number, which is a new text with the same meaning."""
    bits = iter(f"{number:b}"[::-1])
    return "".join(letter.upper() if letter.islower() and next(bits, "0") == "1" else letter for letter in question)


@dataclass
class Reader:
    """One client: the questions whose answers were acknowledged as stored, in order."""

    session: str = field(default_factory=lambda: str(uuid4()))
    stored: list[str] = field(default_factory=list)
    asked: int = 0


@dataclass
class Tally:
    """The outcomes that all clients saw: how often each, and the longest wait for it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    untyped: list[str] = field(default_factory=list)  # responses that are neither an answer nor a typed error

    def note(self, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1
        self.slowest[outcome] = max(seconds, self.slowest.get(outcome, 0.0))

    def __str__(self) -> str:
        return ", ".join(f"{count} × {what} (≤ {self.slowest[what]:.1f} s)" for what, count in self.outcomes.items())


class Readers:
    """This many clients, which keep asking inside `async with`."""

    def __init__(self, url: str, count: int = 4) -> None:
        self.tally = Tally()
        self._readers = [Reader() for _ in range(count)]
        limits = httpx2.Limits(max_connections=count + 5, keepalive_expiry=1.0)  # the server's is 5 s
        self._http = httpx2.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False, limits=limits)
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Readers":
        self._tasks = [asyncio.create_task(self._read(reader)) for reader in self._readers]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._http.aclose()

    async def stop(self) -> None:
        """Lets every client finish its current question."""
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def answered(self, times: int = 1, seconds: float = 180.0) -> None:
        """Waits until each client has got this many stored answers, counted from now."""
        wanted = [len(reader.stored) + times for reader in self._readers]
        async with asyncio.timeout(seconds):
            while any(  # noqa: ASYNC110
                len(reader.stored) < number for reader, number in zip(self._readers, wanted, strict=True)
            ):
                await asyncio.sleep(0.02)

    async def heard(self, times: int, seconds: float) -> None:
        """Waits until all clients together have got this many outcomes."""
        wanted = self.tally.outcomes.total() + times
        async with asyncio.timeout(seconds):
            while self.tally.outcomes.total() < wanted:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def lost(self) -> int:
        """How many acknowledged questions are missing or in the wrong order."""
        missing = 0
        for reader in self._readers:
            thread = await self._http.get(f"/sessions/{reader.session}")
            kept = [one["content"] for one in thread.json().get("messages", ()) if one["role"] == "user"]
            recent = reader.stored[-20:]  # a thread shows its last 25 turns
            there = iter(kept)
            missing += sum(
                question not in there for question in recent
            )  # `in` on an iterator continues after the last match
            counted = thread.json().get("turn_count", 0)
            missing += max(0, len(reader.stored) - counted)
        return missing

    async def _read(self, reader: Reader) -> None:
        while not self._stopping.is_set():
            reader.asked += 1
            question = in_other_letters(QUESTION, reader.asked)
            began = time.monotonic()
            try:
                outcome, stored = await self._ask(reader, question)
            except httpx2.ConnectError:
                outcome, stored = REFUSED, False
            except httpx2.TransportError:
                outcome, stored = CONNECTION_LOST, False
            self.tally.note(outcome, time.monotonic() - began)
            if stored:
                reader.stored.append(question)
            await asyncio.sleep(PAUSE)

    async def _ask(self, reader: Reader, question: str) -> tuple[str, bool]:
        """Every second question as a stream."""
        body = {"query": question, "session_id": reader.session, "stream": reader.asked % 2 == 0}
        answer = await self._http.post("/chat", json=body)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
            return self._outcome(200, events[-1] if events else {})
        try:
            return self._outcome(answer.status_code, answer.json())
        except ValueError:
            return self._outcome(answer.status_code, answer.text[:200])

    def _outcome(self, status: int, said: Any) -> tuple[str, bool]:
        match said:
            case {"status": str(outcome), "metadata": {"stored": bool(stored)}} if status == 200:
                return (outcome if stored else f"{outcome}, not stored"), stored
            case {"error_code": str(code), "message": str(message)} if message:
                return code, False
        self.tally.untyped.append(f"{status} {said}")
        return "untyped", False
