"""Streams that are open at once, at the default settings, with a slow model: `make streams` opens 200 of them."""

import asyncio
from pathlib import Path

import pytest
from bench.open_streams import open_streams, paced_server

from chapterverse.api.access.slots import SlotQueue
from chapterverse.api.chat.routes import ConsiderateWriter
from chapterverse.conversations.turns import Turn
from chapterverse.settings import Settings
from chapterverse.writing import Finished
from chapterverse.writing.excerpt import ExcerptWriter

STREAMS = 60  # six times the slots


@pytest.mark.slow
def test_open_streams_finish(example_home: Path, postgres_url: str) -> None:
    assert Settings.load().max_concurrent_requests < STREAMS
    with paced_server(example_home, database_url=postgres_url) as url:
        figures = asyncio.run(open_streams(url, STREAMS))
    assert figures["outcomes"] == {"ok": STREAMS}
    assert figures["searches_meanwhile"]["outcomes"] == ["ok"]


async def test_a_follow_up_is_rephrased_without_a_slot() -> None:
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
        rewritten, _ = await ConsiderateWriter(Slow(), slot).rewrite("And a service?", [turn])
        assert (rewritten, seen, gate.running) == ("And a service?", [0], 1)
    assert gate.running == 0
