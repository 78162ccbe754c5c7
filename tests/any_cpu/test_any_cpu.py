"""The shipped models give the shipped reference scores, here and as on a CPU without VNNI.

float32 on two kinds of CPU differs by about 1e-7 in a vector and 2e-6 in a score. Products of int8 activations differ
by .03 and .15, and with them ranks and decisions. The tolerances lie far from both.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.any_cpu.reference import REFERENCE, computed
from tools import without_vnni

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
VECTOR, SCORE = 5e-5, 1e-3  # the most that a number of a vector and a score may differ


def differences(found: dict[str, "np.typing.NDArray[np.float32]"]) -> list[str]:
    """What is not as shipped."""
    with np.load(REFERENCE, allow_pickle=False) as shipped:
        most = {name: float(abs(found[name] - shipped[name]).max()) for name in ("vectors", "answers", "units")}
    return [
        f"{name} differ by {most[name]:.2g}" for name in most if most[name] > (VECTOR if name == "vectors" else SCORE)
    ]


def test_this_cpu_gives_the_shipped_scores() -> None:
    assert differences(computed()) == []


def test_a_cpu_without_vnni_gives_the_shipped_scores(tmp_path: Path) -> None:
    if (reason := without_vnni.impossible()) is not None:
        pytest.skip(reason)
    target = tmp_path / "found.npz"
    command = [sys.executable, "-m", "tests.any_cpu.reference", str(target)]
    subprocess.run(command, cwd=ROOT, env=without_vnni.environment(), check=True)
    with np.load(target, allow_pickle=False) as found:
        assert differences(dict(found)) == []
