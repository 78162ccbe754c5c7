"""The word table that all models share: 30,522 words of 384 bytes, from the embedder's export.

Removes the table from an ONNX file: the graph gets it as an input instead, and computes exactly the same. The scale and
the zero point stay in each graph. A model that was trained with its own table gets the embedder's.

    python -m training.words EMBEDDER_ONNX MODEL_ONNX OUT_ONNX [WORDS_NPY]
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

NAME = "encoder.embeddings.word_embeddings.weight"
INPUT = "words"


def quantised(embedder: Path) -> dict[str, onnx.TensorProto]:
    """The table, its scale and its zero point, by the rest of their names."""
    found = onnx.load(embedder).graph.initializer
    return {t.name.removeprefix(f"{NAME}_"): t for t in found if t.name.startswith(NAME)}


def table(embedder: Path) -> np.ndarray:
    """The words in the form that the graph uses."""
    words, scale, zero = (numpy_helper.to_array(quantised(embedder)[k]) for k in ("quantized", "scale", "zero_point"))
    return (words.astype(np.float32) - zero.astype(np.float32)) * scale


def share(embedder: Path, model: Path, target: Path) -> None:
    """Write the model without its table, which then reads the embedder's."""
    graph = (whole := onnx.load(model)).graph
    parts = quantised(embedder)
    for tensor in list(graph.initializer):
        if tensor.name == f"{NAME}_quantized":
            graph.initializer.remove(tensor)
        elif tensor.name.startswith(NAME):
            tensor.CopyFrom(parts[tensor.name.removeprefix(f"{NAME}_")])
    for node in graph.node:
        node.input[:] = [INPUT if name == f"{NAME}_quantized" else name for name in node.input]
    shape = list(parts["quantized"].dims)
    graph.input.append(onnx.helper.make_tensor_value_info(INPUT, parts["quantized"].data_type, shape))
    onnx.save(whole, target)


def main(embedder: Path, model: Path, target: Path, words: Path | None = None) -> None:
    if words:
        np.save(words, numpy_helper.to_array(quantised(embedder)["quantized"]))
    share(embedder, model, target)
    print(target.name, target.stat().st_size)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:5]))
