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


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
