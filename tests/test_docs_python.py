"""The examples of docs/python.md run on a small book, without keys, and print what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import chapterverse
from chapterverse.library import Book

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text("utf-8")
FIRST, PLAIN, STREAMING, SELECTING = re.findall(r"```python\n(.*?)```", PAGE, re.S)

HERON = """# Heron

Heron is a small boat that maps lakes. Heron has a mass of 14 kg and a hull of 90 cm. Its battery lasts 5 hours.

## Sensors

Heron has a sonar and two radios. The sonar sees 40 m deep.
"""


@pytest.fixture
def workplace(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the pages that the examples read."""
    (tmp_path / "docs" / "robots").mkdir(parents=True)
    (tmp_path / "docs" / "robots" / "heron.md").write_text(HERON, "utf-8")
    (tmp_path / "docs" / "welcome.md").write_text("# Welcome\n\nThis manual is about the boats of the lake.\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    return tmp_path


def run(code: str) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(code, {})
    return shown.getvalue()


def test_examples_print_the_documented_output(workplace: Path) -> None:
    output = run(FIRST)
    assert output.startswith("2 pages\n")
    assert "Its battery lasts 5 hours [1]." in output
    assert re.search(r"^\[1\] docs/robots/heron\.md .*Its battery lasts 5 hours\.", output, re.M)
    assert (workplace / "my-book" / "index" / "CURRENT").exists()

    output = run(PLAIN)
    assert "Its battery lasts 5 hours [1]." in output and "Heron is a small boat that maps lakes." in output

    output = run(STREAMING)
    assert "Heron is a small boat that maps lakes." in output
    assert "14 kg" in output.splitlines()[-1], "the follow-up question is understood"

    output = run(SELECTING)
    assert output.startswith("['https://docs.example.com/robots/heron.md")
    assert re.search(r"^answered .*Its winch lifts 12 kg\.$", output, re.M)
    assert output.endswith("not asked: query: must not be empty; write something\n")


def test_page_names_every_method_of_book() -> None:
    for name in (name for name in vars(Book) if not name.startswith("_")):
        assert f"Book.{name}(" in PAGE or f"book.{name}(" in PAGE
    assert chapterverse.Book is Book
