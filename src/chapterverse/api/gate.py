"""How many requests run at once: so many slots, and a bounded queue before them that no client can have for itself.

Owns slots and turns. Clients take turns, whatever the number of requests each has waiting. A full queue makes room for
a client by turning away the newest request of the client that has most waiting; a client with most waiting is turned
away itself. Counts per process, and never blocks: everything happens on the event loop.
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


class Gate:
    """Slots, and the queue for them."""

    def __init__(self, slots: int, queue: int = QUEUE, patience: float = QUEUE_SECONDS) -> None:
        self._slots = slots
        self._queue = queue
        self._patience = patience
        self._held_seconds = 1.0  # how long a slot is held, on a moving average
        self._turns: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(len(line) for line in self._turns.values())

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Hold a slot; raise `Overloaded` when the queue is full or does not move."""
        await self._enter(client)
        loop = asyncio.get_running_loop()
        entered = loop.time()
        try:
            yield
        finally:
            self._held_seconds += 0.1 * (loop.time() - entered - self._held_seconds)
            self._leave()

    async def _enter(self, client: str) -> None:
        if self.running < self._slots:  # then nobody waits
            self.running += 1
            return
        if self.waiting >= self._queue:
            self._make_room(client)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.setdefault(client, deque()).append(turn)
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

    def _leave(self) -> None:
        """Hand the slot to the next client in turn, who goes to the end of the round if it has more waiting."""
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
