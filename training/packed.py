"""Weights in the form that is copied to the GPU machine and back: numpy files, read without torch and onnx."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILES = 4  # a single file would be too large to copy back
Array = NDArray[Any]


def unpacked(file: Path) -> dict[str, Array]:
    """Weights of a file as float32. Some are stored as integers (`NAME|q`) with scales (`NAME|s`)."""
    packed = np.load(file)
    found: dict[str, Array] = {}
    for key in packed.files:
        if key.endswith("|q"):
            found[key[:-2]] = packed[key].astype(np.float32) * packed[f"{key[:-2]}|s"]
        elif not key.endswith("|s"):
            found[key] = packed[key].astype(np.float32)
    return found


def save(stem: Path, weights: dict[str, Array]) -> None:
    """Write STEM.0.npz and so on, of similar size, as float16."""
    names = sorted(weights, key=lambda name: -weights[name].size)
    for part in range(FILES):
        np.savez(f"{stem}.{part}.npz", **{name: weights[name].astype(np.float16) for name in names[part::FILES]})  # type: ignore[arg-type]


def saved(stem: Path) -> dict[str, Array]:
    """Read what `save` wrote."""
    found: dict[str, Array] = {}
    for file in sorted(stem.parent.glob(f"{stem.name}.*.npz")):
        found |= unpacked(file)
    return found


def mean(shares: Sequence[str], rest: dict[str, Array]) -> dict[str, Array]:
    """The weighted mean of the weights of several runs (`SHARE=STEM`). The rest up to 1 is the share of `rest`."""
    runs = [(float(share), saved(Path(stem))) for share, stem in (one.split("=") for one in shares)]
    left = 1 - sum(share for share, _ in runs)
    return {
        name: sum((share * run[name] for share, run in runs), start=np.float32(0)) + left * rest[name]
        for name in (runs[0][1] if runs else rest)
    }
