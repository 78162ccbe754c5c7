"""Slots and turns: how many run, who is next, who is turned away."""

import asyncio
from contextlib import suppress

import pytest

from chapterverse.api.access.slots import SlotQueue
from chapterverse.errors import Overloaded


class Crowd:
    """Clients before a gate, whose order of entering is kept."""

    def __init__(self, gate: SlotQueue) -> None:
        self.gate = gate
        self.entered: list[str] = []
        self.refused: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.leave: dict[str, asyncio.Event] = {}

    async def come(self, *names: str) -> None:
        """Requests such as a1, a2 and b1: of client a, a and b."""
        for name in names:
            self.leave[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._request(name))
            await settle()

    async def _request(self, name: str) -> None:
        try:
            async with self.gate.slot(name[0]):
                self.entered.append(name)
                await self.leave[name].wait()
        except Overloaded as refusal:
            assert refusal.retry_after
            self.refused.append(name)

    async def finish(self) -> None:
        while self.gate.running:
            for name in self.entered:
                self.leave[name].set()
            await settle()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_clients_take_turns() -> None:
    crowd = Crowd(SlotQueue(slots=1))
    await crowd.come("a1", "a2", "a3", "a4", "b1", "c1", "b2")
    assert (crowd.entered, crowd.gate.running, crowd.gate.waiting) == (["a1"], 1, 6)
    await crowd.finish()
    assert crowd.entered == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
    assert (crowd.gate.running, crowd.gate.waiting) == (0, 0)


async def test_a_request_that_gave_its_slot_back_is_next() -> None:
    gate = SlotQueue(slots=1, queue=2)
    crowd = Crowd(gate)
    waited = asyncio.Event()

    async def wait_for_a_model() -> None:
        async with gate.slot("m") as slot:
            crowd.entered.append("m1")
            async with slot.given_back():
                await waited.wait()
            crowd.entered.append("m1 again")

    model = asyncio.create_task(wait_for_a_model())
    await settle()
    await crowd.come("a1", "a2", "b1")  # the queue is full
    assert (crowd.entered, gate.running, gate.waiting) == (["m1", "a1"], 1, 2)
    waited.set()
    await settle()
    crowd.leave["a1"].set()
    await settle()
    await model
    assert crowd.entered[:3] == ["m1", "a1", "m1 again"], "before all who have not begun"
    crowd.entered = [name for name in crowd.entered if name in crowd.leave]
    await crowd.finish()
    assert crowd.refused == []
    assert (gate.running, gate.waiting) == (0, 0)


async def test_a_slot_is_given_back_once() -> None:
    gate = SlotQueue(slots=2)
    async with gate.slot("a"):
        async with gate.slot("b") as slot:
            slot.give_back()
            slot.give_back()
            assert gate.running == 1
        assert gate.running == 1
    assert gate.running == 0


async def test_one_client_cannot_have_the_queue_for_itself() -> None:
    crowd = Crowd(SlotQueue(slots=1, queue=4))
    await crowd.come("a1", "a2", "a3", "a4", "a5", "a6")
    assert crowd.refused == ["a6"]
    await crowd.come("b1", "c1", "b2")  # each makes the greediest give up its newest
    assert crowd.refused == ["a6", "a5", "a4", "b2"]
    await crowd.come("a7", "d1")  # a and all others have their share, nobody is displaced for a newcomer with more
    assert crowd.refused == ["a6", "a5", "a4", "b2", "a7", "a3"]
    await crowd.finish()
    assert crowd.entered == ["a1", "a2", "b1", "c1", "d1"]


async def test_a_request_that_waits_too_long_is_refused() -> None:
    crowd = Crowd(SlotQueue(slots=1, patience=0.01))
    await crowd.come("a1", "b1")
    await crowd.tasks["b1"]
    assert crowd.refused == ["b1"]
    assert crowd.gate.waiting == 0
    await crowd.finish()


@pytest.mark.parametrize("moment", ["waiting", "called", "running"])
async def test_a_cancelled_request_frees_its_slot(moment: str) -> None:
    crowd = Crowd(SlotQueue(slots=1))
    await crowd.come("a1", "b1", "c1")
    if moment == "waiting":
        crowd.tasks["b1"].cancel()
    elif moment == "called":  # the slot is given to b, who is cancelled before it can know
        crowd.tasks["a1"].cancel()
        await asyncio.sleep(0)
        crowd.tasks["b1"].cancel()
    else:
        crowd.leave["a1"].set()
        await settle()
        crowd.tasks["b1"].cancel()
    with suppress(asyncio.CancelledError):
        await crowd.tasks["b1"]
    await crowd.finish()
    assert crowd.entered[-1] == "c1"
    assert (crowd.gate.running, crowd.gate.waiting) == (0, 0)


async def test_the_wait_told_grows_with_the_queue() -> None:
    crowd = Crowd(SlotQueue(slots=1, queue=10))
    await crowd.come(*(f"{client}1" for client in "abcdefghijk"))
    with pytest.raises(Overloaded) as caught:
        async with crowd.gate.slot("z"):
            pass
    assert caught.value.retry_after == 11  # ten before it, a second each as long as nothing is known
    await crowd.finish()
