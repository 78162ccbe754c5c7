"""`check` as CI runs it: a real book that changes between a baseline and a check."""

import json
from pathlib import Path

import pytest

from tests.cli.process import assert_refused, chapterverse
from tests.conftest import filled

pytestmark = pytest.mark.slow

PAGES = {
    "heron": "# Heron\n\nHeron is a boat that maps the sea floor of the harbour.\n\n"
    "Its battery lasts nine hours in calm water.\n\n## Crew\n\nHeron is watched by two people from the pier.\n",
    "kestrel": "# Kestrel\n\nKestrel is a drone that looks for leaks in roofs.\n\n"
    "The winch of Kestrel lifts 12 kg.\n\n## Weather\n\nKestrel stays on the ground when the wind is above 40 km/h.\n",
    "server": "# The server\n\nThe server of the fleet listens on port 8080.\n\n"
    "## Logs\n\nLogs of the server are kept for thirty days.\n",
}
QUESTIONS = {
    "battery": "How long does the battery of Heron last?",
    "boat": "What is Heron?",
    "crew": "From where is Heron watched?",
    "winch": "How much does the winch of Kestrel lift?",
    "wind": "When does Kestrel stay on the ground?",
    "port": "Which port does the server listen on?",
    "logs": "How long are logs kept?",
}


