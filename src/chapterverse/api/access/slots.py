"""Limits how many requests run at once, with slots and a bounded queue that is fair to all clients.

A request holds a slot while this process works for it: embedding, searching, reading. While it waits for a language
model, or for its client to read a stream, it holds none, so that other requests are served meanwhile. The number of
open answers is limited separately.

Clients take turns, regardless of how many requests each has waiting. If the queue is full, the newest request of the
client with the most waiting requests is refused to make room. If the new request is from that client, it is refused.
The counts are per process and are changed only on the event loop.
"""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chapterverse.errors import Overloaded

QUEUE: Final = 200  # requests that may wait
QUEUE_SECONDS: Final = 25.0  # maximum wait; the rest of the request's 30 seconds is for the answer
OPEN_ANSWERS: Final = 500  # maximum, including those that wait: each takes some memory


class Slot:
    """The slot of one request. It can be released for a while, or for good."""

    def __init__(self, gate: "SlotQueue", client: str) -> None:
        self._gate = gate
        self._client = client
        self._since: float | None = None  # when it was taken; None if it is not held

    async def take(self, *, again: bool = False) -> None:
        """Wait for a slot. With `again`, go ahead of requests that have not begun."""
        await self._gate.enter(self._client, again=again)
        self._since = asyncio.get_running_loop().time()

    def give_back(self) -> None:
        """Release the slot. Does nothing if it is not held."""
        if self._since is not None:
            self._gate.leave(asyncio.get_running_loop().time() - self._since)
            self._since = None

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Release the slot while something is awaited, and take one again afterwards."""
        self.give_back()
        yield
        await self.take(again=True)


class SlotQueue:
    """The slots and the queue for them."""

    def __init__(
        self, slots: int, queue: int = QUEUE, patience: float = QUEUE_SECONDS, answers: int = OPEN_ANSWERS
    ) -> None:
        self._slots = slots
        self._queue = queue
        self._patience = patience
        self._most_answers = answers
        self.answers = 0  # open now
        self._held_seconds = 1.0  # how long a slot is held: a moving average
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many requests are waiting."""
        return sum(len(line) for line in self._turns.values())

    def is_busy(self) -> bool:
        """Whether any request is running or waiting."""
        return self.running > 0 or self.waiting > 0

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[Slot]:
        """Hold a slot. Raise `Overloaded` if the queue is full or too slow."""
        slot = Slot(self, client)
        await slot.take()
        try:
            yield slot
        finally:
            slot.give_back()

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[None]:
        """Count the request as an open answer. Raise `Overloaded` if there are too many."""
        if self.answers >= self._most_answers:
            raise self._overloaded()
        self.answers += 1
        try:
            yield
        finally:
            self.answers -= 1

    async def enter(self, client: str, *, again: bool = False) -> None:
        """Wait for a slot. With `again`, go to the front of the queue, even if it is full."""
        if self.running < self._slots:  # then no request is waiting
            self.running += 1
            return
        if self.waiting >= self._queue and not again:
            self._make_room(client)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._turns.setdefault(client, deque())
        if again:
            line.appendleft(turn)
            self._turns.move_to_end(client, last=False)
        else:
            line.append(turn)
        try:
            async with asyncio.timeout(self._patience):
                await turn
        except TimeoutError:
            self._forget(client, turn)
            raise self._overloaded() from None
        except asyncio.CancelledError:
            self._forget(client, turn)
            raise

    def _make_room(self, client: str) -> None:
        longest = max(self._turns, key=lambda name: len(self._turns[name]))
        if len(self._turns.get(client, ())) + 1 >= len(self._turns[longest]):
            raise self._overloaded()
        newest = self._turns[longest].pop()
        if not newest.done():  # else it is being cancelled, and makes room itself
            newest.set_exception(self._overloaded())

    def leave(self, held_seconds: float) -> None:
        """Release a slot that was held for this long."""
        self._held_seconds += 0.1 * (held_seconds - self._held_seconds)
        self._leave()

    def _leave(self) -> None:
        """Give the slot to the next client. If that client has more requests waiting, it moves to the end of the
        line."""
        while self._turns:
            client, line = self._turns.popitem(last=False)
            turn = line.popleft()
            if line:
                self._turns[client] = line
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1

    def _forget(self, client: str, turn: "asyncio.Future[None]") -> None:
        """Leave the queue. A slot that was assigned at the same moment goes to the next client."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self._leave()
        elif (line := self._turns.get(client)) and turn in line:
            line.remove(turn)
            if not line:
                del self._turns[client]

    def _overloaded(self) -> Overloaded:
        wait = max(1, math.ceil(self._held_seconds * (self.waiting + 1) / self._slots))
        return Overloaded(
            "Too many questions at once. Ask again in a moment.", details={"waiting": self.waiting}, retry_after=wait
        )
