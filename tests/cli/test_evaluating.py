"""`eval` as a user runs it, over the example book with the real keyless pipeline."""

import json
import time
from pathlib import Path

import pytest

from tests.cli.process import Terminal, assert_refused, chapterverse
from tests.llm_stub import Hangs, Quotes, serving_llm

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "questions.jsonl"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four answerable questions, one a follow-up and one about a selection, and two unanswerable ones."""
    lines = EXAMPLES.read_text("utf-8").splitlines()
    followup = {
        "id": "f01",
        "question": "What does it weigh?",
        "history": [["What is Tern?", "Tern is the robot of the examples."]],
        "page": "intro/how-to-read-this-book.md",
        "sentence": ["| mass | 6 kg |", "weighs 6 kg"],
        "rewrite": "What does Tern weigh?",
        "kind": "pointing back",
    }
    selection = {
        "id": "s01",
        "question": "What mass does it have?",
        "selection": "Tern has a mass of 6 kg.",
        "answer": "6 kg",
    }
    path = tmp_path_factory.mktemp("set") / "six.jsonl"
    path.write_text("\n".join([lines[0], lines[3], *map(json.dumps, (followup, selection)), *lines[57:59]]), "utf-8")
    return path


@pytest.fixture(scope="module")
def reports(example_home: Path, questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reports of two runs."""
    folder = tmp_path_factory.mktemp("reports")
    for number in ("one", "two"):
        shown = chapterverse(example_home, "eval", str(questions), "--out", str(folder / number), "--concurrency", "2")
        assert shown.returncode == 0, shown.stderr
    return folder


def of(folder: Path, ending: str) -> str:
    (found,) = folder.glob(f"*.{ending}")
    return str(found)


def test_run_writes_a_table_a_report_and_a_page(example_home: Path, questions: Path, reports: Path) -> None:
    shown = chapterverse(example_home, "eval", str(questions), "--price", "2", "8")
    assert shown.returncode == 0, shown.stderr
    for expected in (
        "false answers, of unanswerable",
        "right, of questions with a history",
        "nDCG@5, as a person rewrote it",
        "right, of pointing back",
        "95 % interval",
        "time, p95",
        "money for 1,000 answers",
    ):
        assert expected in shown.stdout
    report = json.loads(Path(of(reports / "one", "json")).read_text("utf-8"))
    assert [case["question"]["id"] for case in report["cases"]] == ["q01", "q04", "f01", "s01", "u18", "u19"]
    found = {one["key"]: one["value"] for one in report["estimates"]}
    assert found["false_answer"] == 0.0
    assert found["failed"] == 0.0
    assert found["page_hit"] == 1.0
    assert report["run"]["book"].startswith("22 pages")
    page = Path(of(reports / "one", "html")).read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "6 questions were asked" in page


def test_equal_runs_have_no_significant_difference(example_home: Path, reports: Path) -> None:
    one, two = of(reports / "one", "json"), of(reports / "two", "json")
    shown = chapterverse(example_home, "eval", "--compare", one, two)
    assert shown.returncode == 0, shown.stderr
    assert "6 questions in both. No difference beyond noise." in shown.stdout
    compared = json.loads(chapterverse(example_home, "eval", "--compare", one, two, "--json").stdout)
    assert {change["verdict"] for change in compared["changes"]} <= {"same", "noise", "not tested"}


def test_significant_change_for_the_worse_has_its_exit_code(example_home: Path, reports: Path, tmp_path: Path) -> None:
    report = json.loads(Path(of(reports / "one", "json")).read_text("utf-8"))
    well = next(case for case in report["cases"] if case["question"]["id"] == "q01")
    for name, fields in (("before", {}), ("after", {"status": "refused", "citations": []})):
        report["cases"] = [well | fields | {"question": well["question"] | {"id": f"q{n}"}} for n in range(30)]
        (tmp_path / name).write_text(json.dumps(report), "utf-8")
    shown = chapterverse(example_home, "eval", "--compare", str(tmp_path / "before"), str(tmp_path / "after"))
    assert shown.returncode == 21, shown.stderr
    assert "The difference is more than noise." in shown.stdout


def test_json_output_is_all_of_stdout(example_home: Path, questions: Path) -> None:
    shown = chapterverse(example_home, "eval", str(questions), "--limit", "1", "--json")
    assert [case["question"]["id"] for case in json.loads(shown.stdout)["cases"]] == ["q01"]


def test_drafted_questions_can_be_evaluated(example_home: Path, tmp_path: Path) -> None:
    made = chapterverse(example_home, "eval", "--make", "8")
    assert made.returncode == 0, made.stderr
    assert len(made.stdout.splitlines()) == 8
    assert "8 drafts, 2 of them expect a refusal" in made.stderr
    (tmp_path / "drafts").write_text(made.stdout, "utf-8")
    report = json.loads(chapterverse(example_home, "eval", str(tmp_path / "drafts"), "--json").stdout)
    assert {one["key"]: one["value"] for one in report["estimates"]}["page_hit"] >= 0.8


def test_ctrl_c_reports_the_questions_asked_so_far(example_home: Path, questions: Path, tmp_path: Path) -> None:
    with serving_llm() as stub:
        stub.script.append(Quotes(1))
        stub.usual = Hangs()
        settings = {"OPENAI_API_KEY": "sk-stub", "OPENAI_BASE_URL": stub.url, "EMBEDDINGS": "local"}
        with Terminal(example_home, "eval", str(questions), "--out", str(tmp_path), **settings) as terminal:
            deadline = time.monotonic() + 60
            while len(stub.requests) < 2 and time.monotonic() < deadline:
                stub.wait_asked(1)
                time.sleep(0.02)  # polls
            terminal.type("\x03")
            assert terminal.ended() == 130
    assert "only 1 of 6 questions were asked" in terminal.screen
    assert "Traceback" not in terminal.screen
    assert len(json.loads(Path(of(tmp_path, "json")).read_text("utf-8"))["cases"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["eval"], 2, "chapterverse eval --help"),
        (["eval", "missing.jsonl"], 2, "cannot be read"),
        (["eval", str(EXAMPLES)], 6, "chapterverse ingest"),
        (["eval", "--make", "3"], 6, "chapterverse ingest"),
        (["eval", "--make", "3", "x"], 2, "stdout"),
        (["eval", "--make", "3", "--compare"], 2, "Use one of --compare"),
        (["eval", "--compare", "a.json"], 2, "two reports"),
        (["eval", "--compare", "a.json", "b.json"], 2, "a.json cannot be read"),
    ],
)
def test_errors_name_the_fix_and_have_their_exit_code(
    tmp_path: Path, arguments: list[str], code: int, expected: str
) -> None:
    assert_refused(tmp_path, arguments, code, expected)
