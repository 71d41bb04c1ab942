"""Small networks as ONNX, so that the tests go the whole way: file bytes, graph, solver, runtime."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from radii.models.classifier import Classifier
from radii.problem import Domain


class Net:
    """Collects ONNX nodes one after the other; `build` makes the classifier."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.nodes, self.weights, self.value = shape, [], [], "input"

    def add(self, kind: str, *weights: Any, inputs: list[str] | None = None, **attributes: Any) -> str:
        names = []
        for weight in weights:
            names.append(f"w{len(self.weights)}")
            self.weights.append(numpy_helper.from_array(np.asarray(weight), names[-1]))
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, (inputs or [self.value]) + names, [output], **attributes))
        self.value = output
        return output

    def build(self, classes: int, domain: Domain | None = None, name: str = "net") -> Classifier:
        source = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, *self.shape])
        result = helper.make_tensor_value_info(self.value, TensorProto.FLOAT, [1, classes])
        graph = helper.make_graph(self.nodes, "net", [source], [result], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model)
        return Classifier(model.SerializeToString(), self.shape, classes, name, domain or Domain())


def f32(array: Any) -> Any:
    return np.asarray(array, dtype=np.float32)


def mlp(rng: np.random.Generator, widths: list[int], domain: Domain | None = None) -> Classifier:
    """A random fully connected ReLU network."""
    net = Net((widths[0],))
    for i, (a, b) in enumerate(pairwise(widths)):
        net.add("Gemm", f32(rng.normal(size=(b, a)) * 1.5 / np.sqrt(a)), f32(rng.normal(size=b) * 0.3), transB=1)
        if i < len(widths) - 2:
            net.add("Relu")
    return net.build(widths[-1], domain)


def convnet(rng: np.random.Generator) -> Classifier:
    """Convolution, batch normalisation, leaky ReLU, max pooling, average pooling, a skip and a clip."""
    net = Net((1, 5, 5))
    net.add("Conv", f32(rng.normal(size=(2, 1, 2, 2))), f32(rng.normal(size=2)), kernel_shape=[2, 2])
    net.add("BatchNormalization", f32([1.1, 0.7]), f32([0.1, -0.2]), f32([0.05, 0.1]), f32([1.3, 0.9]))
    first = net.add("LeakyRelu", alpha=0.1)
    net.add("MaxPool", kernel_shape=[2, 2], strides=[1, 1])
    pooled = net.value
    net.add("AveragePool", inputs=[first], kernel_shape=[2, 2], strides=[1, 1])
    net.add("Add", inputs=[pooled, net.value])
    net.add("Clip", np.float32(-0.4), np.float32(0.8))
    net.add("Flatten")
    net.add("Gemm", f32(rng.normal(size=(3, 18))), f32(rng.normal(size=3)), transB=1)
    return net.build(3)
