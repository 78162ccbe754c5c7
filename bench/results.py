"""Where benchmark results go: one JSON file per bench and commit.

Owns the file names. Nothing in a result depends on the machine but the times.
"""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results"


def commit() -> str:
    """The short name of the commit, marked when the tree differs from it."""
    name = _git("rev-parse", "--short", "HEAD")
    return f"{name}-dirty" if _git("status", "--porcelain", "--untracked-files=no") else name


def save(bench: str, result: dict[str, Any]) -> Path:
    """Write a result and return where."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{bench}-{commit()}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return target


def newest(bench: str) -> tuple[dict[str, Any], str] | None:
    """The latest result of a bench and the commit it is of: by the commit's time, a tree that differs after it."""
    found = [(_age(path, bench), path) for path in RESULTS.glob(f"{bench}-*.json")]
    if not found:
        return None
    path = max(found)[1]
    return json.loads(path.read_text("utf-8")), path.stem.removeprefix(f"{bench}-")


def _age(path: Path, bench: str) -> tuple[int, bool, float]:
    name, _, dirty = path.stem.removeprefix(f"{bench}-").partition("-")
    shown = ["git", "show", "-s", "--format=%ct", name]
    asked = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=False)  # a commit may be gone
    return int(asked.stdout or 0), bool(dirty), path.stat().st_mtime


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
