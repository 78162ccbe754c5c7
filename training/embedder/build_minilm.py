"""Makes the embedding model: all-MiniLM-L6-v2 as a fused ONNX graph, stored as int8, whose outputs are unit vectors.

Run once by a developer; users do not need it. Needs torch, transformers, onnx, onnxscript and the original weights (see
docs/decisions/0002-local-embeddings.md). Mean pooling and normalisation are part of the graph, so that the product only
tokenises and runs it.

    python -m training.embedder.build_minilm MODEL_DIR OUT_DIR

`whole.onnx` is the model including its word table, which the exports of the section reader and the verifier need.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from training.weight_only import main as float32_products
from training.words import main as take_words_out
from transformers import AutoModel

# sha256 of model.safetensors as published for sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"


class SentenceEncoder(torch.nn.Module):
    """The transformer, mean pooling over real tokens, and normalisation to length 1."""

    def __init__(self, encoder: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(mean, dim=1)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def export(model_dir: Path, target: Path) -> None:
    encoder = AutoModel.from_pretrained(model_dir, attn_implementation="eager").eval()
    example = torch.ones(2, 16, dtype=torch.int64)
    torch.onnx.export(
        SentenceEncoder(encoder),
        (example, example),
        str(target),
        input_names=["input_ids", "attention_mask"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": {0: "batch", 1: "tokens"}, "attention_mask": {0: "batch", 1: "tokens"}},
        opset_version=17,
        dynamo=False,
    )


def main(model_dir: Path, out_dir: Path) -> None:
    assert sha256(model_dir / "model.safetensors") == WEIGHTS, "not the published weights"
    assert sha256(model_dir / "tokenizer.json") == TOKENIZER, "not the published tokenizer"
    out_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        plain, fused = Path(scratch) / "plain.onnx", Path(scratch) / "fused.onnx"
        export(model_dir, plain)
        options = FusionOptions("bert")
        optimised = optimizer.optimize_model(
            str(plain), "bert", num_heads=12, hidden_size=384, optimization_options=options, opt_level=0
        )
        print("fused:", optimised.get_fused_operator_statistics())
        optimised.save_model_to_file(str(fused))
        quantize_dynamic(
            str(fused),
            str(out_dir / "whole.onnx"),
            per_channel=True,
            weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        (out_dir / "fused_fp32.onnx").write_bytes(fused.read_bytes())
    take_words_out(out_dir / "whole.onnx", out_dir / "whole.onnx", out_dir / "minilm.onnx", out_dir / "words.npy")
    float32_products(out_dir / "minilm.onnx", out_dir / "minilm.onnx")
    float32_products(out_dir / "minilm.onnx", out_dir / "minilm.onnx", in_each_run=True)
    tokens = json.loads((model_dir / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    pieces = sorted(tokens, key=tokens.__getitem__)  # a token is its line, counted from 0
    (out_dir / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8", newline="\n")
    for name in ("minilm.onnx", "words.npy", "vocabulary.txt"):
        print(name, (out_dir / name).stat().st_size, sha256(out_dir / name))
    print({node.op_type for node in onnx.load(out_dir / "minilm.onnx").graph.node})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
