"""The checker's own parts: its lowering is the network, its rows and bounds hold at points of the ball."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from radii.evidence.ball import Ball
from radii.evidence.lowering import lowered
from radii.evidence.sweep import rule, sweep
from radii.evidence.walk import Walk
from radii.problem import Domain
from radii.testing import KINDS, random_instance, random_network


def points(ball: Ball, count: int = 300) -> torch.Tensor:
    """Perturbations in the ball, some of them on its edge."""
    generator = torch.Generator().manual_seed(0)
    order = {"linf": torch.inf, "l2": 2.0, "l1": 1.0}[ball.norm]
    raw = torch.randn((count, len(ball.center)), generator=generator, dtype=torch.float64)
    raw[::3] = raw[::3].sign()
    raw[1::5] *= torch.rand(raw[1::5].shape, generator=generator) < 0.2
    scale = torch.linalg.vector_norm(raw, ord=order, dim=1, keepdim=True).clamp_min(1e-9)
    length = torch.where(torch.rand((count, 1), generator=generator) < 0.5, 1.0, 0.7)
    return torch.minimum(torch.maximum(raw / scale * ball.size * length, -ball.down), ball.up)


@pytest.mark.parametrize("kind", KINDS)
def test_lowering_is_the_network(kind):
    network = random_network(3, kind)
    net = lowered(network.graph)
    x = torch.rand((64, *network.input_shape), dtype=torch.float64)
    wanted = network.graph.logits(x).flatten(1)
    assert torch.allclose(net.graph(x).flatten(1).clamp(net.low, net.high), wanted, atol=1e-12)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_neurons_holds(kind, norm):
    """Intervals, rows and sweeps with any slopes and multipliers hold at every point of the ball."""
    network = random_network(1, kind)
    center = torch.from_numpy(random_instance(network, 1).x.astype(np.float64).ravel())
    ball = Ball.around(center, norm, {"linf": 0.1, "l2": 0.25, "l1": 0.5}[norm], network.domain)
    graph = lowered(network.graph).graph
    walk = Walk(graph, ball)
    delta = points(ball)
    values = [value.flatten(1) for value in graph.values((center + delta).reshape(-1, *graph.input_shape))]
    generator = torch.Generator().manual_seed(1)
    for relu in walk.relus:
        layer = walk.open(relu)
        z = values[graph.nodes[relu].inputs[0]]
        assert bool((layer.low <= z + 1e-12).all())
        assert bool((z - 1e-12 <= layer.high).all())
        walk.close(layer, layer.undecided)
    rows = walk.outputs(torch.eye(network.classes, dtype=torch.float64))
    columns = [values[relu][:, walk.network.columns[relu][1]] for relu in walk.relus]
    relus = torch.cat(columns, 1)
    exact = delta @ rows.a.T + rows.b + relus @ rows.m.T
    assert torch.allclose(exact, values[-1], atol=1e-11)
    net, count = walk.neurons, network.classes
    ends = net.low.expand(count, -1), net.high.expand(count, -1)
    for slopes, pulls in (
        (rule(*ends), None),
        (torch.rand(ends[0].shape, generator=generator), torch.randn(ends[0].shape)),
    ):
        bound = sweep(net, net.charged(rows), ends, slopes.double(), None if pulls is None else pulls.double())
        assert bool((delta @ bound.a.T + bound.c <= values[-1] + 1e-12).all())
        assert bool((bound.least(ball) <= (delta @ bound.a.T + bound.c).amin(0) + 1e-12).all())


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_least_values_are_safe_and_nearly_exact(norm):
    generator = torch.Generator().manual_seed(2)
    center = torch.rand(7, generator=generator, dtype=torch.float64)
    ball = Ball.around(center, norm, 0.4, Domain())
    a = torch.randn((50, 7), generator=generator, dtype=torch.float64)
    c = torch.randn(50, generator=generator, dtype=torch.float64)
    least = ball.least(a, c, a.abs() @ ball.reach)
    sampled = (points(ball, 20000) @ a.T + c).amin(0)
    assert bool((least <= sampled + 1e-12).all())
    assert bool((least >= sampled - 0.25).all())


def test_rounding_is_charged():
    """Against rational arithmetic: coefficients of very different sizes that nearly cancel."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        d = 40
        a = rng.normal(size=d) * 10.0 ** rng.integers(-8, 9, size=d)
        center = torch.from_numpy(rng.random(d))
        ball = Ball.around(center, "linf", float(rng.random()) * 0.3, Domain())
        row = torch.from_numpy(a)[None]
        exact = sum(
            min(-Fraction(w) * Fraction(float(down)), Fraction(w) * Fraction(float(up)))
            for w, down, up in zip(a.tolist(), ball.down, ball.up, strict=True)
        )
        c = torch.tensor([-float(exact)], dtype=torch.float64)
        least = ball.least(row, c, (row.abs() @ ball.reach))
        assert Fraction(float(least)) <= exact + Fraction(float(c))
