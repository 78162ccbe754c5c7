"""Saves benchmark results: one JSON file per bench and commit.

A new result of a bench replaces the previous one. Results of a tree that differs from its commit are kept out of the
repository. Only times depend on the machine.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

from tools.pages import PAGES

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"
UNCOMMITTED: Final = ROOT / ".cache" / "results"  # git ignores it
# Files that benches write themselves do not make a tree differ from its commit.
_WRITTEN: Final = (":!bench/results", *(f":!{page.page}" for page in PAGES))


def commit() -> str:
    """The short hash of the commit, with `-dirty` if the tree differs from it."""
    name = _git("rev-parse", "--short", "HEAD")
    return f"{name}-dirty" if _git("status", "--porcelain", "--untracked-files=no", "--", ".", *_WRITTEN) else name


def save(bench: str, result: dict[str, Any]) -> Path:
    """Write a result and return its path."""
    state = commit()
    folder = UNCOMMITTED if state.endswith("-dirty") else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    for old in _of_bench(folder, bench):
        old.unlink()
    target = folder / f"{bench}-{state}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return target


def newest(bench: str) -> tuple[dict[str, Any], str] | None:
    """The newest result of a bench and its commit, including results of a tree that differs from its commit."""
    found = [path for folder in (RESULTS, UNCOMMITTED) for path in _of_bench(folder, bench)]
    if not found:
        return None
    path = max(found, key=lambda one: one.stat().st_mtime)
    return json.loads(path.read_text("utf-8")), path.stem.removeprefix(f"{bench}-")


def _of_bench(folder: Path, bench: str) -> list[Path]:
    name = re.compile(rf"{re.escape(bench)}-\w+(-dirty)?")
    return [path for path in folder.glob(f"{bench}-*.json") if name.fullmatch(path.stem)]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
