"""Rewrites a model with int8 weights and int8 activations so that only its stored weights are int8.

    python -m training.weight_only DYNAMIC.onnx OUT.onnx

A product of int8 activations rounds them first. What is rounded differs in the last bit between CPUs, because they add
in a different order, and over the layers this grows to the whole error of the quantisation (decision 0029). Here each
weight is converted to float32 when the model is loaded, and all products are float32. The int8 numbers and their scales
do not change.
"""

import hashlib
import sys
from pathlib import Path

import onnx
from onnx import helper


class Rewriter:
    """One graph, node by node, in its order."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.graph = model.graph
        self.made_by = {name: node for node in self.graph.node for name in node.output}
        self.used_by: dict[str, list[onnx.NodeProto]] = {}
        for node in self.graph.node:
            for name in node.input:
                self.used_by.setdefault(name, []).append(node)
        self.dropped: set[int] = set()

    def rewrite(self) -> None:
        """Replace the nodes of dynamic quantisation."""
        nodes: list[onnx.NodeProto] = []
        for node in self.graph.node:
            if node.op_type == "MatMulInteger":
                nodes += self._product(node)
            elif node.op_type == "QAttention":
                nodes += self._attention(node)
            elif id(node) not in self.dropped and node.op_type != "DynamicQuantizeLinear":
                nodes.append(node)
        needed = {name for node in nodes for name in node.input} | {one.name for one in self.graph.output}
        kept = [node for node in nodes if needed & set(node.output) and id(node) not in self.dropped]
        del self.graph.node[:]
        self.graph.node.extend(kept)
        used = {name for node in kept for name in node.input}
        for tensor in [one for one in self.graph.initializer if one.name not in used]:
            self.graph.initializer.remove(tensor)

    def _product(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """MatMulInteger, Cast and Mul by both scales become a float product."""
        cast = self._only_user(node.output[0], "Cast")
        scaled = self._only_user(cast.output[0], "Mul")
        self.dropped |= {id(cast), id(scaled)}
        scales = self.made_by[next(name for name in scaled.input if name != cast.output[0])]
        weight = node.input[1]
        scale = next(
            name for name in scales.input if name.endswith("_scale") and weight.startswith(name[: -len("_scale")])
        )
        floats, turn_back = self._turned_back(weight, scale, node.input[3])
        return [turn_back, helper.make_node("MatMul", [self._float_of(node.input[0]), floats], list(scaled.output))]

    def _attention(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        floats, turn_back = self._turned_back(node.input[1], node.input[4], node.input[7])
        inputs = [self._float_of(node.input[0]), floats, node.input[2], node.input[5]]
        fused = helper.make_node("Attention", inputs, list(node.output), domain="com.microsoft")
        fused.attribute.extend(node.attribute)
        return [turn_back, fused]

    def _turned_back(self, weight: str, scale: str, zero: str) -> tuple[str, onnx.NodeProto]:
        name = f"{weight}_float"
        return name, helper.make_node("DequantizeLinear", [weight, scale, zero], [name], axis=1)

    def _float_of(self, quantized: str) -> str:
        source = self.made_by[quantized]
        assert source.op_type == "DynamicQuantizeLinear", source.op_type
        return str(source.input[0])

    def _only_user(self, name: str, kind: str) -> onnx.NodeProto:
        (user,) = self.used_by[name]
        assert user.op_type == kind, user.op_type
        return user


def main(source: Path, target: Path) -> None:
    model = onnx.load(source)
    Rewriter(model).rewrite()
    onnx.checker.check_model(model)
    onnx.save(model, target)
    print(target.name, target.stat().st_size, hashlib.sha256(target.read_bytes()).hexdigest())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
