"""The GitHub Action: its file is valid, and its script works in a real repository."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
DOCS = "# Heron\n\nHeron is a boat that maps the harbour.\n\nIts battery lasts nine hours in calm water.\n"


def example() -> dict[str, Any]:
    page = (ROOT / "docs" / "checks.md").read_text("utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(workflow)
    return found


def test_action_is_composite_and_describes_and_uses_its_inputs() -> None:
    assert ACTION["name"] and ACTION["description"]
    assert ACTION["runs"]["using"] == "composite"
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(STEPS)))
    assert used == set(ACTION["inputs"])
    for given in ACTION["inputs"].values():
        assert given["description"]
        assert given.get("required") or isinstance(given["default"], str)


def test_inputs_are_not_inserted_into_scripts() -> None:
    """Values from a pull request are passed to the shell in variables, which prevents injection."""
    for step in STEPS:
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
            named = set(re.findall(r"\$([A-Z_]+)", step["run"]))
            assert {name for name in named if not name.startswith("GITHUB_")} <= set(step.get("env", {}))


def test_script_uses_every_variable_of_the_action() -> None:
    script = ROOT / "deploy" / "check-docs.sh"
    assert os.access(script, os.X_OK)
    (step,) = [one for one in STEPS if "check-docs.sh" in one.get("run", "")]
    for name in step["env"]:
        assert name in script.read_text("utf-8")


def test_example_workflow_uses_existing_inputs() -> None:
    (job,) = example()["jobs"].values()
    checkout, use = job["steps"]
    assert checkout["with"]["fetch-depth"] == 0
    assert set(use["with"]) <= set(ACTION["inputs"])
    assert {name for name, one in ACTION["inputs"].items() if one.get("required")} <= set(use["with"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose last commit removed a paragraph."""
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=Author", "-c", "user.email=author@example.com", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    (folder / "docs" / "heron.md").write_text(DOCS, "utf-8")
    (folder / "questions.jsonl").write_text(
        '{"id": "boat", "question": "What is Heron?"}\n'
        '{"id": "battery", "question": "How long does the battery of Heron last?"}\n',
        "utf-8",
    )
    git("add", ".")
    git("commit", "-m", "Docs")
    git("branch", "base")
    (folder / "docs" / "heron.md").write_text(DOCS.replace("Its battery lasts nine hours in calm water.\n", ""))
    git("commit", "-am", "Shorter")
    return folder


def run(project: Path, tmp_path: Path, **given: str) -> "subprocess.CompletedProcess[str]":
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    program = tools / "chapterverse"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m chapterverse.cli "$@"\n', "utf-8")
    program.chmod(0o755)
    variables = {"DOCS": "docs", "QUESTIONS": "questions.jsonl", "SUMMARY": str(tmp_path / "summary.md")} | given
    return subprocess.run(
        [str(ROOT / "deploy" / "check-docs.sh")],
        cwd=project,
        env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
def test_script_compares_with_the_base_commit_and_restores_the_branch(project: Path, tmp_path: Path) -> None:
    shown = run(project, tmp_path, BASE="base")
    assert shown.returncode == 21, shown.stderr
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "1 broken, 1 as before" in summary
    assert "How long does the battery of Heron last?" in summary and "What is Heron?" not in summary
    state = subprocess.run(["git", "status", "-sb"], cwd=project, capture_output=True, text=True, check=True).stdout
    assert state == "## main\n"


@pytest.mark.slow
def test_script_with_an_unknown_base_commit_names_the_fix(project: Path, tmp_path: Path) -> None:
    shown = run(project, tmp_path, BASE="unknown")
    assert shown.returncode == 2
    assert "fetch-depth: 0" in shown.stderr
