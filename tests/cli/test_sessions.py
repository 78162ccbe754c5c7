"""`sessions` lists, shows and deletes conversations of a real Postgres."""

import json
from pathlib import Path

import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from tests.cli.process import chapterverse

pytestmark = pytest.mark.slow

SESSION = "0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10"


async def test_sessions_are_listed_shown_and_deleted(tmp_path: Path, database_url: str) -> None:
    def sessions(*arguments: str) -> tuple[int, str, str]:
        shown = chapterverse(tmp_path, "sessions", *arguments, DATABASE_URL=database_url)
        return shown.returncode, shown.stdout, shown.stderr

    assert "No conversation is stored yet" in sessions()[2]

    conversations = Conversations(database_url)
    await conversations.store(Turn(SESSION, "What is a node?", "A \x1b[31mparticipant [1]."))
    assert sessions()[1].startswith("What is a node?\n"), "a session without a topic is named by its first question"
    await conversations.set_topic(SESSION, "Nodes")
    await conversations.close()

    code, listed, _ = sessions()
    assert code == 0
    assert listed.startswith("Nodes\n")
    assert listed.rstrip().endswith(f"· 1 turn · {SESSION}")
    assert json.loads(sessions("--json")[1])[0]["turn_count"] == 1
    code, shown, notes = sessions("show", SESSION)
    assert code == 0
    assert shown == "> What is a node?\nA [31mparticipant [1].\n\n", "an answer must not control the terminal"
    assert "1 turn · last used" in notes
    assert len(json.loads(sessions("show", SESSION, "--json")[1])["messages"]) == 2
    assert json.loads(sessions("delete", SESSION, "--json")[1]) == {"deleted": SESSION}
    for unknown in (SESSION, "nonsense"):
        code, shown, notes = sessions("show", unknown)
        assert (code, shown) == (4, "")
        assert f"no session {unknown}" in notes


def test_sessions_without_a_database_creates_none(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path / "home", "sessions")
    assert shown.returncode == 0
    assert f"There is no database in {tmp_path / 'home' / 'postgres'}" in shown.stderr
    assert not (tmp_path / "home").exists()
