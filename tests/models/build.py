"""Small ONNX models made by hand, and the question whether the graph agrees with onnxruntime on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
from hypothesis import settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from radii.errors import RadiiError
from radii.models import Classifier, load_classifier
from radii.models.load import glance

OPSETS = st.integers(8, 20)
SEEDS = st.integers(0, 2**32 - 1)
STYLES = st.sampled_from(["initializer", "input", "node"])
QUICK = settings(max_examples=25, deadline=None, derandomize=True)


class Model:
    """An ONNX model that grows node by node; constants in one of the three styles that exporters use."""

    def __init__(self, opset: int, dims: list[Any], style: str = "initializer", seed: int = 0) -> None:
        self.opset, self.dims, self.style = opset, dims, style
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def const(self, array: Any) -> str:
        array, name = np.asarray(array), self.fresh()
        if self.style == "node":
            tensor = numpy_helper.from_array(array, name)
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def floats(self, *shape: int) -> str:
        return self.const(self.rng.normal(size=shape).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.const(np.asarray(values, dtype=np.int64))

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [self.fresh() for _ in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, name=f"n{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def bytes(self, output: str, kind: int = TensorProto.FLOAT) -> bytes:
        inputs = [helper.make_tensor_value_info("x", kind, self.dims)]
        if self.style == "input":
            inputs += [
                helper.make_tensor_value_info(item.name, item.data_type, list(item.dims)) for item in self.initializers
            ]
        outputs = [helper.make_tensor_value_info(output, kind, None)]
        graph = helper.make_graph(self.nodes, "made", inputs, outputs, self.initializers)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return bytes(proto.SerializeToString())

    def bytes_of(self, operator: str, **attributes: Any) -> bytes:
        """The model that applies one operator to a scaled input."""
        scaled = self.node("Mul", "x", self.const(np.float32(1.5)))
        return self.bytes(self.node(operator, scaled, **attributes))


def read(model: bytes) -> Classifier:
    """The classifier, whose load-time check already compares it with onnxruntime; a glance must say the same."""
    net, look = _told(load_classifier, model), _told(glance, model)
    if isinstance(net, RadiiError) or isinstance(look, RadiiError):
        assert repr(look) == repr(net)
        raise net
    # Torch is only asked about networks whose outputs do not move at all.
    assert "graph" not in vars(look) or any("zero gradients" in alarm for alarm in net.alarms)
    for fact in ("input_shape", "classes", "dtype", "operators", "fingerprint", "alarms"):
        assert getattr(look, fact) == getattr(net, fact)
    return net


def _told(how: Any, model: bytes) -> Any:
    try:
        return how(model, domain=None)
    except RadiiError as error:
        return error


def agree(model: bytes, tolerance: float = 1e-5) -> Classifier:
    """Asserts that graph and onnxruntime agree in float32 and in float64 on normal inputs, in batches."""
    net = read(model)
    x = np.random.default_rng(7).normal(size=(5, *net.input_shape)).astype(np.float32)
    wanted = net.reference(x)
    assert wanted.shape == (5, net.classes)
    scale = max(float(np.abs(wanted).max()), 1e-6)
    for dtype in (torch.float32, torch.float64):
        found = net.graph(torch.from_numpy(x).to(dtype)).flatten(1)
        assert found.dtype == dtype
        assert np.abs(found.numpy() - wanted).max() <= tolerance * scale
    return net


def operators(net: Classifier) -> list[str]:
    """The names of the graph's operators, in order."""
    return [type(node.operator).__name__ for node in net.graph.nodes[1:]]


def version(model: bytes) -> int:
    """The opset that a model states."""
    return int(onnx.load_from_string(model).opset_import[0].version)
