"""Options of a command in preformatted text become fields, one unit each."""

import pytest

from chapterverse.ingestion.readers.option_list import options_in
from chapterverse.ingestion.readers.page_builder import PageBuilder

HELP = """\
      --depth int        how far to look down
  -o, --output string    where to write the report,
                         "-" for standard output (default "report.md")
  -q                     print nothing
"""


def test_each_option_has_its_explanation() -> None:
    assert options_in(HELP) == [
        ("--depth int", "how far to look down"),
        ("-o, --output string", 'where to write the report, "-" for standard output (default "report.md")'),
        ("-q", "print nothing"),
    ]


def test_an_explanation_may_begin_on_the_next_line() -> None:
    text = "--a-very-long-option VALUE\n        what it does\n\n--short    what this does\n"
    assert options_in(text) == [("--a-very-long-option VALUE", "what it does"), ("--short", "what this does")]


@pytest.mark.parametrize(
    "text",
    [
        "tool --depth 3  --output x\n",  # a command
        "usage: tool [-q]\n\n  -q    print nothing\n  -v    print more\n",  # help as a whole stays as it was printed
        "  -q    print nothing\n",  # one option is no list
        "-import os\n-import re\n+import sys\n",  # a difference between files
        "- one  thing\n- another  thing\n",  # a list in YAML
        "--first\n--second\n",  # nothing is explained
        "-rw-r--r--  1 jane  staff 120 a\n-rwxr-xr-x  1 jane  staff 80 b\n",  # files
        "-1.5  2.0\n-3.2  4.1\n",  # numbers
        "",
    ],
)
def test_other_text_is_code(text: str) -> None:
    assert options_in(text) == ()


def test_options_become_fields_of_the_page() -> None:
    page = PageBuilder()
    page.code(HELP)
    page.code("tool --depth 3", "bash")
    assert [(part.kind, part.text.partition("\n")[0]) for part in page.finish()] == [
        ("field", "`--depth int`"),
        ("field", "`-o, --output string`"),
        ("field", "`-q`"),
        ("code", "tool --depth 3"),
    ]


def test_a_caption_is_kept_and_code_of_a_language_stays_code() -> None:
    page = PageBuilder()
    page.code(HELP, "text", "Options of frob")
    page.code("-DEBUG = True  # never\n-PORT = 80  # too low", "diff")
    assert [part.kind for part in page.finish()] == ["paragraph", "field", "field", "field", "code"]


def test_a_huge_text_is_read_in_time() -> None:
    line = "  --flag" + " x" * 50_000 + ",a" * 50_000
    assert options_in(f"{line}\n{line}\n") == ()
