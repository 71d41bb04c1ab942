"""Every property on random tiny networks beside what brute force and exact cells show of them.

A case is one network, one norm, with or without a domain. `examine` asks for the radius and the reach of every property
and says of each whether it holds the truth, and whether it is closed. The truth is a fine grid of the ball; for
conditions on outputs it is exact (`exact_breach`), up to the rounding of its linear programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.decide import Budget, values_of
from radii.engine.native import Native
from radii.models import load_classifier
from radii.models.classifier import Classifier
from radii.problem import (
    Classification,
    Instance,
    Lipschitz,
    Norm,
    Probability,
    Property,
    Query,
    Radius,
    Reach,
    Rows,
    Standard,
    StrongClassification,
)
from radii.problem.quantity import Quantity
from radii.study.measures import drawn
from radii.testing._build import Builder
from radii.testing.exact import exact_breach

KINDS = ("relu", "leaky", "clip", "maxpool", "residual")
COMBINATIONS = tuple((norm, bounded) for norm in ("linf", "l2", "l1") for bounded in (True, False))
SIDES = {1: 4001, 2: 121, 3: 31, 4: 15}  # points of the grid per input
EPSILON, TOLERANCE, NEAR = 0.2, 0.02, 2e-3
POINTS = 64  # random inputs of every proven ball
NEAREST = 1e-6  # what the programs of the exact cells may be off, as a distance
LOSS = 2e-5  # what float32 outputs and the exact cells' programs may be off, relative

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Finding:
    """One question, whether its answer holds the truth and is closed, and what was seen."""

    network: str
    question: str
    true: bool
    closed: bool
    points: int  # random inputs of the proven ball that were looked at
    detail: str


@lru_cache(maxsize=8)
def network(seed: int, bounded: bool = True) -> Classifier:
    """A random network of 1 to 4 inputs and 1 (regression) to 3 outputs; the kinds take turns."""
    kind, inputs, outputs = KINDS[seed % 5], 1 + seed % 4, 1 + (seed // 5) % 3
    builder = Builder(seed, (inputs,))
    if kind == "maxpool":
        shape = builder.constant(np.array([-1, 2, 2, 2]))
        builder.dense(8).apply("Reshape", shape, shape=(2, 2, 2)).pool("MaxPool").flatten().dense(4).apply("Relu")
    elif kind == "clip":
        builder.dense(4).clip(0.0, 1.0).dense(4).clip(-0.5, 0.5)
    elif kind == "residual":
        builder.dense(4).apply("Relu")
        skip = builder.at
        builder.dense(4).apply("Relu").dense(4).apply("Add", skip).apply("Relu")
    else:
        for width in (5, 4):
            builder.dense(width)
            builder.apply("Relu") if kind == "relu" else builder.apply("LeakyRelu", alpha=0.2)
    model = builder.dense(outputs).balance().model()
    return load_classifier(model, domain=(0.0, 1.0) if bounded else None, name=f"{kind}-{inputs}-{outputs}-{seed}")


def instance_of(net: Classifier, seed: int) -> Instance:
    """A random input near enough to the domain's ends that these count, labelled as the network sees it."""
    x = np.random.default_rng(seed).uniform(0.05, 0.95, net.input_shape).astype(np.float32)
    return Instance(x, int(np.argmax(net(x))), seed)


def grid(net: Classifier, instance: Instance, norm: Norm, epsilon: float) -> tuple[NDArray[np.float32], Vector]:
    """Inputs of the ball, as float32 has them, and their distances."""
    x = instance.x.astype(np.float64)
    side = np.linspace(-epsilon, epsilon, SIDES[x.size])
    moves = np.stack(np.meshgrid(*[side] * x.size, indexing="ij"), -1).reshape(-1, x.size)
    if norm.name != "linf":  # the cube drawn onto the ball, so that no point is lost
        far = np.linalg.norm(moves, ord=norm.order, axis=1)
        moves = moves * (np.abs(moves).max(1) / np.where(far > 0, far, 1.0))[:, None]
    points = np.clip(x + moves, net.domain.low, net.domain.high).astype(np.float32)
    return points, np.linalg.norm(points.astype(np.float64) - x, ord=norm.order, axis=1)


@dataclass(frozen=True, eq=False)
class Seen:
    """A quantity on the grid of one ball."""

    quantity: Quantity
    values: Vector
    far: Vector

    @staticmethod
    def of(net: Classifier, instance: Instance, asked: Property, points: NDArray[np.float32], far: Vector) -> Seen:
        """The quantity of a property at all points; slopes very near the centre are mostly rounding."""
        of = "probabilities" if asked.speaks_of == "probabilities" else "outputs"
        center = values_of(net, of, net.reference(instance.x[None])[0])
        quantity = asked.quantity(net.classes, instance.label, center)
        values = quantity.of_values(values_of(net, of, net.reference(points)), far)
        if quantity.per_distance:
            values = np.where(far > 0.1 * EPSILON, values, -np.inf)
        return Seen(quantity, np.asarray(values), far)

    def top(self, size: float) -> float:
        """The largest value within a distance."""
        return float(self.values[self.far <= size].max())

    def slack(self, value: float) -> float:
        """What rounding may add to a value; a slope divides it by a small distance."""
        return LOSS * (1.0 + abs(value)) * (10.0 if self.quantity.per_distance else 1.0)

    def nearest(self, threshold: float) -> float:
        """The distance of the nearest point that reaches a threshold."""
        return float(self.far[self.values >= threshold].min(initial=math.inf))


