"""A sample of the documents that `make fuzz` reads."""

import json
import subprocess
import sys

import pytest

CASES = 350
# The first documents of `make fuzz`. None of them reaches the limit of CPU time, which would take 7 s.
# tests/security/test_hostile_files.py tests that limit.
SEED = 1


@pytest.mark.slow
def test_hostile_documents_are_read_or_refused() -> None:
    """Runs in its own process, like `make fuzz`, and fails if a document takes too much time or memory."""
    program = [sys.executable, "-m", "tests.fuzz.documents", "--cases", str(CASES), "--seed", str(SEED)]
    ended = subprocess.run(program, check=False, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    outcomes = json.loads(ended.stdout.splitlines()[-1])
    assert sum(outcomes.values()) == CASES
    assert outcomes["failed"] > 20
    assert outcomes["read"] > 50
