"""A small set is asked through the real package and both baselines, stored, interrupted and resumed."""

from pathlib import Path

import pytest
from bench.scoreboard.__main__ import _bars
from bench.scoreboard.asking import MEANING, OURS, WORDS, ask_set, code_digest
from bench.scoreboard.writing import Asked, Board, page
from bench.sets.shape import Page, PublicSet

from bench.scoreboard import asking
from chapterverse.evaluation.questions import Question
from chapterverse.evaluation.report import make_report
from tests.evaluation.cases import run

pytestmark = pytest.mark.slow

MOON = "The Moon goes around the Earth once in about four weeks. It always shows the same side."
BREAD = "Flour, water, salt and yeast are kneaded. The dough is left to rise for two hours. Then it is baked."
QUESTIONS = (
    Question(id="a", question="How long is the dough left to rise?", page=("bread.html",), sentence=("two hours",)),
    Question(id="b", question="Who won the chess match in Oslo?", answerable=False, kind="stranger"),
    Question(id="c", question="How long does the Moon take around the Earth?", selection=MOON, answer=("four weeks",)),
)
SMALL = PublicSet(
    "small", "Small | set", "by hand", (Page("moon", "Moon", MOON), Page("bread", "Bread", BREAD)), QUESTIONS
)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(asking, "CACHE", tmp_path)
    return tmp_path / "scoreboard" / "code"


def _only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


async def test_every_system_answers_every_question_and_a_run_is_resumed(kept: Path) -> None:
    cases = await ask_set(SMALL, "code")
    assert [[case.question.id for case in cases[name]] for name in (OURS, WORDS, MEANING)] == [["a", "b", "c"]] * 3
    words, meaning = cases[WORDS], cases[MEANING]
    assert "two hours" in words[0].answer  # the best passage, from its beginning
    assert words[0].citations[0].source_url.endswith("bread.html")
    assert meaning[0].citations[0].quote == BREAD
    assert {case.status for case in (*words, *meaning)} == {"answered"}  # baselines never refuse
    assert meaning[2].citations[0].quote == MOON
    assert words[2].passages == ()
    assert words[0].confidence > words[1].confidence

    file = _only_file(kept)
    whole = file.read_text("utf-8")
    assert await ask_set(SMALL, "code") == cases
    assert file.read_text("utf-8") == whole  # nothing is asked again
    lines = whole.splitlines(keepends=True)
    file.write_text(lines[0] + lines[1][:40], "utf-8")  # interrupted inside the second line
    again = await ask_set(SMALL, "code")
    assert again[OURS][0] == cases[OURS][0]
    assert [case.status for case in again[OURS]] == [case.status for case in cases[OURS]]


async def test_page_has_sets_bars_and_what_was_not_run(kept: Path) -> None:
    cases = await ask_set(SMALL, "code")
    reports = {name: make_report(run(), cases[name]) for name in cases}
    asked = Asked(SMALL, 2, cases, reports)
    written = page(Board({"commit": "abc"}, [asked], _bars([asked], None), None))
    assert "| commit | abc |" in written
    assert "## Small | set" in written
    assert "3 questions, 1 unanswerable; 2 pages. by hand." in written
    assert "| Small \\| set |" in written
    assert "| not run | planted text followed |" in written
    assert "Not run: `make injection`." in written
    assert "stranger" in written
    widths = {line.count("|") - line.count("\\|") for line in written.split("\n") if line.startswith("| reached | ")}
    assert len(widths) <= 1
    followed = {"label": "keyless: follows the planted text", "value": 0.0, "n": 9, "bar": 0.0, "reached": True}
    planted = {"figures": [followed]}
    written = page(Board({}, [asked], _bars([asked], planted), (planted, "abc")))
    assert "| reached | keyless: follows the planted text |" in written
    assert "`make injection` at commit abc" in written


def test_code_digest_is_stable() -> None:
    assert code_digest() == code_digest()
    assert len(code_digest()) == 12
