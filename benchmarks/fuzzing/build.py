"""Networks built twice, operator by operator: as an ONNX file, and as plain functions on numpy arrays.

The functions work on float64 and on Python fractions alike (arrays of dtype object), so that an oracle has the value of
a network at a point without rounding. They are written from the ONNX specification and know nothing of radii; that they
and onnxruntime agree on random inputs is checked for every network before anything else is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
DIGITS = 60  # of a root, a tanh or a sigmoid, where fractions cannot be exact


def fractions(values: Any) -> Array:
    """Floats as the fractions they are."""
    array = np.asarray(values, dtype=np.float64)
    return np.array([Fraction(float(v)) for v in array.ravel()], dtype=object).reshape(array.shape)


class Constant:
    """Numbers of the file, in whichever arithmetic they meet."""

    def __init__(self, values: Any, exact: Array | None = None) -> None:
        self.float = np.asarray(values, dtype=np.float64)
        self._exact = exact

    @cached_property
    def exact(self) -> Array:
        """The same as fractions."""
        return fractions(self.float) if self._exact is None else self._exact

    def of(self, like: Array) -> Array:
        """The numbers in the arithmetic of an array."""
        return self.exact if like.dtype == object else self.float


@dataclass(frozen=True)
class Step:
    """One value as a function of earlier ones; the first axis of every value is the batch.

    `bends` gives, for a piecewise-linear step, the values whose signs say which piece holds; None for an affine step.
    """

    name: str
    inputs: tuple[str, ...]
    apply: Callable[..., Array]
    bends: Callable[[Array], Array] | None = None
    curved: bool = False  # a sigmoid, a tanh or a product: not piecewise linear


@dataclass(frozen=True)
class Network:
    """The ONNX bytes and the steps that say what they mean."""

    model: bytes
    steps: tuple[Step, ...]
    shape: Shape
    classes: int
    last: str
    double: bool = False
    single: bool = False  # whether the file fixes the batch to one
    operators: tuple[str, ...] = ()
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    @property
    def curved(self) -> bool:
        """Whether it is more than piecewise linear."""
        return any(step.curved for step in self.steps)

    @property
    def plain(self) -> bool:
        """Whether inputs reach the network unprocessed."""
        return (self.mean, self.std) == ((0.0,), (1.0,))

    def run(self, x: Array) -> Array:
        """The outputs over the reals (as near as the array's arithmetic comes) of a batch of flat inputs."""
        values = {"x": x.reshape(len(x), *self.shape)}
        for step in self.steps:
            values[step.name] = step.apply(*(values[name] for name in step.inputs))
        return values[self.last].reshape(len(x), -1)

    def prepared(self, mean: tuple[float, ...], std: tuple[float, ...]) -> Network:
        """The network behind (x − mean) / std, one number or one per channel; the file stays as it is."""
        shape = (-1,) + (1,) * (len(self.shape) - 1) if len(mean) > 1 else (1,) * len(self.shape)
        low, wide = Constant(np.reshape(mean, shape)), Constant(np.reshape(std, shape))
        first = Step("prepared", ("x",), lambda v: (v - low.of(v)) / wide.of(v))
        renamed = (
            replace(s, inputs=tuple("prepared" if name == "x" else name for name in s.inputs)) for s in self.steps
        )
        return replace(self, steps=(first, *renamed), mean=mean, std=std)


class Builder:
    """Adds operators one after the other; `at` is the current value's name and `shape` its shape without the batch."""

    def __init__(self, shape: Shape, opset: int = 13, double: bool = False, single: bool = False) -> None:
        self.at, self.shape, self.input_shape = "x", shape, shape
        self.opset, self.double, self.single = opset, double, single
        self.dtype = np.float64 if double else np.float32
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._steps: list[Step] = []

    def rounded(self, values: Any) -> Array:
        """The numbers as the file can hold them, the largest it has in place of larger ones."""
        most = float(np.finfo(self.dtype).max)
        return np.clip(np.asarray(values, dtype=np.float64), -most, most).astype(self.dtype).astype(np.float64)

    def constant(self, values: Any, dtype: Any = None) -> str:
        """The name of a stored constant."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values).astype(dtype or self.dtype), name))
        return name

    def whole(self, values: Any) -> str:
        """The name of a stored constant of whole numbers."""
        return self.constant(np.atleast_1d(values), np.int64)

    def node(self, operator: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Adds an ONNX node; the names of its outputs."""
        names = [f"v{len(self._nodes)}" + ("" if k == 0 else f"_{k}") for k in range(outputs)]
        self._nodes.append(helper.make_node(operator, inputs, names, name=names[0], **attributes))
        return names

    def step(
        self,
        names: list[str] | str,
        apply: Callable[..., Array],
        shape: Shape | None = None,
        inputs: tuple[str, ...] | None = None,
        bends: Callable[[Array], Array] | None = None,
        curved: bool = False,
    ) -> Builder:
        """Says what the last node computes; its value becomes the current one."""
        name = names if isinstance(names, str) else names[0]
        self._steps.append(Step(name, inputs or (self.at,), apply, bends, curved))
        self.at, self.shape = name, self.shape if shape is None else shape
        return self

    def matrix(self, names: list[str], weight: Any, bias: Any, shape: Shape, divide: Any = None) -> Builder:
        """The last node is weight @ flat value + bias, all of it divided by whole numbers where given."""
        w, b = Constant(weight), Constant(bias)
        whole = None if divide is None else Constant(divide)

        def apply(value: Array) -> Array:
            out = value.reshape(len(value), -1) @ w.of(value).T + b.of(value)
            return (out if whole is None else out / whole.of(value)).reshape(len(value), *shape)

        return self.step(names, apply, shape)

    def moved(self, names: list[str], order: Array) -> Builder:
        """The last node picks entries: `order` has the shape of the result and the flat places it takes from."""
        flat = order.ravel()
        return self.step(names, lambda v: v.reshape(len(v), -1)[:, flat].reshape(len(v), *order.shape), order.shape)

    @property
    def places(self) -> Array:
        """The flat places of the current value, in its shape."""
        return np.arange(math.prod(self.shape)).reshape(self.shape)

    def relu(self, slope: float = 0.0) -> Builder:
        """Relu, or LeakyRelu with a slope."""
        if slope == 0.0:
            names = self.node("Relu", [self.at])
        else:
            slope = float(np.float32(slope))
            names = self.node("LeakyRelu", [self.at], alpha=slope)
        alpha = Constant(slope)
        return self.step(names, lambda v: np.where(v > 0, v, v * alpha.of(v)), bends=lambda v: v.reshape(len(v), -1))

    def clip(self, low: float, high: float) -> Builder:
        """Cut to [low, high]."""
        low, high = float(self.rounded(low)), float(self.rounded(high))
        if self.opset < 11:
            names = self.node("Clip", [self.at], min=low, max=high)
        else:
            names = self.node("Clip", [self.at, self.constant(low), self.constant(high)])
        a, b = Constant(low), Constant(high)
        return self.step(
            names,
            lambda v: np.minimum(np.maximum(v, a.of(v)), b.of(v)),
            bends=lambda v: np.concatenate([(v - a.of(v)).reshape(len(v), -1), (v - b.of(v)).reshape(len(v), -1)], 1),
        )

    def largest(self, names: list[str], windows: list[list[int]], shape: Shape) -> Builder:
        """The last node takes the largest of each window of flat places."""
        pairs = sorted({(a, b) for window in windows for a in window for b in window if a < b})
        left, right = ([p[k] for p in pairs] for k in (0, 1))

        def apply(value: Array) -> Array:
            flat = value.reshape(len(value), -1)
            return np.stack([flat[:, w].max(axis=1) for w in windows], axis=1).reshape(len(value), *shape)

        def bends(value: Array) -> Array:
            flat = value.reshape(len(value), -1)
            return flat[:, left] - flat[:, right]

        return self.step(names, apply, shape, bends=bends)

    def curve(self, operator: str) -> Builder:
        """Sigmoid or Tanh; fractions get sixty digits of it."""
        names = self.node(operator, [self.at])
        half = operator == "Sigmoid"

        def apply(value: Array) -> Array:
            if value.dtype == object:
                return _tanh(value / 2) / 2 + Fraction(1, 2) if half else _tanh(value)
            return 0.5 + 0.5 * np.tanh(value / 2) if half else np.tanh(value)

        return self.step(names, apply, curved=True)

    def network(self) -> Network:
        """The network that ends in the current value."""
        kind = TensorProto.DOUBLE if self.double else TensorProto.FLOAT
        batch: Any = 1 if self.single else "N"
        entry = helper.make_tensor_value_info("x", kind, [batch, *self.input_shape])
        output = helper.make_tensor_value_info(self.at, kind, [batch, *self.shape])
        graph = helper.make_graph(self._nodes, "fuzzed", [entry], [output], self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return Network(
            model.SerializeToString(),
            tuple(self._steps),
            self.input_shape,
            math.prod(self.shape),
            self.at,
            self.double,
            self.single,
            tuple(sorted({node.op_type for node in self._nodes})),
        )


def root(value: Fraction) -> Fraction:
    """The square root to sixty digits."""
    scale = 10**DIGITS
    return Fraction(math.isqrt(value.numerator * value.denominator * scale * scale), value.denominator * scale)


def _tanh(values: Array) -> Array:
    import mpmath

    with mpmath.workdps(DIGITS + 10):
        found = [mpmath.tanh(mpmath.mpf(v.numerator) / v.denominator) for v in values.ravel()]
        return np.array([_fraction(v) for v in found], dtype=object).reshape(values.shape)


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction(-int(mantissa) if sign else int(mantissa)) * Fraction(2) ** exponent
