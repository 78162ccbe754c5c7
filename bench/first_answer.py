"""Measures how long a new user waits for the first answer: `python -m bench.first_answer`, on a quiet machine.

Builds the wheel, installs it with its dependencies into a fresh environment, and times each command that a new user
types: the ingest of a folder, and a question. The folder is the example book, or only its introduction. Nothing is
compiled or cached before, so the times include every first start.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
QUESTION = "What is physical AI?"


def main() -> None:
    """Install, ingest and ask."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        work.chmod(0o755)  # the embedded Postgres does not run as root and must be able to read the folder
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # setuptools would pack stale files
        _timed([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(work), str(ROOT)])
        (wheel,) = work.glob("*.whl")
        figures["wheel_mb"] = round(wheel.stat().st_size / 1e6, 1)
        _timed([sys.executable, "-m", "venv", str(work / "venv")])
        python = str(work / "venv" / "bin" / "python")
        own = [python, *pip[1:]]
        lock = _timed([*own, "install", "--require-hashes", "-r", str(ROOT / "requirements.lock")])
        figures["install_s"] = round(lock + _timed([*own, "install", "--no-deps", str(wheel)]), 1)
        book = ROOT / "examples" / "book"
        for name, source in (("introduction", book / "intro"), ("example_book", book)):
            home = work / name
            program = [str(work / "venv" / "bin" / "chapterverse")]
            ingest = _timed([*program, "ingest", str(source)], home)
            ask = _timed([*program, "ask", QUESTION], home)
            figures |= {f"{name}_ingest_s": round(ingest, 2), f"{name}_ask_s": round(ask, 2)}
            figures[f"{name}_first_answer_s"] = round(ingest + ask, 2)
            figures[f"{name}_next_answer_s"] = round(_timed([*program, "ask", QUESTION], home), 2)
    print(json.dumps(figures, indent=1))


def _timed(command: list[str], home: Path | None = None) -> float:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    given = {"CHAPTERVERSE_HOME": str(home)} if home else {}
    started = time.perf_counter()
    done = subprocess.run(command, env=clean | given, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
