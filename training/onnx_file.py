"""A trained cross-encoder as a fused int8 ONNX file, and how fast that is.

Owns export, fusion, quantisation and timing, for the reader and the verifier alike. The file has no word table: it
reads the embedder's (`training.words`).
"""

import hashlib
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from training.cross_encoder import CrossEncoder
from training.pack import load_pieces
from training.words import INPUT, NAME, share, table

SHIPPED = Path(__file__).parent.parent / "src/chapterverse/embeddings/weights/words.npy"
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


def export(folder: Path, weights: Path, embedder: Path, target: Path, marks: bool = True) -> None:
    """Write `target` in int8; beside it the fp32 file it was made from. `embedder` still has its word table."""
    state = load_pieces(weights)
    state.setdefault(NAME, table(embedder))
    layers = len({name.split(".")[3] for name in state if ".layer." in name})
    model = CrossEncoder(folder, attention="eager", layers=layers).eval()
    model.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()})
    exact = target.with_suffix(".fp32.onnx")
    example = torch.ones(2, 16, dtype=torch.int64)
    axes = {0: "pairs", 1: "tokens"}
    with tempfile.TemporaryDirectory() as scratch:
        plain, whole = Path(scratch) / "plain.onnx", Path(scratch) / "whole.onnx"
        torch.onnx.export(
            model, (example, example, example), str(plain), input_names=INPUTS, output_names=["answerable", "marks"],
            dynamic_axes={**dict.fromkeys(INPUTS, axes), "answerable": {0: "pairs"}, "marks": axes},
            opset_version=17, dynamo=False,
        )  # fmt: skip
        fused = optimizer.optimize_model(
            str(plain), "bert", num_heads=12, hidden_size=384, optimization_options=FusionOptions("bert"), opt_level=0
        )
        print("fused:", {k: v for k, v in fused.get_fused_operator_statistics().items() if v})
        if not marks:
            drop_marks(fused.model.graph)
        fused.save_model_to_file(str(exact))
        quantize_dynamic(
            str(exact), str(whole), per_channel=True, weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )  # fmt: skip
        share(embedder, whole, target)
    print(target.name, target.stat().st_size, hashlib.sha256(target.read_bytes()).hexdigest())


def drop_marks(graph: onnx.GraphProto) -> None:
    """Leave the pair's logit alone: it needs the last layer's first token only, and so does what follows attention."""
    graph.output.remove(next(o for o in graph.output if o.name == "marks"))
    for node in [n for n in graph.node if n.name.startswith("/mark/")]:
        graph.node.remove(node)
    kept = {name for node in graph.node for name in node.input}
    for tensor in [t for t in graph.initializer if t.name not in kept]:
        graph.initializer.remove(tensor)
    graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1, np.int64), "first_token"))
    last = max(at for at, node in enumerate(graph.node) if node.op_type == "Attention")
    norm = next(n for n in list(graph.node)[last:] if n.op_type == "SkipLayerNormalization")
    spoken, before = graph.node[last].output[0], norm.input[1]
    for node in list(graph.node)[last + 1 :]:
        node.input[:] = [f"{name}_first" if name in (spoken, before) else name for name in node.input]
    for name in (spoken, before):
        cut = onnx.helper.make_node("Gather", [name, "first_token"], [f"{name}_first"], f"{name}_cut", axis=1)
        graph.node.insert(last + 1, cut)


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ask(run: ort.InferenceSession, ids: np.ndarray, second: int, words: np.ndarray) -> list[np.ndarray]:
    """What a file says of a pair; the fp32 one has its own words."""
    row = np.array(ids, np.int64)[None]
    types = (np.arange(len(ids)) >= second).astype(np.int64)[None]
    inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": types, INPUT: words}
    return run.run(None, {one.name: inputs[one.name] for one in run.get_inputs()})


def milliseconds(path: Path, tokens: int, runs: int = 40) -> tuple[float, float]:
    """Median and fastest time of one pair on one thread."""
    run, words = session(path), np.load(SHIPPED, mmap_mode="r")
    ids = np.random.default_rng(0).integers(1000, 30000, tokens)
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        ask(run, ids, 17, words)
        times.append(time.perf_counter() - began)
    return 1000 * float(np.median(times)), 1000 * min(times)


def predict(path: Path, pairs: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, list[np.ndarray]]:
    """As `cross_encoder.predict`, for (ids, where the passage begins); no marks from a file that has none."""
    run, words = session(path), np.load(SHIPPED, mmap_mode="r")
    logits, marks = np.zeros(len(pairs), np.float32), []
    for place, (ids, second) in enumerate(pairs):
        logit, *mark = ask(run, ids, second, words)
        logits[place] = logit[0]
        marks += [np.concatenate([m[0, :1], m[0, second : len(ids) - 1]]) for m in mark]
    return logits, marks
