"""Recipe: a network in the making, its random numbers and weights, and the operators that fit values of any shape."""

from __future__ import annotations

import math

import numpy as np

from fuzzing.build import Array, Builder, Constant
from fuzzing.weights import PROFILES, Weights

FLATS = ((1,), (2,), (2,), (2,), (3,), (4,))
IMAGES = ((1, 2, 2), (1, 1, 3), (1, 2, 3), (2, 1, 2), (1, 3, 3), (1, 2, 1))


class Recipe:
    """A builder with its random numbers and its weights."""

    def __init__(self, rng: np.random.Generator, deployed: bool) -> None:
        self.rng = rng
        self.double = bool(rng.random() < 0.08)
        shapes = FLATS if self.double or rng.random() < 0.6 else IMAGES
        shape = shapes[int(rng.integers(len(shapes)))]
        self.b = Builder(shape, int(rng.integers(8, 21)), self.double, bool(rng.random() < 0.3))
        self.weights = Weights(PROFILES[int(rng.integers(len(PROFILES)))], rng)
        self.deployed = deployed  # float32 arithmetic: no sigmoid, no tanh
        self.raised = False  # whether the outputs end far from 0, which hides lost digits when a network is loaded

    @property
    def flat(self) -> bool:
        """Whether the current value is a vector."""
        return len(self.b.shape) == 1

    def pick(self, *choices: float) -> float:
        """One of these numbers."""
        return float(choices[int(self.rng.integers(len(choices)))])

    def coin(self, share: float = 0.5) -> bool:
        """True with this chance."""
        return bool(self.rng.random() < share)


def flatten(r: Recipe) -> None:
    """All values in one row, by Flatten or Reshape."""
    size = math.prod(r.b.shape)
    if r.coin():
        names = r.b.node("Flatten", [r.b.at], axis=1)
    else:
        shape = [1, size] if r.b.single else [0, -1] if r.coin() else [-1, size]
        names = r.b.node("Reshape", [r.b.at, r.b.whole(shape)])
    r.b.moved(names, np.arange(size))


def dense(r: Recipe, outputs: int | None = None) -> None:
    """A fully connected layer: Gemm in its forms, MatMul with or without Add."""
    b, size = r.b, r.b.shape[0]
    outputs = outputs or int(r.rng.integers(1, 6))
    weight, bias = (b.rounded(v) for v in r.weights.layer(outputs, size))
    form = int(r.rng.integers(5))
    if form == 0:
        names = b.node("Gemm", [b.at, b.constant(weight), b.constant(bias)], transB=1)
    elif form == 1:
        names = b.node("Gemm", [b.at, b.constant(weight.T), b.constant(bias[None])])
    elif form == 2:
        alpha, beta = float(np.float32(r.pick(0.5, 1.0, -1.5, 0.3))), r.pick(1.0, 0.5, 2.0)
        names = b.node("Gemm", [b.at, b.constant(weight.T), b.constant(bias)], alpha=alpha, beta=beta)
        r.weights.scale *= abs(alpha)
        bias = bias * beta
        _scaled(b, names, weight, alpha, bias, outputs)
        return
    else:
        middle = b.node("MatMul", [b.at, b.constant(weight.T)])
        names = b.node("Add", [*middle, b.constant(bias)]) if form == 3 else middle
        bias = bias if form == 3 else np.zeros(outputs)
    b.matrix(names, weight, bias, (outputs,))


def _scaled(b: Builder, names: list[str], weight: Array, alpha: float, bias: Array, outputs: int) -> None:
    """alpha · (weight @ x) + bias, the product with alpha not rounded."""
    w, a, c = Constant(weight), Constant(alpha), Constant(bias)
    b.step(names, lambda v: (v @ w.of(v).T) * a.of(v) + c.of(v), (outputs,))


def activation(r: Recipe) -> None:
    """Something that bends."""
    kind = r.rng.random()
    if kind < 0.5:
        r.b.relu()
    elif kind < 0.65 and not r.double:
        r.b.relu(r.pick(0.1, 0.01, 0.25, 1.5, -0.2))
    elif r.double and r.b.opset < 12:  # onnxruntime has no Clip for float64 there
        r.b.relu()
    elif kind < 0.82 or r.deployed:
        low = r.pick(0.0, -1.0, -0.5) * r.weights.scale
        r.b.clip(low, low + r.pick(0.5, 1.0, 6.0) * r.weights.scale)
    elif math.isfinite(r.weights.scale):
        r.b.curve("Sigmoid" if r.coin() else "Tanh")
        r.weights.scale = 1.0


def arithmetic(r: Recipe) -> None:
    """A constant added, taken from, multiplied or divided by, from either side."""
    b, scale = r.b, r.weights.scale
    shape = b.shape if r.coin() else (1,) * len(b.shape)
    c = b.rounded(r.rng.normal(size=shape))
    kind = int(r.rng.integers(7))
    if kind <= 2:
        c = b.rounded(c * scale)
        k = Constant(c)
        if kind == 0:
            b.step(b.node("Add", [b.at, b.constant(c)] if r.coin() else [b.constant(c), b.at]), lambda v: v + k.of(v))
        elif kind == 1:
            b.step(b.node("Sub", [b.at, b.constant(c)]), lambda v: v - k.of(v))
        else:
            b.step(b.node("Sub", [b.constant(c), b.at]), lambda v: k.of(v) - v)
    elif kind <= 4:
        k = Constant(c)
        b.step(b.node("Mul", [b.at, b.constant(c)] if r.coin() else [b.constant(c), b.at]), lambda v: v * k.of(v))
    elif kind == 5:
        k = Constant(b.rounded(np.where(np.abs(c) < 0.1, 3.0, c)))
        b.step(b.node("Div", [b.at, b.constant(k.float)]), lambda v: v / k.of(v))
    else:
        b.step(b.node("Neg", [b.at]), lambda v: -v)
