"""Toy classifiers whose radii are known exactly: by a closed form (linear) or through `exact_radius` (the others)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from radii._check import choice
from radii.models import Classifier, load_classifier
from radii.problem import Classification, Domain, Instance, Norm
from radii.testing._build import Builder
from radii.testing._nearest import halfspace_distances

UNIT = Domain()


@dataclass(frozen=True, eq=False)
class LinearToy:
    """A linear classifier, weight @ x + bias, with its radii in closed form."""

    classifier: Classifier
    weight: NDArray[np.float64] = field(repr=False)
    bias: NDArray[np.float64] = field(repr=False)

    def radius(self, x: Any, label: int, norm: Norm | str = "linf", target: int | None = None) -> float:
        """The exact radius: margin over the dual norm of the weights' difference where the domain does not bind.

        Where it does, coordinates that reach their side stop; see `radii.testing.linear_radius`.
        """
        point = np.asarray(x, dtype=np.float64).ravel()
        return min(
            linear_radius(
                self.weight[label] - self.weight[other],
                self.bias[label] - self.bias[other],
                point,
                norm,
                self.classifier.domain,
            )
            for other in Classification(target).targets(len(self.bias), label)
        )


def linear_radius(
    slope: Any, constant: float, x: Any, norm: Norm | str = "linf", domain: Domain | tuple[float, float] | None = UNIT
) -> float:
    """The distance from x to the nearest input of the domain with slope · input + constant ≤ 0; inf for none."""
    point, row = np.asarray(x, dtype=np.float64).ravel(), np.asarray(slope, dtype=np.float64).ravel()
    space = Domain.of(domain)
    margin = float(row @ point + constant)
    if margin <= 0:
        return 0.0
    distances = halfspace_distances(
        row[None], np.array([-margin]), Norm.of(norm), space.low - point, space.high - point
    )
    return float(distances[0])


def linear_toy(
    seed: int, inputs: int = 5, classes: int = 3, domain: Domain | tuple[float, float] | None = UNIT
) -> LinearToy:
    """A random linear classifier."""
    builder = Builder(seed, (inputs,))
    weight = builder.rng.normal(size=(classes, inputs)).astype(np.float32)
    bias = (builder.rng.normal(size=classes) * 0.1).astype(np.float32)
    builder.apply("Gemm", builder.constant(weight), builder.constant(bias), shape=(classes,), transB=1)
    classifier = load_classifier(builder.model(), domain=domain, name=f"linear-{seed}")
    return LinearToy(classifier, weight.astype(np.float64), bias.astype(np.float64))


def overflow_toy() -> Classifier:
    """A network of 12 inputs that takes every input but 0 for class 1, and gives ∞ twice in float32 near (1, …, 1).

    Around (0.5, …, 0.5) no float32 forward pass overflows up to 0.301.
    """
    builder = Builder(0, (12,))
    weight = np.stack([np.full(12, 3.0e37), np.full(12, 3.54e37)])
    model = builder.apply("Gemm", builder.constant(weight), shape=(2,), transB=1).model()
    return load_classifier(model, name="overflow", check=False)


def double_toy() -> Classifier:
    """A float64 network of one input that takes values below 0.9 for class 0; in float32 its outputs always tie."""
    builder = Builder(0, (1,), double=True)
    weight, bias = np.array([[-0.005], [0.0]]), np.array([1e5 + 0.9 * 0.005, 1e5])
    model = builder.apply("Gemm", builder.constant(weight), builder.constant(bias), shape=(2,), transB=1).model()
    return load_classifier(model, name="double")


def relu_toy(
    seed: int, widths: tuple[int, ...] = (4, 6, 6, 3), domain: Domain | tuple[float, float] | None = UNIT
) -> Classifier:
    """A random fully connected ReLU network; `widths` are inputs, hidden layers, classes."""
    builder = Builder(seed, (widths[0],))
    for width in widths[1:-1]:
        builder.dense(width).apply("Relu")
    model = builder.dense(widths[-1]).balance().model()
    return load_classifier(model, domain=domain, name=f"relu-{'x'.join(map(str, widths))}-{seed}")


def random_network(seed: int, kind: str = "dense", domain: Domain | tuple[float, float] | None = UNIT) -> Classifier:
    """A random tiny piecewise-linear network of three classes; the kinds are `KINDS`."""
    return load_classifier(random_model(seed, kind), domain=domain, name=f"{kind}-{seed}")


def random_model(seed: int, kind: str = "dense") -> ModelProto:
    """The ONNX model of `random_network`, small enough for `exact_radius` to take well under a second."""
    return _RECIPES[choice(kind, "kind", KINDS)](seed).dense(3).balance().model()


def random_instance(classifier: Classifier, seed: int = 0, reach: float = 0.1) -> Instance:
    """A random input, labelled as the network sees it, whose L∞ radius is at most about `reach`.

    It lies on a line between two random inputs of different classes, before the point where the class changes. Where
    the sample holds one class only, it is a random input, and its radius may well be inf. Inputs are drawn from the
    domain, or from [0, 1] where that is not bounded.
    """
    rng = np.random.default_rng(seed)
    space = classifier.domain if classifier.domain.bounded else UNIT
    x = rng.uniform(space.low, space.high, size=(256, *classifier.input_shape))
    labels = classifier.predict(x)
    here = x[0]
    others = x[labels != labels[0]]
    if len(others):
        gaps = np.abs(others - here).reshape(len(others), -1).max(axis=1)
        there = others[int(np.argmin(gaps))]
        steps = np.linspace(0.0, 1.0, 513)
        line = here + (there - here) * steps.reshape(-1, *[1] * here.ndim)
        change = steps[int(np.argmax(classifier.predict(line) != labels[0]))]
        here = here + (there - here) * max(0.0, change - reach / float(gaps.min()))
    value = np.clip(here, space.low, space.high).astype(np.float32)
    return Instance(value, int(classifier.predict(value)), seed, classifier.name, "toy")


def _dense(seed: int) -> Builder:
    return Builder(seed, (5,)).dense(8).apply("Relu").dense(6).apply("Relu")


def _conv(seed: int) -> Builder:
    return Builder(seed, (1, 4, 4)).conv(2).apply("Relu").flatten().dense(5).apply("Relu")


def _strided(seed: int) -> Builder:
    return Builder(seed, (2, 4, 4)).conv(2, kernel=3, stride=2, pad=1).apply("Relu").flatten().dense(4).apply("Relu")


def _batch_norm(seed: int) -> Builder:
    return Builder(seed, (1, 4, 4)).conv(2).batch_norm().apply("Relu").flatten().dense(4).batch_norm().apply("Relu")


def _average_pool(seed: int) -> Builder:
    return Builder(seed, (1, 5, 5)).conv(2, kernel=2).pool("AveragePool").apply("Relu").flatten().dense(4).apply("Relu")


def _residual(seed: int) -> Builder:
    builder = Builder(seed, (5,)).dense(6).apply("Relu")
    skip, shape = builder.at, builder.shape
    builder.dense(6).apply("Relu").dense(6)
    return builder.apply("Add", skip, shape=shape).apply("Relu")


def _concat(seed: int) -> Builder:
    builder = Builder(seed, (5,)).dense(4).apply("Relu")
    first, shape = builder.at, builder.shape
    builder.dense(4).apply("Relu")
    return builder.apply("Concat", first, shape=(builder.shape[0] + shape[0],), axis=1)


def _leaky(seed: int) -> Builder:
    return Builder(seed, (5,)).dense(7).apply("LeakyRelu", alpha=0.1).dense(5).apply("LeakyRelu", alpha=0.25)


def _clip(seed: int) -> Builder:
    return Builder(seed, (5,)).dense(5).clip(0.0, 1.0).dense(4).clip(-0.5, 0.5)


def _max_pool(seed: int) -> Builder:
    return Builder(seed, (1, 5, 5)).conv(2, kernel=2).pool("MaxPool").flatten().dense(4).apply("Relu")


_RECIPES: dict[str, Callable[[int], Builder]] = {
    "dense": _dense,
    "conv": _conv,
    "strided": _strided,
    "batchnorm": _batch_norm,
    "avgpool": _average_pool,
    "residual": _residual,
    "concat": _concat,
    "leaky": _leaky,
    "clip": _clip,
    "maxpool": _max_pool,
}
KINDS = tuple(_RECIPES)
