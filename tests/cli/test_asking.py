"""`ask` and `search` as a user runs them, without any key: real processes over the example book."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from chapterverse.answering.refusals import NOT_IN_BOOK
from chapterverse.cli import main
from chapterverse.fields import MAX_SELECTION_CHARS
from chapterverse.models import ChunkEvent, SourceCitation, SourcesEvent
from chapterverse.terminal.answers import AnswerView
from tests.cli.process import assert_refused, chapterverse
from tests.conftest import EXAMPLE_BOOK
from tests.ingestion.readers.test_pdf import write_pdf
from tests.llm_stub import CutsOff, LlmStub, Quotes, serving_llm
from tests.served import free_port

NOTES = "Tern, the robot 🤖\r\nweighs 6 kg.\r\n\r\nThe top speed of Tern is 0.5 m/s.\r\n"
QUESTION = "What is ROS 2?"


def page_of(source_url: str) -> str:
    """The text of the page that a source names."""
    return (EXAMPLE_BOOK.parent / source_url.partition("#")[0]).read_text("utf-8")


def llm_settings(stub: LlmStub) -> dict[str, str]:
    return {"OPENAI_API_KEY": "sk-stub", "OPENAI_BASE_URL": stub.url, "EMBEDDINGS": "local"}


@pytest.mark.slow
def test_answer_has_sources_and_the_next_process_continues_the_session(example_home: Path, database_url: str) -> None:
    asked = chapterverse(example_home, "ask", QUESTION, "--json", DATABASE_URL=database_url)
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["status"] == "answered"
    assert answer["metadata"]["stored"]
    assert answer["sources"]
    assert all(source["quote"] in page_of(source["source_url"]) for source in answer["sources"])

    followed = chapterverse(
        example_home, "ask", "Is it an operating system?", "--session", answer["session_id"], DATABASE_URL=database_url
    )
    assert followed.returncode == 0, followed.stderr
    text, _, footer = followed.stdout.partition("\n\n[1] ")
    assert "it is not an operating system" in text
    assert footer.startswith("What Is ROS 2?")
    assert "— book/ros2/what-is-ros2.md" in footer
    assert "“" not in footer, "the answer shows these words already"
    assert "reading: What Is ROS 2?" in followed.stderr
    assert "confidence " in followed.stderr
    assert f"session {answer['session_id']}" in followed.stderr
    assert "warning" not in followed.stderr


def test_only_sources_of_own_words_are_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    def source(title: str, quote: str) -> SourceCitation:
        place = {"page_title": title, "source_url": f"{title}.md", "section_heading": title, "breadcrumb": title}
        numbers = {"relevance_score": 1, "chunk_index": 0, "rank": 1, "quote_start": 0, "quote_end": len(quote)}
        return SourceCitation(**place, **numbers, chunk_text=quote, quote=quote, module="")

    with AnswerView(with_session=False) as view:
        view(ChunkEvent(content="Tern weighs 6 kg [1]. ", kind="quoted", cites=[1]))
        view(ChunkEvent(content="It is slow [2].", kind="supported", cites=[2]))
        view(SourcesEvent(sources=[source("Tern", "Tern weighs 6 kg."), source("Speed", "Its top speed is 0.5 m/s.")]))
    assert capsys.readouterr().out == (
        "Tern weighs 6 kg [1]. It is slow [2].\n\n[1] Tern — Tern.md\n[2] Speed — Speed.md\n"
        "    “Its top speed is 0.5 m/s.”\n"
    )


@pytest.mark.slow
def test_refusal_has_its_text_and_exit_code_also_without_a_database(example_home: Path) -> None:
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    asked = chapterverse(example_home, "ask", "What is the capital of Australia?", DATABASE_URL=nowhere)
    assert asked.stdout == f"{NOT_IN_BOOK}\n"
    assert asked.returncode == 20
    assert "\nrefused · " in asked.stderr
    assert "Searched for “What is the capital of Australia?”." in " ".join(asked.stderr.split())
    assert "warning: this turn could not be stored" in asked.stderr
    assert "Traceback" not in asked.stderr


@pytest.mark.slow
def test_selection_is_answered_from_alone(example_home: Path, tmp_path: Path, database_url: str) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(NOTES.encode())
    question = ("ask", "What is the top speed of Tern?", "--select")
    asked = chapterverse(example_home, *question, str(file), "--json", DATABASE_URL=database_url)
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["mode"] == "selected_text"
    assert "0.5 m/s" in answer["answer"]
    for source in answer["sources"]:
        assert NOTES[source["char_start"] : source["char_end"]] == source["quote"]

    other = chapterverse(
        example_home, "ask", "What is sourdough?", "--select", "-", fed="Tern weighs 6 kg.", DATABASE_URL=database_url
    )
    assert other.stdout == (
        "The provided selection does not contain information about “What is sourdough?”. "
        "Would you like me to search the full documentation?\n"
    )
    assert other.returncode == 20


@pytest.mark.slow
def test_text_and_json_output_have_the_same_answer(example_home: Path, database_url: str) -> None:
    with serving_llm() as stub:
        settings = llm_settings(stub) | {"DATABASE_URL": database_url}
        stub.usual = Quotes()
        plain = chapterverse(example_home, "ask", QUESTION, **settings)
        asked = chapterverse(example_home, "ask", QUESTION, "--json", **settings)
        answer = json.loads(asked.stdout)
        assert answer["sources"]
        assert plain.stdout.startswith(f"{answer['answer']}\n\n[1] ")
        # Text that was verified before the model failed is still printed; the error has its own line and exit code.
        first = answer["sources"][0]["quote"]
        stub.usual = CutsOff(f"{first} [1]. And then it went on and ")
        broken = chapterverse(example_home, "ask", QUESTION, **settings)
    assert broken.returncode == 8
    assert broken.stdout.endswith("\n")
    assert "error: " in broken.stderr
    assert "Traceback" not in broken.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([""], "query"),
        (["x" * 2001], "query"),
        (["x", "-k", "0"], "'-k'"),
        (["x", "-f", "module"], "KEY=VALUE"),
        (["x", "-f", "author=me"], "author"),
        (["x", "--session", "mine"], "session_id"),
        (["x", "--select", "no/such/file"], "No such file"),
        (["x", "--select", "~no-such-user.md"], "No such file"),
        (["x", "--select", "."], "directory"),
        (["x", "--select", "long.txt"], f"at most {MAX_SELECTION_CHARS:,}"),
        (["x", "--select", "blank.txt"], "empty"),
        (["x", "--select", "binary"], "UTF-8"),
        (["x", "--select", "nul.txt"], "NUL"),
    ],
)
def test_invalid_arguments_are_reported_before_anything_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAPTERVERSE_HOME", str(tmp_path / "home"))
    Path("long.txt").write_text("x" * (MAX_SELECTION_CHARS + 1))
    Path("blank.txt").write_text(" \n")
    Path("binary").write_bytes(b"\xff\xfe")
    Path("nul.txt").write_text("a\x00b")
    shown = CliRunner().invoke(main, ["ask", *arguments])
    assert shown.exit_code == 2
    assert expected in shown.stderr
    assert shown.stdout == ""
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_pdf_can_be_selected(example_home: Path, tmp_path: Path, database_url: str) -> None:
    (tmp_path / "winch.pdf").write_bytes(write_pdf([["The winch of the Kestrel lifts 12 kg."]]))
    selected = str(tmp_path / "winch.pdf")
    shown = chapterverse(
        example_home, "ask", "How much does the winch lift?", "--select", selected, "--json", DATABASE_URL=database_url
    )
    assert shown.returncode == 0, shown.stderr
    assert "12 kg" in json.loads(shown.stdout)["sources"][0]["quote"]
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    assert_refused(example_home, ["ask", "What?", "--select", str(tmp_path / "broken.pdf")], 2, "cannot be read")


def test_search_prints_data_to_stdout_and_the_rest_to_stderr(example_home: Path) -> None:
    shown = chapterverse(example_home, "search", "What is ROS 2?", "-k", "2", "-f", "module=ros2", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["results"][0]["page_title"] == "What Is ROS 2?"
    people = chapterverse(example_home, "search", "What is ROS 2?", "-k", "2")
    assert people.stdout.startswith("1. ROS 2 › What Is ROS 2?")
    assert "\n   ROS 2, the second generation" in people.stdout, "without the heading, which the line above has"
    assert "passages in" in people.stderr
    one = chapterverse(example_home, "search", "Visual odometry estimation of motion", "-k", "1")
    assert "\n   … Visual odometry: the estimation of" in one.stdout, "from the sentence with the words of the query"
    assert "1 passage in" in one.stderr


def test_search_finds_nothing_for_nonsense_and_prints_no_scores(example_home: Path) -> None:
    nothing = chapterverse(example_home, "search", "zxqv blorp fnord", "-k", "8")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "No passage of the book fits." in nothing.stderr
    found = chapterverse(example_home, "search", "How do nodes find each other?", "-k", "8")
    heads = [line for line in found.stdout.splitlines() if line[:1].isdigit()]
    assert len(heads) == 8
    assert not any(line.rpartition("  ")[2].startswith("0.") for line in heads)
