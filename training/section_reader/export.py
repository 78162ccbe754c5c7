"""Makes the shipped ONNX file of the section reader from the weights that came back from the GPU machine.

    python -m training.section_reader.export GTE_Q8.npz WEIGHTS_STEM OUT.onnx

Weights are int8 with seven bits (`reduce_range`); the word table has eight. `training.weight_only` then turns the products
into float32, because CPUs agree on those alone (decision 0029).
"""

import hashlib
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer
from onnxruntime.transformers.fusion_options import FusionOptions
from training.section_reader.model import SectionReader, start_weights
from training.weight_only import main as float32_products


class Shipped(torch.nn.Module):
    """Takes token ids; the table is int8 rows with a scale each, turned back inside."""

    def __init__(self, model: SectionReader) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, attended: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.model.heads(self.model.encode(self.model.words(ids), attended.float(), types, export=True))


def load(start: Path, stem: Path) -> SectionReader:
    """The trained model with the start weights' word table."""
    learned: dict[str, torch.Tensor] = {"words.weight": start_weights(start)["words.weight"]}
    for file in sorted(stem.parent.glob(f"{stem.name}.*.npz")):
        packed = np.load(file)
        learned |= {key: torch.tensor(packed[key].astype(np.float32)) for key in packed.files}
    layers = 1 + max(int(key.split(".")[1]) for key in learned if key.startswith("layers."))
    model = SectionReader(layers, 0.0)
    model.load_state_dict(learned)
    return model.eval()


def main() -> None:
    start, stem, out = map(Path, sys.argv[1:4])
    model = Shipped(load(start, stem)).eval()
    example = torch.ones(1, 16, dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {0: "pairs", 1: "tokens"}
    with tempfile.TemporaryDirectory() as scratch:
        plain, exact = Path(scratch) / "plain.onnx", out.with_suffix(".fp32.onnx")
        torch.onnx.export(
            model, (example, example, example), str(plain), input_names=names, output_names=["pair", "tokens"],
            dynamic_axes={**dict.fromkeys(names, axes), "pair": {0: "pairs"}, "tokens": axes},
            opset_version=17, dynamo=False,
        )  # fmt: skip
        fused = optimizer.optimize_model(
            str(plain), "bert", num_heads=12, hidden_size=384, optimization_options=FusionOptions("bert"), opt_level=0
        )
        print("fused:", {k: v for k, v in fused.get_fused_operator_statistics().items() if v})
        fused.save_model_to_file(str(exact))
        quantize_dynamic(
            str(exact), str(out), per_channel=True, reduce_range=True, weight_type=QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Attention", "Gather", "EmbedLayerNormalization"],
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )  # fmt: skip
    float32_products(out, out)
    print(out.name, out.stat().st_size, hashlib.sha256(out.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
