"""A trained cross-encoder as a fused int8 ONNX file, and how fast that is.

Owns export, fusion, quantisation and timing, for the reader and the verifier alike.
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

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


def export(folder: Path, weights: Path, target: Path) -> Path:
    """Write `target` in int8 and, beside it, the fp32 file it was made from."""
    model = CrossEncoder(folder, attention="eager").eval()
    model.load_state_dict({name: torch.from_numpy(v) for name, v in load_pieces(weights).items()}, strict=False)
    exact = target.with_suffix(".fp32.onnx")
    example = torch.ones(2, 16, dtype=torch.int64)
    axes = {0: "pairs", 1: "tokens"}
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "plain.onnx"
        torch.onnx.export(
            model, (example, example, example), str(plain), input_names=INPUTS, output_names=["answerable", "marks"],
            dynamic_axes={**dict.fromkeys(INPUTS, axes), "answerable": {0: "pairs"}, "marks": axes},
            opset_version=17, dynamo=False,
        )  # fmt: skip
        fused = optimizer.optimize_model(
            str(plain), "bert", num_heads=12, hidden_size=384, optimization_options=FusionOptions("bert"), opt_level=0
        )
        print("fused:", {k: v for k, v in fused.get_fused_operator_statistics().items() if v})
        fused.save_model_to_file(str(exact))
    quantize_dynamic(
        str(exact), str(target), per_channel=True, weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )  # fmt: skip
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    target.with_suffix(".sha256").write_text(f"{digest}  {target.name}\n", "utf-8")
    print(target.name, target.stat().st_size, digest)
    return exact


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def milliseconds(path: Path, tokens: int, runs: int = 40) -> tuple[float, float]:
    """Median and fastest time of one pair on one thread."""
    run = session(path)
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, 30000, (1, tokens))
    types = (np.arange(tokens) > 16).astype(np.int64)[None]
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        run.run(None, inputs)
        times.append(time.perf_counter() - began)
    return 1000 * float(np.median(times)), 1000 * min(times)


def predict(path: Path, pairs: list[tuple[np.ndarray, int]]) -> tuple[np.ndarray, list[np.ndarray]]:
    """As `cross_encoder.predict`, for (ids, where the passage begins)."""
    run = session(path)
    logits, marks = np.zeros(len(pairs), np.float32), []
    for place, (ids, second) in enumerate(pairs):
        types = (np.arange(len(ids)) >= second).astype(np.int64)[None]
        row = np.array(ids, np.int64)[None]
        logit, mark = run.run(None, {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": types})
        logits[place] = logit[0]
        marks.append(np.concatenate([mark[0, :1], mark[0, second : len(ids) - 1]]))
    return logits, marks
