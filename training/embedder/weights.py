"""Writes trained weights into a copy of the product's embedding model.

    python -m training.embedder.weights TEMPLATE.onnx START.npz TRAINED_STEM SHARE OUT.onnx

The result is SHARE times the trained weights (TRAINED_STEM.*.npz) plus the rest from the start weights (as `train.py`
takes them). Averaging preserves what the start weights know about other kinds of text. The graph and the word table do
not change. Weights are stored as int8 with a scale for each column, and converted to float32 in each run.
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from training.embedder.names import renamed
from training.packed import Array, saved, unpacked
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


def _products(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """Names of the matrices, in the order of the file, and our names."""
    names = [
        node.input[1].removesuffix("_float")
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::")
    ]
    ours = [f"layers.{layer}.{part}.weight" for layer in range(LAYERS) for part in ("o", "up", "down")]
    return list(zip(names, ours, strict=True))


def read(file: Path, words: Path) -> dict[str, Array]:
    """The weights of the model under our names as float16, and the word table as integers with their scale."""
    model = onnx.load(file)
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}

    def whole(base: str, value: Array) -> Array:
        return value.astype(np.int16) - stored[f"{base}_zero_point"].astype(np.int16)

    def floats(base: str) -> Array:
        return whole(base, stored[f"{base}_quantized"]) * stored[f"{base}_scale"]

    found = {ours: floats(name.removesuffix("_quantized")).T for name, ours in _products(model)}
    for layer in range(LAYERS):
        matrix, bias = floats(f"Attention_{layer}_qkv_weight").T, stored[f"Attention_{layer}_qkv_bias"]
        for part, weight, one in zip("qkv", np.split(matrix, 3), np.split(bias, 3), strict=True):
            found |= {f"layers.{layer}.{part}.weight": weight, f"layers.{layer}.{part}.bias": one}
        for ours, theirs in PARTS.items():
            for kind in ("weight", "bias"):
                if (name := f"{PREFIX}{layer}.{theirs}.{kind}") in stored:
                    found[f"layers.{layer}.{ours}.{kind}"] = stored[name]
    for ours, theirs in (TABLES | NORMS).items():
        found[ours] = floats(f"encoder.embeddings.{theirs}")
    table = "encoder.embeddings.word_embeddings.weight"
    halves = {name: value.astype(np.float16) for name, value in found.items()}
    return halves | {"tok.weight|q": whole(table, np.load(words)), "tok.weight|s": stored[f"{table}_scale"]}


def write(template: Path, weights: dict[str, Array], out: Path) -> None:
    """Write the same graph with other weights."""
    model = onnx.load(template)
    stored = {one.name: one for one in model.graph.initializer}
    for name, ours in _products(model):
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


def main() -> None:
    """Average and write."""
    template, start, stem, share, out = (
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        Path(sys.argv[3]),
        float(sys.argv[4]),
        Path(sys.argv[5]),
    )
    before = {renamed(name): value for name, value in unpacked(start).items()}
    mixed = {name: share * value + (1 - share) * before[name] for name, value in saved(stem).items()}
    write(template, mixed, out)
    print(out.name, out.stat().st_size, hashlib.sha256(out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