def properties(net: Classifier, instance: Instance, points: NDArray[np.float32], far: Vector) -> list[Property]:
    """One property of each kind, with thresholds that something about half-way out of the ball reaches."""

    def level(asked: Property) -> float:
        return Seen.of(net, instance, asked, points, far).top(0.6 * EPSILON)

    outputs = net(instance.x)
    weights = np.linspace(1.0, -0.5, net.classes)
    found: list[Property] = [
        Standard(max(level(Standard(1.0)), 1e-3)),
        Standard(max(level(Standard(1.0, norm="l2")), 1e-3), norm="l2"),
        Lipschitz(max(1.1 * level(Lipschitz(1.0)), 1e-3)),
        StrongClassification(-level(StrongClassification(0.0))),
        Rows((tuple(weights),), (float(weights @ outputs) - 0.2,)),
    ]
    if net.classes > 1:
        sure = -level(StrongClassification(0.5, "probability"))
        found += [
            Classification(),
            Probability(float(np.clip(level(Probability(0.5)), 1e-3, 0.99))),
            StrongClassification(float(np.clip(sure, 0.01, 0.99)), "probability"),
        ]
    return found


def examine(seed: int, norm: str, bounded: bool, seconds: float = 10.0) -> Iterator[Finding]:
    """The radius and the reach of every property of one network."""
    net = network(seed, bounded)
    instance, size = instance_of(net, seed), Norm.of(norm)
    points, far = grid(net, instance, size, EPSILON)
    for asked in properties(net, instance, points, far):
        seen = Seen.of(net, instance, asked, points, far)
        where = f"{asked} in {norm}, {'[0, 1]' if bounded else 'no domain'}"
        radius = Native().measure(net, [instance], asked, size, Budget(seconds), tolerance=NEAR, limit=EPSILON)[0]
        yield _radius(net, instance, asked, size, seen, radius, where)
        reach = Native().reach(net, [instance], asked, size, EPSILON, Budget(seconds), tolerance=TOLERANCE)[0]
        yield _reach(net, instance, size, seen, reach, where)


def _radius(
    net: Classifier, instance: Instance, asked: Property, norm: Norm, seen: Seen, found: Radius, where: str
) -> Finding:
    name = type(asked).threshold
    threshold = 0.0 if name is None else float(seen.quantity.reported(getattr(asked, name)))
    lower = 0.0 if found.lower is None else found.lower
    nearest = seen.nearest(threshold + seen.slack(threshold))
    true, truth = lower <= nearest, nearest
    if asked.speaks_of in ("classes", "outputs") and np.isinf(seen.quantity.order):
        # A threshold that the outputs just touch, as where a Clip is flat, is reached or not by rounding alone.
        slack = seen.slack(threshold)
        before, truth = (_exact(net, instance, norm, seen.quantity, threshold + sign * slack) for sign in (-1, 1))
        true = true and lower <= truth + NEAREST
        true = true and (found.upper is None or found.status == "misclassified" or found.upper >= before - NEAREST)
    if lower > 0:  # random inputs of the proven ball, beside those of the grid
        size = Query(instance, lower, asked, norm)
        points = drawn(net, size, POINTS, np.random.default_rng(instance.index))
        far = np.linalg.norm(points.astype(np.float64) - instance.x.reshape(-1), ord=norm.order, axis=1)
        there = Seen.of(net, instance, asked, points, far)
        true = true and there.nearest(threshold + seen.slack(threshold)) == math.inf
    inside = POINTS if lower > 0 else 0
    closed = found.status in ("closed", "robust", "misclassified") or lower >= EPSILON
    detail = f"[{found.lower}, {found.upper}] {found.status}, brute force {nearest:.6g}, exact {truth:.6g}"
    return Finding(net.name, f"radius of {where}", true, closed, inside, detail)


def _reach(net: Classifier, instance: Instance, norm: Norm, seen: Seen, found: Reach, where: str) -> Finding:
    report = seen.quantity.reported
    proven = math.inf if found.proven is None else float(report(found.proven))
    witnessed = -math.inf if found.witnessed is None else float(report(found.witnessed))
    top = seen.top(EPSILON)
    slack = seen.slack(top)
    true = proven >= top - slack and witnessed <= proven + slack
    if seen.quantity.of == "outputs" and not seen.quantity.per_distance and np.isinf(seen.quantity.order):
        true = true and not _exact(net, instance, norm, seen.quantity, proven + slack) < EPSILON * (1 - 1e-6)
        true = true and _exact(net, instance, norm, seen.quantity, witnessed - slack) <= EPSILON * (1 + 1e-6)
    detail = f"witnessed {witnessed:.6g}, proven {proven:.6g}, {found.status}, brute force {top:.6g} {found.note}"
    return Finding(net.name, f"reach of {where}", true, found.status == "closed", 0, detail)


def _exact(net: Classifier, instance: Instance, norm: Norm, quantity: Quantity, threshold: float) -> float:
    """The distance of the nearest input whose outputs reach a threshold of a quantity."""
    if not math.isfinite(threshold):
        return 0.0 if threshold < 0 else math.inf
    return exact_breach(net, instance.x, quantity.exceeding(threshold), norm).distance


def stated(question: Any) -> bool:
    """Whether the pages say that such a question may stay open: norms of outputs that rows only enclose."""
    return "norm=l2" in str(question) or "norm=l1" in str(question)
