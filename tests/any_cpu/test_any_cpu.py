"""The models give the reference scores on this CPU and on one without VNNI.

`make any-cpu` computes the same on an emulated Haswell and an emulated ARM CPU.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.any_cpu.reference import REFERENCE, SCORE, VECTOR, computed, differences, largest
from tools import without_vnni

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_this_cpu_gives_the_reference_scores() -> None:
    assert differences(computed()) == []


def test_cpu_without_vnni_gives_the_reference_scores(tmp_path: Path) -> None:
    if (reason := without_vnni.impossible()) is not None:
        pytest.skip(reason)
    target = tmp_path / "found.npz"
    command = [sys.executable, "-m", "tests.any_cpu.reference", str(target)]
    subprocess.run(command, cwd=ROOT, env=without_vnni.environment(), check=True)
    with np.load(target, allow_pickle=False) as found:
        assert differences(dict(found)) == []


def test_other_numbers_ranks_and_decisions_are_noticed() -> None:
    with np.load(REFERENCE, allow_pickle=False) as file:
        shipped = dict(file)
    assert differences(shipped) == []
    assert differences({**shipped, "units": shipped["units"] + 2 * SCORE}) == [f"units differ by {2 * SCORE:.2g}"]
    nearest = np.argmin(abs(shipped["answers"]))
    turned = shipped["answers"].copy()
    turned[nearest] *= -1
    assert "other passages are taken for an answer" in differences({**shipped, "answers": turned})
    swapped = shipped["vectors"].copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    found = differences({**shipped, "vectors": swapped})
    assert len(found) == 2 and "passages are found in another order" in found
    assert largest(shipped)["vectors"] == 0 < VECTOR
