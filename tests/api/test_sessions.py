"""Stored conversations over real HTTP, in a real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.models import ConversationThread
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow


@contextmanager
def serving(database_url: str) -> Iterator[Served]:
    @asynccontextmanager
    async def opening(settings: Settings) -> AsyncIterator[Any]:
        conversations = Conversations(database_url)
        async with without_engines(conversations=conversations)(settings) as services:
            yield services
        await conversations.close()

    with serve(Settings.load(), opening=opening, answering=Scripted()) as server:
        yield server


async def store_two_turns(database_url: str, session_id: str) -> None:
    conversations = Conversations(database_url)
    for number in range(2):
        await conversations.store(Turn(session_id, f"question {number}", f"answer {number}", confidence=0.5))
    await conversations.close()


async def test_session_can_be_read_and_deleted(database_url: str) -> None:
    session_id = str(uuid4())
    await store_two_turns(database_url, session_id)

    def read_and_delete() -> None:
        with serving(database_url) as server:
            answer = server.http.get(f"/sessions/{session_id.upper()}")
            assert answer.status_code == 200
            assert set(answer.json()) == set(ConversationThread.model_fields)
            thread = ConversationThread.model_validate_json(answer.content)
            assert [(message.role, message.content) for message in thread.messages] == [
                ("user", "question 0"),
                ("assistant", "answer 0"),
                ("user", "question 1"),
                ("assistant", "answer 1"),
            ]
            assert (thread.thread_id, thread.turn_count, thread.archived) == (session_id, 2, False)
            gone = server.http.delete(f"/sessions/{session_id}")
            assert (gone.status_code, gone.content) == (204, b"")
            refused(server.http.get(f"/sessions/{session_id}"), 404, "not_found")
            refused(server.http.delete(f"/sessions/{session_id}"), 404, "not_found")

    await asyncio.to_thread(read_and_delete)


def test_sessions_return_503_without_a_database_and_400_for_invalid_ids() -> None:
    with serving("postgresql://nobody@127.0.0.1:1/nothing") as server:
        for method in ("GET", "DELETE"):
            refused(server.http.request(method, f"/sessions/{uuid4()}"), 503, "conversations_unavailable")
            for bad in ("nonsense", "x" * 36, "0b9f4d3e-6a53-1d0c-9d53-2f1a7f1f3a10"):
                body = refused(server.http.request(method, f"/sessions/{bad}"), 400, "validation_error")
                assert "session_id" in body["message"]
