"""`chat` with a pipe, and on a terminal with its commands and Ctrl-C."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.process import Terminal, chapterverse
from tests.cli.test_asking import NOTES, llm_settings
from tests.llm_stub import Hangs, serving_llm

pytestmark = pytest.mark.slow

# Every question except the first depends on earlier turns. The second value is text that the answer must contain.
CONVERSATION = [
    ("What is ROS 2?", "second generation of the Robot Operating System"),
    ("Which middleware does it use?", "DDS"),
    ("And how do I select another implementation of it?", "RMW_IMPLEMENTATION"),
    ("How do I keep two robots apart that share its network?", "ROS_DOMAIN_ID"),
    ("Is it an operating system?", "it is not an operating system"),
    ("What are its four kinds of parts?", "four kinds of parts"),
    ("tell me more", ""),
    ("And its client library for Python?", "rclpy"),
    ("Which client library does it have for C++?", "rclcpp"),
    ("What does its environment variable ROS_DOMAIN_ID do?", "ROS_DOMAIN_ID"),
    ("Which interface is its middleware reached through?", "rmw"),
    ("So what is it built from?", ""),
]


def test_twelve_dependent_turns_survive_a_restart(example_home: Path, database_url: str) -> None:
    def talk(questions: list[tuple[str, str]], *options: str) -> tuple[list[dict[str, object]], str]:
        fed = "".join(f"{question}\n" for question, _ in questions)
        shown = chapterverse(example_home, "chat", "--json", *options, fed=fed, DATABASE_URL=database_url)
        assert shown.returncode == 0, shown.stderr
        session = re.search(r"chat --session (\S+)", shown.stderr)
        assert session
        return [json.loads(line) for line in shown.stdout.splitlines()], session[1]

    before, session = talk(CONVERSATION[:6])
    after, again = talk(CONVERSATION[6:], "--session", session)
    assert again == session
    answers = before + after
    assert len(answers) == 12
    assert {answer["session_id"] for answer in answers} == {session}
    for (question, words), answer in zip(CONVERSATION, answers, strict=True):
        assert answer["status"] == "answered", question
        assert words in str(answer["answer"]), question
    for (question, _), answer in zip(CONVERSATION[:-1], answers, strict=False):  # the last question names no subject
        urls = [source["source_url"] for source in answer["sources"]]  # type: ignore[attr-defined]
        assert any(url.startswith("book/ros2/what-is-ros2.md") for url in urls), question


def test_commands_and_ctrl_c_at_the_prompt(open_home: Path, tmp_path: Path) -> None:
    """One process on a terminal with the embedded Postgres, then another one that continues its session."""
    (tmp_path / "notes.md").write_text(NOTES)
    with serving_llm() as stub:
        with Terminal(open_home, "chat", **llm_settings(stub)) as terminal:
            start = terminal.until("\n> ")
            assert not (open_home / "postgres" / "data").exists(), "the prompt must not wait for the database"
            session = re.search(r"session (\S{36})", start)
            assert session

            assert "There is no command /foo" in terminal.ask("/foo bar")
            assert "/select FILE" in terminal.ask("/help")
            assert "This session has no turns" in terminal.ask("/history")
            assert "no sources" in terminal.ask("/sources")
            assert "Ctrl-D or /quit quits" in terminal.interrupt()

            answer = terminal.ask("What is ROS 2?")
            assert "reading: What Is ROS 2?" in answer
            assert "\n[1] What Is ROS 2? — book/ros2/what-is-ros2.md" in answer
            assert "confidence " in answer
            assert max(map(len, answer.splitlines())) <= 100, "lines are wrapped between words"
            assert "\n    ROS 2, the second generation" in terminal.ask("/sources")

            # The first sentence is shown, the rest never arrives. Ctrl-C cancels the call, not the chat.
            said = "ROS 2 uses DDS, the Data Distribution Service, as its usual middleware, and reaches it through an"
            stub.script.append(Hangs(after=f"{said} interface called `rmw` [1]. And then "))
            terminal.type("Which middleware does ROS 2 use?\n")
            terminal.until("ROS 2 uses DDS, the Data Distribution Service")
            terminal.type("\x03")
            assert "Cancelled." in terminal.until("\n> ")
            assert stub.wait_disconnect()

            terminal.type("/history\n")
            terminal.until("> What is ROS 2?")
            assert "Which middleware" not in terminal.until("\n> "), "a cancelled turn is not stored"
            terminal.type(f"/select {tmp_path / 'no.md'}\n")
            assert "cannot be read" in terminal.until("\n> ")
            terminal.type(f"/select {tmp_path / 'notes.md'}\n")
            terminal.until("\nnotes.md> ")
            terminal.type("What is its top speed?\n")
            assert "[1] User Selection › line" in terminal.until("\nnotes.md> ")
            assert "about the book" in terminal.ask("/select")
            terminal.type("\x04")
            assert terminal.ended() == 0
            assert f"chapterverse chat --session {session[1]}" in terminal.screen

        with Terminal(open_home, "chat", "--session", session[1], **llm_settings(stub)) as terminal:
            terminal.until("\n> ")
            assert "[1] User Selection › line" in terminal.ask("/sources"), (
                "the sources of the last turn come from the database"
            )
            terminal.type("/history\n")
            terminal.until("> What is ROS 2?")
            terminal.until("> What is its top speed?")
            terminal.until("\n> ")
            assert session[1] not in terminal.ask("/new")
            assert "This session has no turns" in terminal.ask("/history")
            terminal.type("/quit\n")
            assert terminal.ended() == 0
            assert f"continue with: chapterverse chat --session {session[1]}" in terminal.screen, "not the empty one"


def test_chat_without_a_question_offers_no_session(example_home: Path, database_url: str) -> None:
    assert "continue with" not in chapterverse(example_home, "chat", fed="/help\n", DATABASE_URL=database_url).stderr


def test_offer_can_be_accepted_and_a_pipe_returns_the_exit_code_of_the_last_error(
    example_home: Path, tmp_path: Path, database_url: str
) -> None:
    (tmp_path / "notes.md").write_text(NOTES)
    fed = f"/select {tmp_path / 'notes.md'}\nWhat is Nav2?\nyes\n\n/nonsense\n{'x' * 3000}\n"
    shown = chapterverse(example_home, "chat", fed=fed, DATABASE_URL=database_url)
    assert shown.returncode == 2
    assert "error: query: " in shown.stderr
    assert "There is no command /nonsense" in shown.stderr
    refusal, _, answer = shown.stdout.partition("\n\n")
    assert refusal.endswith("about “What is Nav2?”. Would you like me to search the full documentation?")
    assert "Nav2 is the navigation system of ROS 2" in answer
    assert "questions are about the book again" in shown.stderr
    assert "> " not in shown.stdout, "no prompt is printed into a pipe"


def test_invalid_setting_ends_the_chat(example_home: Path) -> None:
    shown = chapterverse(example_home, "chat", fed="What is ROS 2?\n", EMBEDDINGS="cohere")
    assert shown.returncode == 9
    assert "COHERE_API_KEY" in shown.stderr


def test_repeated_ctrl_c_cancels_the_answer_and_not_the_chat(example_home: Path, database_url: str) -> None:
    kept = {"DATABASE_URL": database_url}
    with serving_llm() as stub, Terminal(example_home, "chat", **llm_settings(stub), **kept) as terminal:
        terminal.until("\n> ")
        stub.script.append(Hangs(after="ROS 2 is a set of libraries [1]. And then "))
        terminal.type("Which middleware does ROS 2 use?\n")
        terminal.until("reading:")
        terminal.type("\x03\x03\x03")
        assert "Traceback" not in terminal.until("\n> ")
        assert "/select FILE" in terminal.ask("/help"), "the chat continues"
        terminal.type("\x04")
        assert terminal.ended() == 0
        assert "Traceback" not in terminal.screen
