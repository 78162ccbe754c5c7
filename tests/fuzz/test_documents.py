"""A sample of the documents that `make fuzz` reads."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_hostile_documents_are_read_or_refused() -> None:
    """In a program of its own, as `make fuzz` does: it ends with an error where a document took too much."""
    program = [sys.executable, "-m", "tests.fuzz.documents", "--cases", "350", "--seed", "7"]
    ended = subprocess.run(program, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    outcomes = json.loads(ended.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == 350
    assert outcomes["failed"] > 20
    assert outcomes["read"] > 50
