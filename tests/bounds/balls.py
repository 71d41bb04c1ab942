"""Points of a ball ∩ domain, and exact one-dimensional networks: what the tests of bounds measure against."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from radii.bounds.region import Region
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Relu
from radii.problem import Domain, Norm

NORMS = ("linf", "l2", "l1")
DOMAINS = (None, (0.0, 1.0))


def region(x: Any, epsilon: float, norm: str = "linf", domain: Any = None) -> Region:
    """The ball of one input."""
    center = torch.as_tensor(np.asarray(x, dtype=np.float64)).reshape(1, -1)
    return Region.around(center, torch.tensor([epsilon], dtype=torch.float64), Norm.of(norm), Domain.of(domain))


def points(x: Any, epsilon: float, norm: str, domain: Any, count: int = 200, seed: int = 0) -> np.ndarray:
    """Points of the ball ∩ domain, flat: many on its surface, where extreme values are."""
    rng = np.random.default_rng(seed)
    center = np.asarray(x, dtype=np.float64).ravel()
    d = len(center)
    if norm == "linf":
        steps = np.where(rng.random((count, d)) < 0.5, -1.0, 1.0)
        steps[count // 2 :] *= rng.random((count - count // 2, d))
    elif norm == "l2":
        steps = rng.normal(size=(count, d))
        steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    else:
        steps = rng.dirichlet(np.full(d, 0.3), size=count) * np.where(rng.random((count, d)) < 0.5, -1.0, 1.0)
        steps[: min(d, count)] = np.eye(d)[: min(d, count)]
    steps[::3] *= rng.random((len(steps[::3]), 1))
    steps[-1] = 0.0
    space = Domain.of(domain)
    return np.clip(center + steps * (epsilon * (1 - 1e-12)), space.low, space.high)


def dense_graph(layers: list[tuple[Any, Any]]) -> Graph:
    """A fully connected ReLU network in float64 from (weight, bias) pairs."""
    nodes = [Node(None, (), (np.shape(layers[0][0])[1],))]
    for k, (weight, bias) in enumerate(layers):
        w, b = torch.tensor(weight, dtype=torch.float64), torch.tensor(bias, dtype=torch.float64)
        nodes.append(Node(Dense(w, b), (len(nodes) - 1,), (len(b),)))
        if k < len(layers) - 1:
            nodes.append(Node(Relu(), (len(nodes) - 1,), (len(b),)))
    return Graph(tuple(nodes))


Line = list[tuple[Fraction, list[Fraction]]]  # a piecewise-linear curve: (input, values) at every kink


def exact_curves(layers: list[tuple[Any, Any]], low: Fraction, high: Fraction) -> list[Line]:
    """Every pre-activation of a network of one input on an interval, in rational arithmetic, layer by layer."""
    curve: Line = [(low, [low]), (high, [high])]
    found = []
    for weight, bias in layers:
        w = [[Fraction(float(v)) for v in row] for row in weight]
        b = [Fraction(float(v)) for v in bias]
        curve = [(t, [sum((p * q for p, q in zip(row, y)), c) for row, c in zip(w, b)]) for t, y in curve]
        curve = _with_kinks(curve)
        found.append(curve)
        curve = [(t, [max(v, Fraction(0)) for v in y]) for t, y in curve]
    return found


def _with_kinks(curve: Line) -> Line:
    """The same curve with a point wherever a value changes its sign."""
    full = [curve[0]]
    for (t0, y0), (t1, y1) in pairwise(curve):
        cuts = {t0 + (t1 - t0) * a / (a - b) for a, b in zip(y0, y1) if (a < 0 < b) or (b < 0 < a)}
        for t in sorted(cuts):
            part = (t - t0) / (t1 - t0)
            full.append((t, [a + part * (b - a) for a, b in zip(y0, y1)]))
        full.append((t1, y1))
    return full


def least(curve: Line, row: Any, constant: float = 0.0) -> Fraction:
    """The exact least value of row·values + constant on a curve."""
    exact = [Fraction(float(v)) for v in row]
    return min(sum((a * b for a, b in zip(exact, y)), Fraction(float(constant))) for _, y in curve)