class Project:
    """A folder with docs, questions and a home."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.docs = folder, folder / "home", folder / "docs"
        self.questions = folder / "questions.jsonl"

    def change(self, page: str, old: str, new: str) -> None:
        path = self.docs / f"{page}.md"
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    def check(self, *options: str) -> tuple[int, dict[str, str], str]:
        """The exit code, the verdict of each question that changed, and the summary."""
        filled(self.home, self.docs)
        summary = self.folder / "summary.md"
        shown = chapterverse(self.home, "check", str(self.questions), "--json", "--summary", str(summary), *options)
        assert shown.stdout, shown.stderr
        verdicts = {one["now"]["id"]: one["verdict"] for one in json.loads(shown.stdout)}
        summary_text = summary.read_text("utf-8") if summary.exists() else ""
        return shown.returncode, {id_: verdict for id_, verdict in verdicts.items() if verdict != "same"}, summary_text


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a baseline."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.docs.mkdir()
    for name, text in PAGES.items():
        (project.docs / f"{name}.md").write_text(text, "utf-8")
    lines = [json.dumps({"id": id_, "question": asked}) for id_, asked in QUESTIONS.items()]
    unsaid = {"id": "unsaid", "question": "Who painted the hull of Heron red?", "answerable": False}
    project.questions.write_text("\n".join([*lines, json.dumps(unsaid)]), "utf-8")
    code, verdicts, _ = project.check("--save")
    assert code == 0
    assert set(verdicts.values()) == {"new"}
    return project.folder


@pytest.fixture
def project(saved: Path) -> Project:
    """The project with its original docs."""
    for name, text in PAGES.items():
        (saved / "docs" / f"{name}.md").write_text(text, "utf-8")
    return Project(saved)


def test_no_question_is_named_if_nothing_changed(project: Project) -> None:
    code, verdicts, summary = project.check()
    assert (code, verdicts) == (0, {})
    assert summary.startswith("## Questions to the book: 8 as before")


@pytest.mark.parametrize(
    ("page", "paragraph", "named"),
    [
        ("heron", "Its battery lasts nine hours in calm water.\n\n", "battery"),
        ("kestrel", "The winch of Kestrel lifts 12 kg.\n\n", "winch"),
        ("server", "Logs of the server are kept for thirty days.\n", "logs"),
    ],
)
def test_deleted_paragraph_breaks_exactly_its_questions(
    project: Project, page: str, paragraph: str, named: str
) -> None:
    project.change(page, paragraph, "")
    code, verdicts, summary = project.check()
    assert (code, verdicts) == (21, {named: "broken"})
    assert QUESTIONS[named] in summary and paragraph.strip() in summary
    assert "Its evidence is no longer in the book." in summary


def test_reworded_evidence_is_broken_and_moved_evidence_is_not(project: Project) -> None:
    project.change("heron", "nine hours", "seven hours")
    project.change("kestrel", "The winch of Kestrel lifts 12 kg.\n\n", "")
    project.change("server", "## Logs", "The winch of Kestrel lifts 12 kg.\n\n## Logs")
    code, verdicts, summary = project.check()
    assert (code, verdicts) == (21, {"battery": "broken", "winch": "changed"})
    assert "there now: `Its battery lasts seven hours in calm water.`" in summary


def test_second_different_answer_is_a_contradiction(project: Project) -> None:
    project.change("heron", "## Crew", "The server of the fleet listens on port 9090.\n\n## Crew")
    code, verdicts, summary = project.check()
    assert (code, verdicts) == (21, {"port": "contradictory"})
    assert "port 8080" in summary and "port 9090" in summary


def test_restored_evidence_is_fixed_and_save_accepts_a_change(project: Project) -> None:
    baseline = project.folder / "questions.baseline.json"
    kept = baseline.read_bytes()
    try:
        project.change("heron", "Its battery lasts nine hours in calm water.\n\n", "")
        assert project.check("--save")[:2] == (0, {"battery": "broken"})
        assert project.check()[:2] == (0, {})
        (project.docs / "heron.md").write_text(PAGES["heron"], "utf-8")
        assert project.check()[:2] == (0, {"battery": "fixed"})
    finally:
        baseline.write_bytes(kept)


def test_refusal_of_what_the_book_still_says_does_not_fail(project: Project, tmp_path: Path) -> None:
    """A question that is refused, with a baseline in which a passage that still stands answered it."""
    filled(project.home, project.docs)
    saved = json.loads((project.folder / "questions.baseline.json").read_text("utf-8"))
    (boat,) = [one for one in saved["outcomes"] if one["id"] == "boat"]
    asked = {"id": "hull", "question": "Who painted the hull of Heron red?"}
    questions, baseline = tmp_path / "set.jsonl", tmp_path / "set.baseline.json"
    questions.write_text(json.dumps(asked), "utf-8")
    baseline.write_text(json.dumps(saved | {"outcomes": [boat | asked]}), "utf-8")
    shown = chapterverse(project.home, "check", str(questions))
    assert shown.returncode == 0
    assert "Refused now, although the book still says it (1)\n  hull  Who painted" in shown.stdout
    assert shown.stdout.endswith("1 question: 1 unsure.\n")
    assert chapterverse(project.home, "check", str(questions), "--save").returncode == 0
    assert json.loads(baseline.read_text("utf-8"))["outcomes"] == [boat | asked]  # still watched


def test_inserted_line_in_a_set_without_ids_hides_nothing(project: Project, tmp_path: Path) -> None:
    project.questions = tmp_path / "set.jsonl"
    lines = [json.dumps({"question": QUESTIONS[name]}) for name in ("winch", "port")]
    project.questions.write_text("\n".join(lines), "utf-8")
    assert project.check("--save")[0] == 0
    project.questions.write_text("\n".join([json.dumps({"question": QUESTIONS["wind"]}), *lines]), "utf-8")
    project.change("kestrel", "The winch of Kestrel lifts 12 kg.\n\n", "")
    assert project.check()[:2] == (21, {"line-1": "new", "line-2": "broken"})


def test_a_text_report_goes_to_stdout(project: Project) -> None:
    project.change("heron", "Its battery lasts nine hours in calm water.\n\n", "")
    filled(project.home, project.docs)
    shown = chapterverse(project.home, "check", str(project.questions))
    assert shown.returncode == 21
    assert "Broken (1)\n  battery  How long does the battery of Heron last?" in shown.stdout
    assert shown.stdout.endswith("8 questions: 1 broken, 7 as before.\n")
    unwritable = str(project.questions / "summary.md")  # the findings are not lost
    lost = chapterverse(project.home, "check", str(project.questions), "--summary", unwritable)
    assert (lost.returncode, lost.stdout) == (2, shown.stdout)
    assert "--summary" in lost.stderr


def test_errors_name_the_fix(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text('{"question": "What is a node?"}', "utf-8")
    assert_refused(tmp_path, ["check", str(tmp_path / "set.jsonl")], 2, "set.jsonl --save")
    named = ["--baseline", str(tmp_path / "none.json")]
    assert_refused(tmp_path, ["check", str(tmp_path / "set.jsonl"), *named], 2, f"{' '.join(named)} --save")
    assert_refused(tmp_path, ["check", str(tmp_path / "set.jsonl"), "--save"], 6, "chapterverse ingest")
    (tmp_path / "set.baseline.json").write_text("{}", "utf-8")
    assert_refused(tmp_path, ["check", str(tmp_path / "set.jsonl")], 2, "is not a baseline")
