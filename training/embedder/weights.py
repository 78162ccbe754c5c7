"""Writes trained weights into a copy of the shipped embedding model.

    python -m training.embedder.weights TEMPLATE.onnx START.npz TRAINED_STEM SHARE OUT.onnx

The result is SHARE of what was learned (TRAINED_STEM.*.npz) and the rest of the start weights (as `train.py` takes them): a mean keeps
what the start weights know about other kinds of text. The graph and the table of words stay as they are. Weights are stored as int8
with a scale for each column and turned into float32 at loading.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from training.embedder.names import renamed
from training.section_reader.weights import set_tensor

LAYERS = 6
PREFIX = "encoder.encoder.layer."
TABLES = {"pos.weight": "position_embeddings.weight", "typ.weight": "token_type_embeddings.weight"}
NORMS = {"norm.weight": "LayerNorm.weight", "norm.bias": "LayerNorm.bias"}
PARTS = {
    "o": "attention.output.dense",
    "n1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "n2": "output.LayerNorm",
}
Array = NDArray[Any]


def write(template: Path, weights: dict[str, Array], out: Path) -> None:
    """The same graph with other weights."""
    model = onnx.load(template)
    stored = {one.name: one for one in model.graph.initializer}
    products = [
        node.input[1].removesuffix("_float")
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::")
    ]
    order = [f"layers.{layer}.{part}.weight" for layer in range(LAYERS) for part in ("o", "up", "down")]
    for name, ours in zip(products, order, strict=True):
        _by_column(stored, name, weights[ours].T)
    for layer in range(LAYERS):
        qkv = [f"layers.{layer}.{part}" for part in "qkv"]
        _by_column(
            stored,
            f"Attention_{layer}_qkv_weight_quantized",
            np.concatenate([weights[f"{one}.weight"] for one in qkv]).T,
        )
        set_tensor(stored[f"Attention_{layer}_qkv_bias"], np.concatenate([weights[f"{one}.bias"] for one in qkv]))
        for ours, theirs in PARTS.items():
            for kind in ("weight", "bias"):
                if (name := f"{PREFIX}{layer}.{theirs}.{kind}") in stored:
                    set_tensor(stored[name], weights[f"layers.{layer}.{ours}.{kind}"])
    for ours, theirs in (TABLES | NORMS).items():
        _by_range(stored, f"encoder.embeddings.{theirs}", weights[ours])
    onnx.save(model, out)


def _by_column(stored: dict[str, Any], name: str, value: Array) -> None:
    """int8 with a scale for each column."""
    base = name.removesuffix("_quantized")
    scale = np.maximum(np.abs(value).max(axis=0), 1e-8) / 127
    set_tensor(stored[name], np.clip(np.round(value / scale), -127, 127).astype(np.int8))
    set_tensor(stored[f"{base}_scale"], scale.astype(np.float32))
    set_tensor(stored[f"{base}_zero_point"], np.zeros(scale.shape, np.int8))


def _by_range(stored: dict[str, Any], base: str, value: Array) -> None:
    """uint8 with one scale and one zero point."""
    low, high = min(0.0, float(value.min())), max(0.0, float(value.max()))
    scale = (high - low) / 255
    zero = round(-low / scale)
    set_tensor(stored[f"{base}_quantized"], np.clip(np.round(value / scale) + zero, 0, 255).astype(np.uint8))
    set_tensor(stored[f"{base}_scale"], np.asarray(scale, np.float32))
    set_tensor(stored[f"{base}_zero_point"], np.asarray(zero, np.uint8))


def start_weights(file: Path) -> dict[str, Array]:
    """Weights of a packed BERT (int8 rows and their scales) under the names of `train.py`."""
    packed = np.load(file)
    found: dict[str, Array] = {}
    for key in packed.files:
        if not key.endswith("|s"):
            value = packed[key].astype(np.float32)
            found[renamed(key.removesuffix("|q"))] = value * packed[f"{key[:-2]}|s"] if key.endswith("|q") else value
    return found


def main() -> None:
    """Mix and write."""
    template, start, stem, share, out = (
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        Path(sys.argv[3]),
        float(sys.argv[4]),
        Path(sys.argv[5]),
    )
    before = start_weights(start)
    learned: dict[str, Array] = {}
    for file in sorted(stem.parent.glob(f"{stem.name}.*.npz")):
        packed = np.load(file)
        learned |= {name: packed[name].astype(np.float32) for name in packed.files}
    write(template, {name: share * value + (1 - share) * before[name] for name, value in learned.items()}, out)
    print(out.name, out.stat().st_size, hashlib.sha256(out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
