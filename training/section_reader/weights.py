"""Reads the section reader's weights out of its ONNX file, and writes trained ones into a copy of it.

    python -m training.section_reader.weights start FOLDER
    python -m training.section_reader.weights mean READER.onnx OUT.onnx SHARE=STEM [SHARE=STEM ...]

`start` takes out of the shipped files what the GPU machine needs: start.npz (the section reader), embedder.npz and tokenizer.json. `mean` writes the
mean of what several runs learned (STEM.*.npz); what the shares leave of 1 is the share of READER.onnx.

The graph stays as it is, so that neither torch nor a new export is needed. Weights are stored as int8, a scale for each column
(rows of the word table share one), and turned into float32 in each run. Names are those of `model.py`.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from tokenizers import BertWordPieceTokenizer
from training.packed import Array, mean

SHIPPED = Path(__file__).parents[2] / "src/chapterverse"
WEIGHTS, EMBEDDER = SHIPPED / "trained/weights/section_reader.onnx", SHIPPED / "embeddings/weights"
FIXED = ("words", "types", "positions")  # tables that are not trained


def _places(model: onnx.ModelProto) -> dict[str, str]:
    """Our name of each stored weight, by its name in the file. Products of a layer come in the order o, up, down."""
    names = [one.name for one in model.graph.initializer]
    places = {name: name.removeprefix("model.") for name in names if name.startswith("model.")}
    for layer in range(12):
        places |= {f"Attention_{layer}_qkv_weight_quantized": f"layers.{layer}.qkv.weight_quantized"}
        places |= {f"Attention_{layer}_qkv_bias": f"layers.{layer}.qkv.bias"}
    products = [
        node.input[1].removesuffix("_float")
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::")
    ]
    ours = [f"layers.{layer}.{part}.weight" for layer in range(12) for part in ("o", "up", "down")] + ["token.weight"]
    return places | {name: f"{our}_quantized" for name, our in zip(products, ours, strict=True)}


def read(file: Path) -> dict[str, Array]:
    """All weights in torch's orientation: `name` as float32, or `name|q` whole numbers and `name|s` their scales."""
    model = onnx.load(file)
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    found: dict[str, Array] = {}
    for name, place in _places(model).items():
        if place.endswith(("_scale", "_zero_point")):
            continue
        pieces, our = {"": stored[name]}, place.removesuffix("_quantized")
        if our != place:
            scale = name.removesuffix("_quantized")
            whole = stored[name].astype(np.int16) - stored[f"{scale}_zero_point"].astype(np.int16)
            pieces = {"|q": whole, "|s": stored[f"{scale}_scale"]}
            if our.split(".")[0] not in FIXED:
                pieces = {"|q": whole.T, "|s": stored[f"{scale}_scale"].reshape(-1, 1)}
        for end, value in pieces.items():
            if ".qkv." in our:
                parts = zip("qkv", np.split(value, 3), strict=True)
                found |= {our.replace("qkv", part) + end: piece for part, piece in parts}
            else:
                found[our + end] = value
    return found


def write(template: Path, learned: dict[str, Array], out: Path) -> None:
    """Write the same graph with other weights."""
    model = onnx.load(template)
    stored = {one.name: one for one in model.graph.initializer}
    for name, our in _places(model).items():
        if our.endswith(("_scale", "_zero_point")):
            continue
        plain = our.removesuffix("_quantized")
        if plain.split(".")[0] in FIXED:
            continue
        if ".qkv." in plain:
            value = np.concatenate([learned[plain.replace("qkv", part)] for part in "qkv"])
        else:
            value = learned[plain]
        if not our.endswith("_quantized"):
            set_tensor(stored[name], value.astype(np.float32))
            continue
        scale_name, zero_name = (name.removesuffix("_quantized") + end for end in ("_scale", "_zero_point"))
        value = np.ascontiguousarray(value.T)
        scale = np.maximum(np.abs(value).max(axis=0), 1e-8) / 127
        shape = tuple(stored[scale_name].dims)
        if not shape:
            scale = scale.max()
        set_tensor(stored[name], np.clip(np.round(value / scale), -127, 127).astype(np.int8))
        set_tensor(stored[scale_name], np.asarray(scale, np.float32).reshape(shape))
        set_tensor(stored[zero_name], np.zeros(tuple(stored[zero_name].dims), np.int8))
    onnx.save(model, out)


def set_tensor(tensor: onnx.TensorProto, value: Array) -> None:
    assert tuple(tensor.dims) == value.shape, (tensor.name, tensor.dims, value.shape)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def start(folder: Path) -> None:
    """Extract what the GPU machine needs from the files of the package."""
    from training.embedder.weights import read as read_embedder

    shipped = EMBEDDER / "minilm.onnx"
    np.savez_compressed(folder / "start.npz", **read(WEIGHTS))  # type: ignore[arg-type]
    np.savez_compressed(folder / "embedder.npz", **read_embedder(shipped, EMBEDDER / "words.npy"))  # type: ignore[arg-type]
    BertWordPieceTokenizer(str(EMBEDDER / "vocabulary.txt"), lowercase=True).save(str(folder / "tokenizer.json"))


def main() -> None:
    if sys.argv[1] == "start":
        start(Path(sys.argv[2]))
        return
    template, out = map(Path, sys.argv[2:4])
    before = read(template)
    before |= {name[:-2]: before[name] * before[f"{name[:-2]}|s"] for name in [*before] if name.endswith("|q")}
    write(template, mean(sys.argv[4:], before), out)
    print(out.name, out.stat().st_size, hashlib.sha256(out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
