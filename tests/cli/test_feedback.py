"""`feedback`, and /up and /down in `chat`, stored in a real Postgres."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from tests.cli.process import chapterverse

pytestmark = pytest.mark.slow

ALWAYS = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


async def test_feedback_rates_an_answer(tmp_path: Path, database_url: str) -> None:
    turn = str(uuid4())
    conversations = Conversations(database_url)
    await conversations.store(Turn(str(uuid4()), "What is a node?", "A participant.", turn_id=turn))

    def feedback(*arguments: str) -> tuple[int, str, str]:
        shown = chapterverse(tmp_path, "feedback", *arguments, DATABASE_URL=database_url)
        return shown.returncode, shown.stdout, shown.stderr

    assert feedback(turn, "down", "--reason", "incomplete", "--comment", "No figure.") == (
        0,
        "",
        "Stored: down, incomplete.\n",
    )
    [rated] = await conversations.rated(*ALWAYS)
    assert rated.feedback and (rated.feedback.reason, rated.feedback.comment) == ("incomplete", "No figure.")
    code, printed, _ = feedback(turn, "up", "--json")
    assert (code, json.loads(printed)["rating"]) == (0, "up")
    await conversations.close()

    code, printed, output = feedback(str(uuid4()), "up")
    assert (code, printed) == (4, "") and "There is no turn" in output
    for bad in (("nonsense", "up"), (turn, "sideways"), (turn, "down", "--reason", "taste")):
        code, printed, output = feedback(*bad)
        assert (code, printed) == (2, ""), output


def test_feedback_without_a_database_creates_none(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path / "home", "feedback", str(uuid4()), "up")
    assert shown.returncode == 4
    assert not (tmp_path / "home").exists()


async def test_up_and_down_in_chat_rate_the_last_answer(small_home: Path, database_url: str) -> None:
    def chat(fed: str, *options: str) -> str:
        return chapterverse(small_home, "chat", *options, fed=fed, DATABASE_URL=database_url).stderr

    output = chat("/up\nWhat is the handbook about?\n/down wrong It is 42.\n/help\n")
    assert "There is no answer to rate yet." in output
    assert "Thank you" in output and "/up, /down" in output
    conversations = Conversations(database_url)
    [rated] = await conversations.rated(*ALWAYS)
    assert rated.feedback and (rated.feedback.reason, rated.feedback.comment) == ("wrong", "It is 42.")

    session = re.search(r"chat --session (\S+)", output)
    assert session
    chat("/up wrong is no reason here\n", "--session", session[1])
    [rated] = await conversations.rated(*ALWAYS)
    assert rated.feedback and rated.feedback.rating == "up"
    assert rated.feedback.comment == "wrong is no reason here"
    await conversations.close()
