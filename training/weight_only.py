"""Rewrites a model with int8 weights and int8 activations so that only its stored weights are int8.

    python -m training.weight_only DYNAMIC.onnx OUT.onnx            # float32 from loading on
    python -m training.weight_only --in-each-run MODEL.onnx OUT.onnx  # of such a model: float32 only while in use

A product of int8 activations rounds them first. What is rounded differs in the last bit between CPUs, because they add
in a different order, and over the layers this grows to the whole error of the quantisation (decision 0029). Here all
products are float32. The int8 numbers and their scales do not change.

onnxruntime converts the weights to float32 when it loads the model, and keeps them. With `--in-each-run` it converts
each weight right before its product, into a buffer that the next one uses again (decision 0056).
"""

import hashlib
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


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


def convert_in_each_run(graph: onnx.GraphProto) -> None:
    """Replace each conversion of a stored weight by one that has to wait for the other factor of its product.

    onnxruntime would convert all weights before the first product, and its `DequantizeLinear` takes fifteen times as
    long as `Cast` and `Mul`, which give the same numbers. A shape of zeros leaves a weight as it is; that it is computed
    from the other factor makes onnxruntime wait."""
    stored = {one.name: one for one in graph.initializer}
    partner = {
        name: next(other for other in node.input if other != name)
        for node in graph.node
        if node.op_type in ("MatMul", "Attention")
        for name in node.input[1:2]
    }
    graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.int64), "no_change"))
    nodes: dict[str, onnx.NodeProto] = {}  # by what they compute
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in stored:
            nodes[node.output[0]] = node
            continue
        weight, scale, zero = node.input
        assert not numpy_helper.to_array(stored[zero]).any(), f"{zero} is not zero"
        factor = partner[node.output[0]]
        shape, wait, whole, floats = (
            f"{name}_{end}" for name, end in ((factor, "shape"), (factor, "wait"), (weight, "whole"), (weight, "cast"))
        )
        for made in (
            helper.make_node("Shape", [factor], [shape], start=0, end=2),
            helper.make_node("Mul", [shape, "no_change"], [wait]),
            helper.make_node("Reshape", [weight, wait], [whole]),
            helper.make_node("Cast", [whole], [floats], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [floats, scale], list(node.output)),
        ):
            nodes.setdefault(made.output[0], made)
    del graph.node[:]
    graph.node.extend(nodes.values())


def main(source: Path, target: Path, *, in_each_run: bool = False) -> None:
    model = onnx.load(source)
    if in_each_run:
        convert_in_each_run(model.graph)
    else:
        Rewriter(model).rewrite()
    onnx.checker.check_model(model)
    onnx.save(model, target)
    print(target.name, target.stat().st_size, hashlib.sha256(target.read_bytes()).hexdigest())


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    main(files[0], files[1], in_each_run="--in-each-run" in sys.argv)
