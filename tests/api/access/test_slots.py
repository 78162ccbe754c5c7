"""The queue for slots: how many requests run, which is next, which are refused."""

import asyncio
from contextlib import suppress

import pytest

from chapterverse.api.access.slots import SlotQueue
from chapterverse.errors import Overloaded


class Requests:
    """Requests of several clients to one queue; records the order in which they get a slot."""

    def __init__(self, slot_queue: SlotQueue) -> None:
        self.slot_queue = slot_queue
        self.entered: list[str] = []
        self.refused: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.release: dict[str, asyncio.Event] = {}

    async def start(self, *names: str) -> None:
        """Starts requests. The first letter of a name is the client: a1 and a2 are requests of client a."""
        for name in names:
            self.release[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._request(name))
            await settle()

    async def _request(self, name: str) -> None:
        try:
            async with self.slot_queue.slot(name[0]):
                self.entered.append(name)
                await self.release[name].wait()
        except Overloaded as refusal:
            assert refusal.retry_after
            self.refused.append(name)

    async def finish(self) -> None:
        while self.slot_queue.running:
            for name in self.entered:
                self.release[name].set()
            await settle()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_slots_go_to_clients_in_turn() -> None:
    requests = Requests(SlotQueue(slots=1))
    await requests.start("a1", "a2", "a3", "a4", "b1", "c1", "b2")
    assert (requests.entered, requests.slot_queue.running, requests.slot_queue.waiting) == (["a1"], 1, 6)
    await requests.finish()
    assert requests.entered == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]
    assert (requests.slot_queue.running, requests.slot_queue.waiting) == (0, 0)


async def test_request_that_gave_its_slot_back_gets_the_next_one() -> None:
    slot_queue = SlotQueue(slots=1, queue=2)
    requests = Requests(slot_queue)
    waited = asyncio.Event()

    async def wait_for_a_model() -> None:
        async with slot_queue.slot("m") as slot:
            requests.entered.append("m1")
            async with slot.given_back():
                await waited.wait()
            requests.entered.append("m1 again")

    model = asyncio.create_task(wait_for_a_model())
    await settle()
    await requests.start("a1", "a2", "b1")  # the queue is full
    assert (requests.entered, slot_queue.running, slot_queue.waiting) == (["m1", "a1"], 1, 2)
    waited.set()
    await settle()
    requests.release["a1"].set()
    await settle()
    await model
    assert requests.entered[:3] == ["m1", "a1", "m1 again"], "it comes before requests that have not started"
    requests.entered = [name for name in requests.entered if name in requests.release]
    await requests.finish()
    assert requests.refused == []
    assert (slot_queue.running, slot_queue.waiting) == (0, 0)


async def test_giving_a_slot_back_twice_frees_one_slot() -> None:
    slot_queue = SlotQueue(slots=2)
    async with slot_queue.slot("a"):
        async with slot_queue.slot("b") as slot:
            slot.give_back()
            slot.give_back()
            assert slot_queue.running == 1
        assert slot_queue.running == 1
    assert slot_queue.running == 0


async def test_full_queue_drops_the_newest_request_of_the_client_with_most() -> None:
    requests = Requests(SlotQueue(slots=1, queue=4))
    await requests.start("a1", "a2", "a3", "a4", "a5", "a6")
    assert requests.refused == ["a6"]
    await requests.start("b1", "c1", "b2")  # each displaces the newest request of the client with most
    assert requests.refused == ["a6", "a5", "a4", "b2"]
    await requests.start("a7", "d1")  # a client with as many as the others cannot displace any
    assert requests.refused == ["a6", "a5", "a4", "b2", "a7", "a3"]
    await requests.finish()
    assert requests.entered == ["a1", "a2", "b1", "c1", "d1"]


async def test_full_queue_makes_room_even_if_the_dropped_request_is_being_cancelled() -> None:
    requests = Requests(SlotQueue(slots=1, queue=4))
    await requests.start("a1", "a2", "a3", "a4", "a5")
    arriving = asyncio.create_task(requests.start("b1"))
    await asyncio.sleep(0)  # the task of b1 is made, and runs next
    requests.tasks["a5"].cancel()  # its client disconnects; it has not left the queue yet when b1 arrives
    await arriving
    assert requests.slot_queue.waiting == 4
    await requests.finish()
    assert requests.entered == ["a1", "a2", "b1", "a3", "a4"]
    assert (requests.refused, requests.slot_queue.running, requests.slot_queue.waiting) == ([], 0, 0)


async def test_request_is_refused_after_waiting_too_long() -> None:
    requests = Requests(SlotQueue(slots=1, patience=0.01))
    await requests.start("a1", "b1")
    await requests.tasks["b1"]
    assert requests.refused == ["b1"]
    assert requests.slot_queue.waiting == 0
    await requests.finish()


@pytest.mark.parametrize("moment", ["waiting", "given", "running"])
async def test_a_cancelled_request_frees_its_slot(moment: str) -> None:
    requests = Requests(SlotQueue(slots=1))
    await requests.start("a1", "b1", "c1")
    if moment == "waiting":
        requests.tasks["b1"].cancel()
    elif moment == "given":  # b gets the slot and is cancelled before it runs
        requests.tasks["a1"].cancel()
        await asyncio.sleep(0)
        requests.tasks["b1"].cancel()
    else:
        requests.release["a1"].set()
        await settle()
        requests.tasks["b1"].cancel()
    with suppress(asyncio.CancelledError):
        await requests.tasks["b1"]
    await requests.finish()
    assert requests.entered[-1] == "c1"
    assert (requests.slot_queue.running, requests.slot_queue.waiting) == (0, 0)


async def test_retry_after_grows_with_the_queue() -> None:
    requests = Requests(SlotQueue(slots=1, queue=10))
    await requests.start(*(f"{client}1" for client in "abcdefghijk"))
    with pytest.raises(Overloaded) as caught:
        async with requests.slot_queue.slot("z"):
            pass
    assert caught.value.retry_after == 11  # ten are before it; a second each while no duration is known
    await requests.finish()
