"""How many requests work at once: so many slots, and a bounded queue before them that no client can have for itself.

A slot is for work of our own: embedding, searching, reading. Who waits for a language model, or for a client that reads
a stream, holds none, so that short requests are served meanwhile; how many answers may be open is bounded for itself.

Clients take turns, whatever the number of requests each has waiting. A full queue makes room for a client by turning
away the newest request of the client that has most waiting; a client with most waiting is turned away itself. Counts
per process, and never blocks: everything happens on the event loop.
"""

import asyncio
import math
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chapterverse.errors import Overloaded

QUEUE: Final = 200  # requests that may wait
QUEUE_SECONDS: Final = 25.0  # for so long at most: the rest of the request's 30 seconds is for the answer
OPEN_ANSWERS: Final = 500  # that may be under way, those included that wait: each takes some memory


class Slot:
    """The right to work, of one request. It can be given back for a while, or for good."""

    def __init__(self, gate: "SlotQueue", client: str) -> None:
        self._gate = gate
        self._client = client
        self._since: float | None = None  # when it was taken; None: it is not held

    async def take(self, *, again: bool = False) -> None:
        """Wait for it in turn; `again`: before all who have not begun."""
        await self._gate.enter(self._client, again=again)
        self._since = asyncio.get_running_loop().time()

    def give_back(self) -> None:
        """Let the next one work. Harmless if it was given back before."""
        if self._since is not None:
            self._gate.leave(asyncio.get_running_loop().time() - self._since)
            self._since = None

    @asynccontextmanager
    async def given_back(self) -> AsyncIterator[None]:
        """Wait for something without it, and take it again afterwards."""
        self.give_back()
        yield
        await self.take(again=True)


class SlotQueue:
    """Slots, and the queue for them."""

    def __init__(
        self, slots: int, queue: int = QUEUE, patience: float = QUEUE_SECONDS, answers: int = OPEN_ANSWERS
    ) -> None:
        self._slots = slots
        self._queue = queue
        self._patience = patience
        self._most_answers = answers
        self.answers = 0  # that are open
        self._held_seconds = 1.0  # how long a slot is held, on a moving average
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(len(line) for line in self._turns.values())

    def is_busy(self) -> bool:
        """Whether any request works or waits."""
        return self.running > 0 or self.waiting > 0

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[Slot]:
        """Hold a slot; raise `Overloaded` when the queue is full or does not move."""
        slot = Slot(self, client)
        await slot.take()
        try:
            yield slot
        finally:
            slot.give_back()

    @asynccontextmanager
    async def answer(self) -> AsyncIterator[None]:
        """Be one of the open answers; raise `Overloaded` when there are too many."""
        if self.answers >= self._most_answers:
            raise self._overloaded()
        self.answers += 1
        try:
            yield
        finally:
            self.answers -= 1

    async def enter(self, client: str, *, again: bool = False) -> None:
        """Take a slot in turn; `again`: before all others, and whatever the length of the queue."""
        if self.running < self._slots:  # then no request waits
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
        self._turns[longest].pop().set_exception(self._overloaded())

    def leave(self, held_seconds: float) -> None:
        """Give a slot back that was held for so long."""
        self._held_seconds += 0.1 * (held_seconds - self._held_seconds)
        self._leave()

    def _leave(self) -> None:
        """Give the slot to the next client in turn. It goes to the end of the round if it has more requests waiting."""
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
        """Leave the queue; a slot that came at the same moment goes to the next."""
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
