"""The example book and its questions are as `examples/README.md` describes them.

The tests parse the Markdown sources themselves, so that they do not depend on the readers of the package.
"""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

EXAMPLES = Path(__file__).parent.parent / "examples"
BOOK = EXAMPLES / "book"
MODULES = {"intro", "ros2", "simulation", "isaac", "vla"}
PATHS = sorted(path for path in BOOK.rglob("*") if path.suffix in {".md", ".mdx"})
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERABLE = [question for question in QUESTIONS if question["answerable"]]
UNANSWERABLE = [question for question in QUESTIONS if not question["answerable"]]

# Words that a page would have to contain to answer the question. u05 and u08 have no entry: they ask for a comparison,
# which no single word indicates.
GIVEAWAYS = {
    "u01": ["Ardent", "Bouncy", "2017"],
    "u02": ["default middleware", "default implementation", "default RMW"],
    "u03": ["Rust", "rclrs"],
    "u04": ["SROS", "encrypt", "encryption", "DDS-Security"],
    "u06": ["max_step_size", "0.001", "1 ms", "one millisecond"],
    "u07": ["port", "10000", "10,000"],
    "u09": ["fee", "per year", "free of charge", "commercial licence", "dollars"],
    "u10": ["GB", "GiB", "VRAM", "gigabytes"],
    "u11": ["Windows 10", "Windows 11", "supported operating systems"],
    "u12": ["fps", "frames per second", "frames a second"],
    "u13": ["MoveIt", "MoveIt2"],
    "u14": ["55B", "55 billion", "12B", "12 billion", "5B"],
    "u15": ["LibriSpeech"],
    "u16": ["680,000", "680000", "hours of audio"],
    "u17": ["watt-hours", "Wh", "battery life", "on one charge"],
    "u18": ["sourdough"],
    "u19": ["Australia", "Canberra"],
    "u20": ["World Cup", "France"],
}

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{2,6} (.+?)(?: \{#([\w-]+)\})?$")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_EMPHASIS = re.compile(r"(?<![\w*])(\*\*|\*)(?=\S)([^*]+)(?<=\S)\1(?![\w*])")


@dataclass(frozen=True, slots=True)
class Source:
    """A page of the example book, as its author wrote it."""

    front_matter: dict[str, Any]
    body: str
    prose: str  # the body without fenced code
    sections: dict[str, str]  # heading → prose up to the next heading, without inline markup
    anchors: set[str]  # given explicitly with {#...}


def plain(text: str) -> str:
    """The text without links and emphasis; inline code stays as it is, backticks included."""
    spans = re.split(r"(`[^`]*`)", _LINK.sub(r"\1", text))
    # Code is taken out first, because emphasis may enclose it and it may contain asterisks.
    code = spans[1::2]
    bare = _EMPHASIS.sub(r"\2", "\0".join(spans[0::2]))
    return "".join(piece + kept for piece, kept in zip(bare.split("\0"), [*code, ""], strict=True))


def read(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    found = _FRONT_MATTER.match(text)
    assert found, f"{path} has no front matter"
    front_matter = yaml.safe_load(found[1])
    body = text[found.end() :]
    prose = _FENCE.sub("", body)
    sections: dict[str, list[str]] = {}
    anchors: set[str] = set()
    lines = sections.setdefault(front_matter["title"], [])
    for line in prose.splitlines():
        if heading := _HEADING.match(line):
            title = plain(heading[1])
            assert title not in sections, f"{path} has two sections called {title}"
            lines = sections.setdefault(title, [])
            anchors |= {heading[2]} - {None}
        else:
            lines.append(plain(line))
    return Source(front_matter, body, prose, {title: "\n".join(lines) for title, lines in sections.items()}, anchors)


PAGES = {path.relative_to(BOOK).as_posix(): read(path) for path in PATHS}


def named(path: str) -> Any:
    return pytest.param(PAGES[path], id=path)


each_page = pytest.mark.parametrize("page", [named(path) for path in PAGES])
each_answerable = pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question["id"])


def is_table_row(line: str) -> bool:
    return line.startswith("|")


class TestBook:
    def test_has_five_modules_and_about_twenty_pages(self) -> None:
        assert {path.split("/")[0] for path in PAGES} == MODULES
        assert 18 <= len(PAGES) <= 24
        others = [path for path in BOOK.rglob("*") if path.is_file() and path not in PATHS]
        assert {path.relative_to(BOOK).as_posix() for path in others} == {f"{one}/_category_.json" for one in MODULES}
        assert sorted(json.loads(path.read_text())["position"] for path in others) == [1, 2, 3, 4, 5]

    @each_page
    def test_front_matter_has_a_title_and_a_position(self, page: Source) -> None:
        assert page.front_matter["title"].strip()
        assert isinstance(page.front_matter["sidebar_position"], int)

    def test_positions_in_a_module_are_consecutive(self) -> None:
        for module in MODULES:
            places = sorted(
                p.front_matter["sidebar_position"] for path, p in PAGES.items() if path.startswith(f"{module}/")
            )
            assert places == list(range(1, len(places) + 1))

    @each_page
    def test_page_has_500_to_1000_words(self, page: Source) -> None:
        assert 500 <= len(page.body.split()) <= 1000

    @each_page
    def test_has_headings_and_no_second_title(self, page: Source) -> None:
        assert len(page.sections) >= 4
        assert not re.search(r"^# ", page.prose, re.MULTILINE)

    def test_enough_tables_code_and_admonitions(self) -> None:
        for mark in (r"^\|(?:---\|)+$", r"^```\w+$", r"^:::(?:note|tip|info|warning|caution)"):
            assert sum(bool(re.search(mark, page.body, re.MULTILINE)) for page in PAGES.values()) >= 8, mark

    def test_table_rows_have_as_many_cells_as_their_header(self) -> None:
        for path, page in PAGES.items():
            for table in re.findall(r"(?:^\|.*\n)+", page.prose, re.MULTILINE):
                assert len({row.count("|") for row in table.splitlines()}) == 1, (path, table)

    def test_one_page_is_mdx_with_imports_components_and_a_note(self) -> None:
        (path,) = (path for path in PAGES if path.endswith(".mdx"))
        prose = PAGES[path].prose
        assert re.search(r"^import \w+ from '[^']+';$", prose, re.MULTILINE)
        assert re.search(r"^<[A-Z]\w+>$", prose, re.MULTILINE)
        assert re.search(r"^:::note$", prose, re.MULTILINE)
        # Outside code and components, braces and angle brackets would be JSX.
        assert not re.search(r"[{}]", prose)

    @each_page
    def test_code_parses(self, page: Source) -> None:
        assert page.body.count("```") == 2 * len(_FENCE.findall(page.body))
        for language, code in _FENCE.findall(page.body):
            assert language in {"python", "xml", "yaml", "json", "bash", "csharp"}
            if language == "python":
                ast.parse(code)
            elif language == "xml":
                ElementTree.fromstring(code)
            elif language == "yaml":
                assert yaml.safe_load(code)
            elif language == "json":
                json.loads(code)

    @pytest.mark.parametrize("path", PAGES)
    def test_links_have_a_target(self, path: str) -> None:
        for _, target in _LINK.findall(re.sub(r"`[^`]*`", "", PAGES[path].prose)):
            file, _, anchor = target.partition("#")
            found = (BOOK / path).parent.joinpath(file).resolve().relative_to(BOOK.resolve()).as_posix()
            assert found in PAGES
            assert not anchor or anchor in PAGES[found].anchors


class TestQuestions:
    def test_counts_and_ids(self) -> None:
        assert [question["id"] for question in QUESTIONS] == [
            *(f"q{n:02}" for n in range(1, 41)),
            *(f"u{n:02}" for n in range(1, 21)),
        ]
        assert (len(ANSWERABLE), len(UNANSWERABLE)) == (40, 20)
        assert len({question["question"] for question in QUESTIONS}) == 60

    def test_fields_are_those_documented(self) -> None:
        for question in ANSWERABLE:
            assert list(question) == ["id", "question", "answerable", "page", "section", "sentence", "answer"]
        for question in UNANSWERABLE:
            assert list(question) == ["id", "question", "answerable", "why"]
        assert all(str(value).strip() for question in QUESTIONS for value in question.values())
        documented = (EXAMPLES / "README.md").read_text(encoding="utf-8")
        assert all(f"| `{name}` |" in documented for question in QUESTIONS for name in question)

    def test_every_page_is_asked_about(self) -> None:
        assert {question["page"] for question in ANSWERABLE} == set(PAGES)

    def test_no_module_dominates(self) -> None:
        for module in MODULES:
            assert 6 <= sum(question["page"].startswith(f"{module}/") for question in ANSWERABLE) <= 10

    @each_answerable
    def test_evidence_is_in_its_section(self, question: dict[str, Any]) -> None:
        sections = PAGES[question["page"]].sections
        assert question["section"] in sections
        assert question["sentence"] in sections[question["section"]]

    @each_answerable
    def test_evidence_is_a_whole_sentence_or_row(self, question: dict[str, Any]) -> None:
        sentence = question["sentence"]
        section = PAGES[question["page"]].sections[question["section"]]
        if is_table_row(sentence):
            assert sentence in section.splitlines()
        else:
            assert re.search(rf"(?:^|^(?:-|\d+\.) |[.?!:] ){re.escape(sentence)}(?: |$)", section, re.MULTILINE)
            assert sentence.endswith(".")

    @each_answerable
    def test_evidence_is_nowhere_else(self, question: dict[str, Any]) -> None:
        texts = [text for page in PAGES.values() for text in page.sections.values()]
        assert sum(text.count(question["sentence"]) for text in texts) == 1

    def test_few_questions_have_a_table_row_as_evidence(self) -> None:
        assert 1 <= sum(is_table_row(question["sentence"]) for question in ANSWERABLE) <= 3

    def test_few_questions_repeat_their_evidence(self) -> None:
        """Most questions share under half of their words with the sentence that answers them."""

        def shared(question: dict[str, Any]) -> float:
            asked, said = (set(re.findall(r"\w+", question[key].lower())) for key in ("question", "sentence"))
            return len(asked & said) / len(asked)

        assert sum(shared(question) < 0.5 for question in ANSWERABLE) >= 20

    def test_giveaways_cover_the_unanswerable(self) -> None:
        assert {question["id"] for question in UNANSWERABLE} - set(GIVEAWAYS) == {"u05", "u08"}

    @pytest.mark.parametrize("question_id", GIVEAWAYS)
    def test_no_page_answers_the_unanswerable(self, question_id: str) -> None:
        words = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in GIVEAWAYS[question_id]), re.IGNORECASE)
        for path, page in PAGES.items():
            assert not words.search(page.body), (path, words.search(page.body))


class TestPlain:
    """Tests of the function `plain`, on which the other tests depend."""

    @pytest.mark.parametrize(
        ("marked", "bare"),
        [
            ("**bold** and *slanted*", "bold and slanted"),
            ("see [the page](a/b.md#c).", "see the page."),
            ("`**kwargs` and `a * b * c` stay", "`**kwargs` and `a * b * c` stay"),
            ("**emphasis around `code`**", "emphasis around `code`"),
            ("Hybrid-A* and Theta* stay", "Hybrid-A* and Theta* stay"),
            ("`[` means one way", "`[` means one way"),
        ],
    )
    def test_plain_removes_links_and_emphasis(self, marked: str, bare: str) -> None:
        assert plain(marked) == bare
