"""The documentation names everything that is there."""

import itertools
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from chapterverse import errors
from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, NOT_IN_SELECTION
from chapterverse.cli import main
from chapterverse.main import create_app
from chapterverse.models import Event
from chapterverse.settings import Settings

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def test_every_route_is_described(tmp_path: Path) -> None:
    schema = create_app(Settings.load(chapterverse_home=tmp_path)).openapi()
    for path, operations in schema["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in API


def test_every_event_is_described() -> None:
    for kind in Event.__args__:
        assert f"| `{kind.model_fields['type'].default}` |" in API


def test_every_error_code_and_exit_code_is_described() -> None:
    kinds = [errors.ChapterverseError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert f"`{kind.code}`" in API
        assert re.search(rf"\b{kind.exit_code}\b", API.split("exit code:")[1])


def test_the_refusals_are_word_for_word() -> None:
    for refusal in (NOT_FOUND, NOT_IN_BOOK, NOT_IN_SELECTION):
        assert f"- {refusal}\n" in API


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"chapterverse {command}" in README or f"`{command}`" in README


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_file_that_the_documents_name_exists() -> None:
    """Decision records and the notes behind them are history and left out. A name may begin inside the package, or be a
    pattern."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "benchmarks" / "race.md")
    for page in pages:
        for name in re.findall(
            r"`((?:bench|docs|src|tests|tools|training|[a-z_]+)/[\w./*-]+\.\w+)`", page.read_text("utf-8")
        ):
            if name.split("/")[0] not in ("index", "ledgers", "intro"):  # inside of a home, or of somebody's book
                found = any(fnmatch(file, f"*{name}") for file in files)
                assert found, f"{page.name}: {name}"


def test_the_table_of_layers_is_the_one_that_is_checked() -> None:
    """Every module stands in the table of ARCHITECTURE.md, and none above what it may not import."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = next(one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    table = [line.split("|")[2] for line in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines() if "|" in line]
    rows = {name: row for row, names in enumerate(table) for name in re.findall(r"`(\w+)/?`", names)}
    checked = [[name for name in layer.split(" | ") if name != "testing"] for layer in layers]
    assert {name for layer in checked for name in layer} <= set(rows)
    for above, below in itertools.pairwise(checked):
        assert max(rows[name] for name in above) <= min(rows[name] for name in below), (above, below)


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        for named in re.findall(r"`?make ([a-z-]+)`?", (ROOT / page).read_text("utf-8")):
            assert named in targets | {"sure"}, f"{page}: make {named}"


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_record_is_one_page_with_the_usual_parts(record: Path) -> None:
    text = record.read_text("utf-8")
    number = int(record.name[:4])
    assert text.startswith(f"# {number}. ")
    assert text.splitlines()[2].startswith("Status: ")
    assert re.findall("^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
    assert len(text) <= 3000, "measurements belong in docs/benchmarks"


def test_decision_records_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_readme_has_the_usual_headings() -> None:
    usual = ["Install", "Quickstart", "Configuration", "Usage", "How it works", "Benchmarks", "Contributing", "License"]
    prose = re.sub("^```.*?^```", "", README, flags=re.M | re.S)
    assert re.findall("^## (.+)$", prose, re.M) == usual


def test_every_page_says_the_same_of_what_the_reader_was_trained_on() -> None:
    card, *others = (
        " ".join((ROOT / path).read_text("utf-8").split())
        for path in (
            "src/chapterverse/trained/weights/README.md",
            "bench/keyless/questions/README.md",
            "docs/benchmarks/follow-ups.md",
            "training/README.md",
        )
    )
    told = re.search(r"An earlier round learned .+? never trained on in any way\.", card)
    assert told
    for page in others:
        assert told[0] in page


def test_operations_calculates_with_the_figures_it_gives() -> None:
    text = (ROOT / "docs" / "OPERATIONS.md").read_text("utf-8")
    rate = int(re.search(r"(\d+) passages of 256 tokens per second and core", text)[1])  # type: ignore[index]
    used, hours = re.search(r"10 M passages at (\d+) a second and core: (\d+) core-hours", text).groups()  # type: ignore[union-attr]
    assert (int(used), int(hours)) == (rate, round(10_000_000 / rate / 3600))
