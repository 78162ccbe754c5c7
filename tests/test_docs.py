"""The documentation names everything that is there."""

import re
from pathlib import Path

import pytest

from chapterverse import errors
from chapterverse.answering.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection
from chapterverse.cli import main
from chapterverse.config import Settings
from chapterverse.main import create_app
from chapterverse.models import Event

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
    for refusal in (NOT_FOUND, NOT_IN_BOOK, not_in_selection("[topic]")):
        assert f"- {refusal}\n" in API


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"chapterverse {command}" in README or f"`{command}`" in README


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        for named in re.findall(r"`?make ([a-z-]+)`?", (ROOT / page).read_text("utf-8")):
            assert named in targets | {"sure"}, f"{page}: make {named}"
