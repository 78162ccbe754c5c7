"""Ingest and search as a user runs them: stdout for data, stderr for the rest, exit codes by error."""

import json
from pathlib import Path
from typing import get_args

import pytest
from click import Context

from chapterverse.cli import main
from chapterverse.ingestion.document import BuiltInFormat
from chapterverse.models import SearchFilters
from tests.cli.process import Terminal, assert_refused, chapterverse
from tests.conftest import EXAMPLE_BOOK

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # many processes: begun early


def test_search_prints_data_to_stdout_and_the_rest_to_stderr(example_home: Path) -> None:
    shown = chapterverse(example_home, "search", "What is ROS 2?", "-k", "2", "-f", "module=ros2", "--json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["results"][0]["page_title"] == "What Is ROS 2?"
    people = chapterverse(example_home, "search", "What is ROS 2?", "-k", "2")
    assert people.stdout.startswith("1. ROS 2 › What Is ROS 2?")
    assert "passages in" in people.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["search", ""], 2, "query"),
        (["search", "x", "-k", "99"], 2, "'-k'"),
        (["search", "x", "--threshold", "3"], 2, "'--threshold'"),
        (["search", "x", "-f", "module"], 2, "KEY=VALUE"),
        (["search", "x", "-f", "author=me"], 2, "filters.author: there is no such filter; known are source_url"),
        (["search", "x"], 6, "chapterverse ingest"),
        (["calibrate"], 6, "chapterverse ingest"),
        (["ingest"], 2, "SOURCE"),
        (["ingest", "no/such/folder"], 10, "no such file or folder"),
        (["ingest", "--reembed"], 6, "No book"),
        (["ingest", "ftp://somewhere"], 10, "only http and https"),
        (["ingest", "http://127.0.0.1:9/"], 10, "--allow-private"),
    ],
)
def test_errors_name_the_fix_and_have_their_exit_code(
    tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    assert_refused(tmp_path, arguments, code, told)


def test_a_bad_setting_is_refused_by_name(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path, "search", "x", QDRANT_URL="nonsense")
    assert shown.returncode == 9
    assert "QDRANT_URL" in shown.stderr


def test_an_empty_folder_and_a_folder_of_bad_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no file that can be read" in chapterverse(tmp_path / "home", "ingest", str(tmp_path / "empty")).stderr
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "binary.md").write_bytes(bytes(range(256)) * 40)
    (bad / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    shown = chapterverse(tmp_path / "home", "ingest", str(bad), "--json")
    assert shown.returncode == 10
    ledger = json.loads(shown.stdout)
    assert {page["url"]: page["outcome"] for page in ledger["pages"]} == {
        "bad/binary.md": "failed",
        "bad/broken.pdf": "failed",
    }
    assert all(page["why"] for page in ledger["pages"])


def test_a_book_is_calibrated_by_its_ingest_and_by_hand(tmp_path: Path) -> None:
    chapters = sorted((EXAMPLE_BOOK / "ros2").glob("*.md"))[:2]
    assert chapterverse(tmp_path, "ingest", *map(str, chapters)).returncode == 0
    again = chapterverse(tmp_path, "calibrate", "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["pages"] == 2
    assert 0 < told["calibration"]["answered"] < told["calibration"]["usual"] < 1
    assert f"from a similarity of {told['calibration']['answered']:.2f}" in chapterverse(tmp_path, "calibrate").stdout


def test_another_embedding_model_is_a_clear_error(example_home: Path) -> None:
    shown = chapterverse(example_home, "search", "x", COHERE_API_KEY="some-key")
    assert shown.returncode == 6
    assert "chapterverse ingest --reembed" in shown.stderr


def test_ingest_beside_a_running_server_is_taken_up(tmp_path: Path) -> None:
    """The embedded default: another process ingests, the server serves the new book without a restart."""
    import time

    from chapterverse.settings import Settings
    from tests.served import serve

    home, book = tmp_path / "home", tmp_path / "book"
    book.mkdir()
    (book / "a.md").write_text("# Apples\n\nApples are red.")
    assert chapterverse(home, "ingest", str(book)).returncode == 0
    with serve(Settings.load(chapterverse_home=home)) as server:
        assert server.http.get("/pages").json()["total_pages"] == 1
        (book / "b.md").write_text("# Bananas\n\nBananas are yellow.")
        assert chapterverse(home, "ingest", str(book)).returncode == 0
        deadline = time.monotonic() + 60
        while server.http.get("/pages").json()["total_pages"] == 1:
            assert time.monotonic() < deadline, "the server did not take up the new book"
            time.sleep(0.1)
        best = server.http.post("/search", json={"query": "What colour are bananas?"}).json()["results"][0]
        assert best["page_title"] == "Bananas"


def test_nonsense_finds_nothing_and_the_order_shows_no_numbers_that_contradict_it(example_home: Path) -> None:
    nothing = chapterverse(example_home, "search", "zxqv blorp fnord", "-k", "8")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "Nothing in the book fits." in nothing.stderr
    found = chapterverse(example_home, "search", "How do nodes find each other?", "-k", "8")
    heads = [line for line in found.stdout.splitlines() if line[:1].isdigit()]
    assert len(heads) == 8
    assert not any(line.rpartition("  ")[2].startswith("0.") for line in heads)


def test_sources_are_listed_and_forgotten_and_a_fresh_start_asks_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name, text in (("one/a.md", "Apples are red."), ("two/b.md", "Bananas are yellow."), ("two/empty.md", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n\n{text}" if text else "")
    read = chapterverse(home, "ingest", str(tmp_path / "one"), str(tmp_path / "two"))
    assert "1 × skipped: " in read.stderr and "(two/empty.md)" in read.stderr, "what was skipped has a name"
    listed = json.loads(chapterverse(home, "sources", "--json").stdout)
    assert listed == [{"source": "one", "pages": 1}, {"source": "two", "pages": 1}]
    assert "1 page   two" in chapterverse(home, "sources").stdout

    assert_refused(
        home, ["ingest", "--fresh", str(tmp_path / "one")], 2, "--fresh would forget two (1 page). Add --yes"
    )
    assert len(json.loads(chapterverse(home, "sources", "--json").stdout)) == 2, "nothing was lost"
    assert_refused(home, ["forget", "three"], 4, "no source three. It has: one, two")
    gone = chapterverse(home, "forget", "two", "--json")
    assert json.loads(gone.stdout)["removed"] == 1, gone.stderr
    again = chapterverse(home, "ingest", "--fresh", str(tmp_path / "one"))
    assert again.returncode == 0, "nothing but what is read again would be forgotten"
    other = chapterverse(home, "ingest", "--fresh", "--yes", str(tmp_path / "two"), "--json")
    assert json.loads(other.stdout)["removed"] == 1


def test_a_fresh_start_is_confirmed_on_a_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("# A\n\nApples are red.")
    assert chapterverse(home, "ingest", str(tmp_path / "one")).returncode == 0
    with Terminal(home, "ingest", "--fresh", str(tmp_path / "two")) as terminal:
        assert "--fresh forgets one (1 page)." in terminal.until("[y/N]")
        terminal.type("n\n")
        terminal.until("The book is as it was.")
        assert terminal.ended() == 1
    assert json.loads(chapterverse(home, "sources", "--json").stdout) == [{"source": "one", "pages": 1}]


def test_no_book_says_where_it_was_looked_for_and_makes_no_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for arguments in (["search", "x"], ["ask", "x"]):
        shown = chapterverse(home, *arguments)
        assert shown.returncode == 6
        assert f"{home} was looked at" in shown.stderr
        assert not home.exists()


def test_the_help_names_every_format_and_every_filter() -> None:
    ingest, search = (
        " ".join(main.commands[name].get_help(Context(main.commands[name])).split()) for name in ("ingest", "search")
    )
    words = {"markdown": "Markdown", "mdx": "MDX", "rst": "reStructuredText", "asciidoc": "AsciiDoc", "html": "HTML"}
    words |= {"text": "plain text", "epub": "EPUB", "pdf": "PDF", "docx": "docx", "notebook": "notebooks"}
    assert set(words) == set(get_args(BuiltInFormat))
    assert [word for word in words.values() if word not in ingest] == []
    assert [name for name in SearchFilters.model_fields if name not in search.partition("--filter")[2][:200]] == []
