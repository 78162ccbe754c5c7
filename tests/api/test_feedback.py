"""Feedback over real HTTP, stored in a real Postgres."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.models import FeedbackKept
from chapterverse.settings import Settings
from tests.api.test_errors import refused
from tests.api.test_sessions import serving
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

pytestmark = pytest.mark.slow

ALWAYS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


async def test_rating_is_stored_and_can_be_changed(database_url: str) -> None:
    session_id, turn_id, other = str(uuid4()), str(uuid4()), str(uuid4())
    conversations = Conversations(database_url)
    await conversations.store(Turn(session_id, "question", "answer", turn_id=turn_id))
    await conversations.store(Turn(session_id, "another", "answer", turn_id=other))
    await conversations.close()

    def rate() -> None:
        with serving(database_url) as server:
            given = {"turn_id": turn_id, "rating": "down", "reason": "incomplete", "comment": "  The flag is missing. "}
            answer = server.http.post("/feedback", json=given)
            assert answer.status_code == 200, answer.text
            kept = FeedbackKept.model_validate_json(answer.content)
            assert (kept.turn_id, kept.session_id) == (turn_id, session_id)
            assert (kept.rating, kept.reason, kept.comment) == ("down", "incomplete", "The flag is missing.")
            messages = server.http.get(f"/sessions/{session_id}").json()["messages"]
            assert [message["turn_id"] for message in messages] == [None, turn_id, None, other]
            assert messages[1]["feedback"]["comment"] == "The flag is missing."
            assert messages[3]["feedback"] is None, "only one turn was rated"
            again = server.http.post("/feedback", json={"turn_id": turn_id.upper(), "rating": "up"})
            assert (again.json()["rating"], again.json()["reason"], again.json()["comment"]) == ("up", None, "")
            server.http.delete(f"/sessions/{session_id}")
            refused(server.http.post("/feedback", json={"turn_id": turn_id, "rating": "up"}), 404, "not_found")

    await asyncio.to_thread(rate)


async def test_unknown_turn_and_turn_of_another_session_return_404(database_url: str) -> None:
    turn_id = str(uuid4())
    conversations = Conversations(database_url)
    await conversations.store(Turn(str(uuid4()), "question", "answer", turn_id=turn_id))

    def rate() -> None:
        with serving(database_url) as server:
            for given in ({"turn_id": str(uuid4())}, {"turn_id": turn_id, "session_id": str(uuid4())}):
                body = refused(server.http.post("/feedback", json=given | {"rating": "down"}), 404, "not_found")
                assert given["turn_id"] in body["message"]

    await asyncio.to_thread(rate)
    assert (await conversations.rated(*ALWAYS)) == [], "the turn of another session is unchanged"
    await conversations.close()


def test_invalid_feedback_returns_400_and_names_the_field(server: Served) -> None:
    good = {"turn_id": str(uuid4()), "rating": "down"}
    for bad, field in (
        ({"turn_id": "nonsense"}, "turn_id"),
        ({"session_id": "nonsense"}, "session_id"),
        ({"rating": "sideways"}, "rating"),
        ({"reason": "I do not like it"}, "reason"),
        ({"comment": "x" * 1001}, "comment"),
        ({"comment": "nul \x00"}, "comment"),
        ({"stars": 5}, "stars"),
        ({"rating": "up", "reason": "wrong"}, "reason"),
    ):
        body = refused(server.http.post("/feedback", json=good | bad), 400, "validation_error")
        assert field in body["message"], bad


def test_feedback_needs_a_key_and_a_database_and_is_rate_limited() -> None:
    given = {"turn_id": str(uuid4()), "rating": "up"}
    unreachable = Conversations("postgresql://nobody@127.0.0.1:1/nothing")
    settings = Settings.load(api_keys="open-sesame", api_key_rate_limit=1)
    with serve(settings, opening=without_engines(conversations=unreachable), answering=Scripted()) as server:
        refused(server.http.post("/feedback", json=given), 401, "unauthorized")
        key = {"X-API-Key": "open-sesame"}
        refused(server.http.post("/feedback", json=given, headers=key), 503, "conversations_unavailable")
        refused(server.http.post("/feedback", json=given, headers=key), 429, "rate_limited")


def test_stored_answer_can_be_rated(small_server: Served) -> None:
    small_server.health(lambda said: said["status"] == "healthy")  # a busy machine needs more than a search has to load
    asked = small_server.http.post("/chat", json={"query": "What is it about?"})
    assert asked.status_code == 200, asked.text
    answer = asked.json()
    assert answer["metadata"]["stored"]
    given = {"turn_id": answer["turn_id"], "session_id": answer["session_id"], "rating": "up"}
    assert small_server.http.post("/feedback", json=given).status_code == 200
