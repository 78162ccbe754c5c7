"""The documentation is complete and refers to existing names."""

import itertools
import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from chapterverse import errors
from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, NOT_IN_SELECTION
from chapterverse.api.mcp.tools import _TOOLS
from chapterverse.cli import main
from chapterverse.main import create_app
from chapterverse.models import ChatRequest, ChatResponse, ConfidenceLevel, Event, RetrievalRequest, SearchResult
from chapterverse.settings import Settings
from chapterverse.telemetry import Telemetry

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def test_api_page_has_every_route(tmp_path: Path) -> None:
    schema = create_app(Settings.load(chapterverse_home=tmp_path)).openapi()
    for path, operations in schema["paths"].items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in API


def test_api_page_has_every_event() -> None:
    for kind in Event.__args__:
        assert f"| `{kind.model_fields['type'].default}` |" in API


def test_api_page_has_every_confidence_level() -> None:
    for level in get_args(ConfidenceLevel):
        assert f"`{level}`" in API


@pytest.mark.parametrize("model", [ChatRequest, ChatResponse, RetrievalRequest, SearchResult, *Event.__args__])
def test_every_field_of_questions_and_answers_is_described(model: type[BaseModel]) -> None:
    for name in model.model_fields:
        assert f"`{name}`" in API or f'"{name}"' in API, name


def test_every_tool_is_described() -> None:
    for name in _TOOLS:
        assert f"| `{name}` |" in API


def test_every_metric_is_described() -> None:
    operations = (ROOT / "docs" / "OPERATIONS.md").read_text("utf-8")
    for family in Telemetry().registry.collect():
        if family.name.startswith("chapterverse_"):
            assert f"`{family.name.removeprefix('chapterverse_')}" in operations, family.name


def test_api_page_has_every_error_code_and_exit_code() -> None:
    kinds = [errors.ChapterverseError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert f"`{kind.code}`" in API
        assert re.search(rf"\b{kind.exit_code}\b", API.split("exit code:")[1])


def test_api_page_has_the_exact_refusal_texts() -> None:
    for refusal in (NOT_FOUND, NOT_IN_BOOK, NOT_IN_SELECTION):
        assert f"- {refusal}\n" in API


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"chapterverse {command}" in README or f"`{command}`" in README


def test_every_link_in_the_documents_has_a_target() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_file_named_in_the_documents_exists() -> None:
    """Decision records and benchmark notes describe the past and are not checked. A name may be a pattern or relative
    to the package."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "docs" / "benchmarks" / "race.md")
    for page in pages:
        for name in re.findall(
            r"`((?:bench|docs|src|tests|tools|training|[a-z_]+)/[\w./*-]+\.\w+)`", page.read_text("utf-8")
        ):
            if name.split("/")[0] not in ("index", "ledgers", "intro"):  # paths in a home or in a book
                found = any(fnmatch(file, f"*{name}") for file in files)
                assert found, f"{page.name}: {name}"


def test_architecture_table_matches_the_import_linter_layers() -> None:
    """Every module is in the table of ARCHITECTURE.md, in the order of the layers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = next(one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    table = [line.split("|")[2] for line in (ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines() if "|" in line]
    rows = {name: row for row, names in enumerate(table) for name in re.findall(r"`(\w+)/?`", names)}
    checked = [[name for name in layer.split(" | ") if name != "testing"] for layer in layers]
    assert {name for layer in checked for name in layer} <= set(rows)
    for above, below in itertools.pairwise(checked):
        assert max(rows[name] for name in above) <= min(rows[name] for name in below), (above, below)


def test_every_make_target_named_in_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        for named in re.findall(r"`?make ([a-z-]+)`?", (ROOT / page).read_text("utf-8")):
            assert named in targets | {"sure"}, f"{page}: make {named}"


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_decision_record_is_short_and_has_the_usual_sections(record: Path) -> None:
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


def test_pages_agree_on_the_training_data_of_the_reader() -> None:
    card, *others = (
        " ".join((ROOT / path).read_text("utf-8").split())
        for path in (
            "src/chapterverse/trained/weights/README.md",
            "bench/keyless/questions/README.md",
            "docs/benchmarks/follow-ups.md",
            "training/README.md",
        )
    )
    statement = re.search(r"An earlier round learned .+? never trained on in any way\.", card)
    assert statement
    for page in others:
        assert statement[0] in page


def test_operations_page_has_consistent_figures() -> None:
    text = (ROOT / "docs" / "OPERATIONS.md").read_text("utf-8")
    rate = int(re.search(r"(\d+) passages of 256 tokens per second and core", text)[1])  # type: ignore[index]
    used, hours = re.search(r"10 M passages at (\d+) a second and core: (\d+) core-hours", text).groups()  # type: ignore[union-attr]
    assert (int(used), int(hours)) == (rate, round(10_000_000 / rate / 3600))
