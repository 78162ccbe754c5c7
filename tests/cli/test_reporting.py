"""`report` and `eval --from-feedback` on a real book and a real Postgres."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from chapterverse.conversations.store import Conversations
from chapterverse.conversations.turns import Turn
from chapterverse.models import FeedbackRequest
from tests.cli.process import chapterverse

pytestmark = pytest.mark.slow


async def fill(database_url: str) -> None:
    conversations = Conversations(database_url)
    good, bad = str(uuid4()), str(uuid4())
    source = {"source_url": "book/nodes.md#nodes", "quote": "Nodes find each other by discovery."}
    answered = Turn(str(uuid4()), "How do nodes find each other?", "By discovery.", (source,), confidence=0.9)
    for turn, refused in ((good, False), (bad, False), ("", True)):
        fields = {"turn_id": turn, "session_id": str(uuid4())}
        query = "How is a \x1b[31mKubernetes cluster made?" if refused else answered.query
        status = "refused" if refused else "answered"
        await conversations.store(
            Turn(**fields, query=query, response="…", sources=answered.sources, status=status, confidence=0.9)  # type: ignore[arg-type]
        )
    await conversations.rate(FeedbackRequest(turn_id=good, rating="up"))
    await conversations.rate(FeedbackRequest(turn_id=bad, rating="down", reason="incomplete", comment="And services?"))
    await conversations.close()


async def test_report_is_printed_and_saved_as_json_and_page(
    small_home: Path, database_url: str, tmp_path: Path
) -> None:
    await fill(database_url)
    shown = chapterverse(small_home, "report", "--out", str(tmp_path / "new" / "folder"), DATABASE_URL=database_url)
    assert shown.returncode == 0, shown.stderr
    for line in (
        "questions              3",
        "refused                1",
        "rated down             1",
        "  incomplete           1",
    ):
        assert line in shown.stdout
    assert "How is a [31mKubernetes cluster made?" in shown.stdout, "a question must not control the terminal"
    assert "nearest: " in shown.stdout and "the book lacks: " in shown.stdout
    data, page = sorted((tmp_path / "new" / "folder").iterdir(), key=lambda path: path.suffix, reverse=True)
    assert page.suffix == ".html" and page.read_text("utf-8").count("<svg") == 3
    kept = json.loads(data.read_text("utf-8"))
    assert (kept["questions"], kept["rated_up"], len(kept["gaps"]), kept["named_by"]) == (3, 1, 2, "")
    printed = json.loads(chapterverse(small_home, "report", "--json", DATABASE_URL=database_url).stdout)
    assert [gap["name"] for gap in printed["gaps"]] == [gap["name"] for gap in kept["gaps"]]
    assert "session_id" not in json.dumps(printed)


async def test_rated_answers_become_a_set_for_eval(small_home: Path, database_url: str, tmp_path: Path) -> None:
    await fill(database_url)
    made = chapterverse(small_home, "eval", "--from-feedback", DATABASE_URL=database_url)
    assert made.returncode == 0, made.stderr
    [question] = map(json.loads, made.stdout.splitlines())
    assert question["kind"] == "down" and "And services?" in question["why"] and question["check"]
    assert "1 question, " in made.stderr
    (tmp_path / "rated.jsonl").write_text(made.stdout, "utf-8")
    asked = chapterverse(small_home, "eval", str(tmp_path / "rated.jsonl"), "--json")
    assert asked.returncode == 0, asked.stderr
    refused = chapterverse(small_home, "eval", "--from-feedback", "set.jsonl")
    assert refused.returncode == 2


def test_report_without_a_database_or_book_is_an_error(small_home: Path, tmp_path: Path) -> None:
    unreachable = chapterverse(small_home, "report", DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")
    assert unreachable.returncode != 0 and "Traceback" not in unreachable.stderr
    empty = chapterverse(tmp_path / "none", "report")
    assert empty.returncode != 0 and not (tmp_path / "none").exists(), "no home is created"
