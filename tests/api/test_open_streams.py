"""Many open streams at once, with the default settings and a slow model. `make streams` opens 200."""

import asyncio
from pathlib import Path

import pytest
from bench.open_streams import open_streams, paced_server

from chapterverse.api.access.slots import SlotQueue
from chapterverse.api.chat.routes import SlotReleasingWriter
from chapterverse.conversations.turns import Turn
from chapterverse.settings import Settings
from chapterverse.writing import Finished
from chapterverse.writing.excerpt import ExcerptWriter

STREAMS = 60  # six times the slots


@pytest.mark.slow
def test_more_open_streams_than_slots_all_finish(example_home: Path, postgres_url: str) -> None:
    assert Settings.load().max_concurrent_requests < STREAMS
    with paced_server(example_home, database_url=postgres_url) as url:
        figures = asyncio.run(open_streams(url, STREAMS))
    assert figures["outcomes"] == {"ok": STREAMS}
    assert figures["searches_meanwhile"]["outcomes"] == ["ok"]


async def test_slot_is_given_back_while_a_follow_up_is_rewritten() -> None:
    gate = SlotQueue(slots=1)
    seen: list[int] = []

    class Slow(ExcerptWriter):
        async def rewrite(self, question: str, history: object) -> tuple[str, Finished]:
            seen.append(gate.running)
            async with gate.slot("another"):
                pass
            return question, Finished()

    async with gate.slot("client") as slot:
        turn = Turn(session_id="", query="a", response="b")
        rewritten, _ = await SlotReleasingWriter(Slow(), slot).rewrite("And a service?", [turn])
        assert (rewritten, seen, gate.running) == ("And a service?", [0], 1)
    assert gate.running == 0
