"""A builder of tiny random ONNX networks: each method adds an operator to the value it stands at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from radii._torch import torch
from radii.models.from_onnx import import_graph

OPSET = 13


class Builder:
    """Adds operators one after the other; `at` is the name of the current value and `shape` its shape (no batch)."""

    def __init__(self, seed: int, shape: tuple[int, ...], double: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.at, self.shape = "x", shape
        self.input_shape = shape
        self._kind = TensorProto.DOUBLE if double else TensorProto.FLOAT
        self._input = helper.make_tensor_value_info("x", self._kind, ["N", *shape])
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: NDArray[Any]) -> str:
        """The name of a constant that holds these values."""
        name = f"c{len(self._constants)}"
        floats = np.float64 if self._kind == TensorProto.DOUBLE else np.float32
        kind = np.int64 if values.dtype.kind == "i" else floats
        self._constants.append(numpy_helper.from_array(values.astype(kind), name))
        return name

    def apply(self, operator: str, *more: str, shape: tuple[int, ...] | None = None, **attributes: Any) -> Builder:
        """Apply an operator to the current value (and more values); the result becomes the current one."""
        out = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, [self.at, *more], [out], name=out, **attributes))
        self.at, self.shape = out, shape or self.shape
        return self

    def dense(self, outputs: int) -> Builder:
        """A fully connected layer, as Gemm."""
        (inputs,) = self.shape
        weight = self.rng.normal(size=(outputs, inputs)) * math.sqrt(2 / inputs)
        bias = self.rng.normal(size=outputs) * 0.3
        return self.apply("Gemm", self.constant(weight), self.constant(bias), shape=(outputs,), transB=1)

    def conv(self, channels: int, kernel: int = 3, stride: int = 1, pad: int = 0) -> Builder:
        """A convolution with square kernels."""
        before, rows, columns = self.shape
        weight = self.rng.normal(size=(channels, before, kernel, kernel)) * math.sqrt(2 / (before * kernel**2))
        bias = self.rng.normal(size=channels) * 0.3
        sides = tuple((n + 2 * pad - kernel) // stride + 1 for n in (rows, columns))
        names = self.constant(weight), self.constant(bias)
        return self.apply(
            "Conv", *names, shape=(channels, *sides), strides=[stride] * 2, pads=[pad] * 4, kernel_shape=[kernel] * 2
        )

    def batch_norm(self) -> Builder:
        """Batch normalisation in inference form, over channels or features."""
        count = self.shape[0]
        scale, shift, mean = self.rng.uniform(0.5, 1.5, count), *self.rng.normal(size=(2, count)) * 0.3
        variance = self.rng.uniform(0.5, 1.5, count)
        return self.apply("BatchNormalization", *(self.constant(v) for v in (scale, shift, mean, variance)))

    def pool(self, operator: str, kernel: int = 2, stride: int = 2) -> Builder:
        """MaxPool or AveragePool without padding."""
        channels, *sides = self.shape
        after = tuple((n - kernel) // stride + 1 for n in sides)
        return self.apply(operator, shape=(channels, *after), kernel_shape=[kernel] * 2, strides=[stride] * 2)

    def flatten(self) -> Builder:
        """All numbers in one row."""
        return self.apply("Flatten", shape=(math.prod(self.shape),), axis=1)

    def clip(self, low: float, high: float) -> Builder:
        """Cut to [low, high]."""
        return self.apply("Clip", self.constant(np.array(low)), self.constant(np.array(high)))

    def back(self, at: str, shape: tuple[int, ...]) -> Builder:
        """Stand at an earlier value again, to start another branch."""
        self.at, self.shape = at, shape
        return self

    def balance(self) -> Builder:
        """Shift the outputs so that each is 0 on average over [0, 1]: every class then occurs."""
        x = np.random.default_rng(0).uniform(size=(256, *self.input_shape)).astype(np.float32)
        graph = import_graph(self.model().SerializeToString(), self.input_shape)
        with torch.no_grad():
            mean = graph(torch.from_numpy(x)).mean(0).numpy()
        return self.apply("Add", self.constant(-mean))

    def model(self) -> onnx.ModelProto:
        """The network whose output is the current value."""
        output = helper.make_tensor_value_info(self.at, self._kind, ["N", *self.shape])
        graph = helper.make_graph(self._nodes, "toy", [self._input], [output], self._constants)
        built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        onnx.checker.check_model(built)
        return built
