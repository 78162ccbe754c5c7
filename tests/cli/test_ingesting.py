"""`ingest`, `sources`, `forget` and `calibrate`, and the errors of these commands and of `search`."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from click import Context

from chapterverse.cli import main
from chapterverse.ingestion.formats import BuiltInFormat
from chapterverse.models import SearchFilters
from tests.cli.process import Terminal, assert_refused, chapterverse
from tests.conftest import EXAMPLE_BOOK

README = Path(__file__).parents[2] / "README.md"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # many processes; the long timeout makes xdist start it early


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["search", ""], 2, "query: must not be empty; write something"),
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
    tmp_path: Path, arguments: list[str], code: int, expected: str
) -> None:
    assert_refused(tmp_path, arguments, code, expected)


def test_invalid_setting_is_named(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path, "search", "x", QDRANT_URL="nonsense")
    assert shown.returncode == 9
    assert "QDRANT_URL" in shown.stderr


def test_unreachable_engine_names_doctor(tmp_path: Path) -> None:
    shown = chapterverse(tmp_path, "search", "x", QDRANT_URL="http://127.0.0.1:9")
    assert shown.returncode == 6
    assert "hint: `chapterverse doctor` shows each engine" in shown.stderr


def test_empty_folder_and_folder_of_unreadable_files_fail(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "no readable file" in chapterverse(tmp_path / "home", "ingest", str(tmp_path / "empty")).stderr
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


def test_book_is_calibrated_by_ingest_and_by_calibrate(tmp_path: Path) -> None:
    chapters = sorted((EXAMPLE_BOOK / "ros2").glob("*.md"))[:2]
    assert chapterverse(tmp_path, "ingest", *map(str, chapters)).returncode == 0
    again = chapterverse(tmp_path, "calibrate", "--json")
    assert again.returncode == 0, again.stderr
    calibrated = json.loads(again.stdout)
    assert calibrated["pages"] == 2
    assert 0 < calibrated["calibration"]["answered"] < calibrated["calibration"]["usual"] < 1
    assert (
        f"similarity of at least {calibrated['calibration']['answered']:.2f}"
        in chapterverse(tmp_path, "calibrate").stdout
    )


def test_other_embedding_model_is_an_error_with_the_fix(example_home: Path) -> None:
    shown = chapterverse(example_home, "search", "x", COHERE_API_KEY="some-key")
    assert shown.returncode == 6
    assert "chapterverse ingest --reembed" in shown.stderr


def test_running_server_serves_a_new_ingest(tmp_path: Path) -> None:
    """With the embedded index, another process ingests and the server uses the new book without a restart."""
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


def test_sources_are_listed_and_forgotten_and_fresh_needs_yes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name, text in (("one/a.md", "Apples are red."), ("two/b.md", "Bananas are yellow."), ("two/empty.md", "")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n\n{text}" if text else "")
    read = chapterverse(home, "ingest", str(tmp_path / "one"), str(tmp_path / "two"))
    assert "1 × skipped: " in read.stderr and "(two/empty.md)" in read.stderr, "skipped pages are named"
    listed = json.loads(chapterverse(home, "sources", "--json").stdout)
    assert listed == [{"source": "one", "pages": 1}, {"source": "two", "pages": 1}]
    assert "1 page   two" in chapterverse(home, "sources").stdout

    assert_refused(
        home, ["ingest", "--fresh", str(tmp_path / "one")], 2, "--fresh would forget two (1 page). Add --yes"
    )
    assert len(json.loads(chapterverse(home, "sources", "--json").stdout)) == 2, "nothing was removed"
    assert_refused(home, ["forget", "three"], 4, "no source three. It has: one, two")
    gone = chapterverse(home, "forget", "two", "--json")
    assert json.loads(gone.stdout)["removed"] == 1, gone.stderr
    again = chapterverse(home, "ingest", "--fresh", str(tmp_path / "one"))
    assert again.returncode == 0, "no confirmation if only pages that are read again would be removed"
    other = chapterverse(home, "ingest", "--fresh", "--yes", str(tmp_path / "two"), "--json")
    assert json.loads(other.stdout)["removed"] == 1


def test_second_folder_of_the_same_name_is_reported(tmp_path: Path) -> None:
    home, (first, second) = tmp_path / "home", (tmp_path / "one" / "docs", tmp_path / "two" / "docs")
    for folder, name in ((first, "a"), (second, "b")):
        folder.mkdir(parents=True)
        (folder / f"{name}.md").write_text(f"# {name}\n\nApples are red.")
    read = chapterverse(home, "ingest", str(first))
    assert "1 passage embedded" in read.stderr and "was read from" not in read.stderr
    other = " ".join(chapterverse(home, "ingest", str(second)).stderr.split())
    assert f"docs was read from {first} before; its pages are replaced." in other
    assert "1 × removed: no longer there (docs/a.md)" in other, "removed pages are named"
    second.rename(tmp_path / "docs")
    assert "was read from" not in chapterverse(home, "ingest", str(tmp_path / "docs")).stderr, "it was moved"
    assert "was read from" not in chapterverse(home, "ingest", str(first), "--book", "first").stderr


def test_fresh_asks_for_confirmation_on_a_terminal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("# A\n\nApples are red.")
    assert chapterverse(home, "ingest", str(tmp_path / "one")).returncode == 0
    with Terminal(home, "ingest", "--fresh", str(tmp_path / "two")) as terminal:
        assert "--fresh forgets one (1 page)." in terminal.until("[y/N]")
        terminal.type("n\n")
        terminal.until("The book was not changed.")
        assert terminal.ended() == 1
    assert json.loads(chapterverse(home, "sources", "--json").stdout) == [{"source": "one", "pages": 1}]


def test_missing_book_names_the_home_and_does_not_create_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for arguments in (["search", "x"], ["ask", "x"]):
        shown = chapterverse(home, *arguments)
        assert shown.returncode == 6
        assert f"The home is {home}" in shown.stderr
        assert not home.exists()


def test_help_and_readme_name_every_format_and_filter() -> None:
    ingest, search = (
        " ".join(command.get_help(Context(command, **main.context_settings)).split())
        for command in (main.commands["ingest"], main.commands["search"])
    )
    words = {"markdown": "Markdown", "mdx": "MDX", "rst": "reStructuredText", "asciidoc": "AsciiDoc", "html": "HTML"}
    words |= {"text": "plain text", "epub": "EPUB", "pdf": "PDF", "docx": "docx", "notebook": "notebooks"}
    assert set(words) == set(get_args(BuiltInFormat))
    (readme,) = re.findall(r"^`ingest` reads (.+?)\.\s", README.read_text("utf-8"), re.M | re.S)
    assert [word for word in words.values() if word not in ingest or word not in readme] == []
    assert [name for name in SearchFilters.model_fields if name not in search.partition("--filter")[2][:200]] == []
