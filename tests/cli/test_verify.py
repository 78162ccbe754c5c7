"""`ask --proof` and `verify`, on a book that changes in between."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.process import assert_refused, chapterverse
from tests.conftest import filled

pytestmark = pytest.mark.slow

HERON = "# Heron\n\nHeron is a boat that maps the harbour.\n\nThe battery of Heron lasts nine hours in calm water.\n"
KESTREL = "# Kestrel\n\nKestrel is a drone that looks for leaks in roofs.\n"
BATTERY = "The battery of Heron lasts nine hours in calm water."


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Path:
    """A folder with docs, a home, and the proof of an answer."""
    folder = tmp_path_factory.mktemp("proof")
    (folder / "docs").mkdir()
    write(folder, HERON, KESTREL)
    asked = "How long does the battery of Heron last?"
    saved = ["--proof", str(folder / "answer.json")]
    shown = chapterverse(folder / "home", "ask", asked, *saved, DATABASE_URL=postgres_url)
    assert shown.returncode == 0, shown.stderr
    assert "proof: " in shown.stderr
    return folder


def write(folder: Path, heron: str, kestrel: str) -> None:
    (folder / "docs" / "heron.md").write_text(heron, "utf-8")
    (folder / "docs" / "kestrel.md").write_text(kestrel, "utf-8")
    filled(folder / "home", folder / "docs")


def verified(folder: Path) -> tuple[int, dict[str, object]]:
    """The exit code, and the check of the quote about the battery."""
    shown = chapterverse(folder / "home", "verify", str(folder / "answer.json"), "--json")
    found = [one for one in json.loads(shown.stdout) if BATTERY in one["quote"]["text"]]
    return shown.returncode, found[0]


def test_proof_has_statements_quotes_and_page_hashes(project: Path) -> None:
    proof = json.loads((project / "answer.json").read_text("utf-8"))
    assert proof["status"] == "answered"
    number = next(at for at, quote in enumerate(proof["quotes"], start=1) if BATTERY in quote["text"])
    assert any(number in statement["quotes"] and BATTERY[:-1] in statement["text"] for statement in proof["statements"])
    quote = proof["quotes"][number - 1]
    page = next(one for one in proof["pages"] if one["page_id"] == quote["page_id"])
    stored = HERON.strip()
    assert page["sha256"] == hashlib.sha256(stored.encode()).hexdigest()
    assert stored[quote["start"] : quote["end"]] == quote["text"]


def test_verify_reports_unchanged_moved_changed_and_missing_quotes(project: Path) -> None:
    write(project, HERON, KESTREL)
    code, check = verified(project)
    assert (code, check["state"], check["page_as_it_was"]) == (0, "stands", True)

    write(project, HERON, f"{KESTREL}\nIt flies.\n")
    code, check = verified(project)
    assert (code, check["state"], check["page_as_it_was"]) == (0, "stands", True), (
        "a change of another page does not count"
    )

    both = HERON.removeprefix("# Heron\n\n")
    write(project, "# Heron\n\nThis page is being written.\n", f"{KESTREL}\n{both}")
    code, check = verified(project)
    assert (code, check["state"], check["page_as_it_was"]) == (0, "moved", False)
    assert str(check["url"]).endswith("kestrel.md")

    write(project, HERON.replace("nine hours", "seven hours"), KESTREL)
    code, check = verified(project)
    assert (code, check["state"]) == (21, "changed")
    assert "seven hours" in str(check["now"])
    shown = chapterverse(project / "home", "verify", str(project / "answer.json"))
    assert shown.returncode == 21
    assert "now: " in shown.stdout and "no longer proven: " in shown.stdout

    write(project, "# Heron\n\nThis page is being written.\n", KESTREL)
    code, check = verified(project)
    assert (code, check["state"], check["now"]) == (21, "gone", "")


def test_errors_name_the_fix(tmp_path: Path) -> None:
    proof = tmp_path / "answer.json"
    assert_refused(tmp_path, ["verify", str(proof)], 2, "cannot be read")
    proof.write_text("{}", "utf-8")
    assert_refused(tmp_path, ["verify", str(proof)], 2, "--proof")
    assert_refused(tmp_path, ["ask", "What?", "--select", "-", "--proof", str(proof)], 2, "--proof")


def test_verify_without_a_book_is_an_error(project: Path, tmp_path: Path) -> None:
    assert_refused(tmp_path / "other", ["verify", str(project / "answer.json")], 6, "chapterverse ingest")
