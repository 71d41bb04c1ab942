"""Bounds from the condensed network of a larger ball hold, and are about as tight as those of the graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.balls import DOMAINS, NORMS, points, region

from radii.bounds.intermediate import bound_root
from radii.bounds.lowering import lower
from radii.engine.condensed import CondensedRoot, condense, objectives
from radii.engine.smaller_ball import bound_again
from radii.testing import KINDS, random_instance, random_network

SLACK = 1e-11  # rounding of the network's own float64 evaluation at the samples
SIZES = {"linf": 0.2, "l2": 0.6, "l1": 1.4}


def rooted(graph, ball) -> CondensedRoot:
    """A root and its condensed network."""
    root = bound_root(graph, ball)
    return CondensedRoot(root, condense(root))


def setting(seed: int, kind: str, norm: str, domain: tuple | None, part: float):
    """A network, the root of a ball, a smaller ball, points of that and the values of all nodes there."""
    network = random_network(seed, kind, domain)
    instance = random_instance(network, seed)
    graph = lower(network.graph).to(torch.float64)
    size = SIZES[norm]
    x = torch.from_numpy(points(instance.x, part * size, norm, domain, seed=seed))
    values = graph.values(x.reshape(-1, *graph.input_shape))
    large = rooted(graph, region(instance.x, size, norm, domain))
    delta = x - torch.from_numpy(instance.x.astype(np.float64).reshape(1, -1))
    return graph, large, region(instance.x, part * size, norm, domain), delta, values


def holds(graph, ball: CondensedRoot, delta, values) -> None:
    """The bounds hold at all points, and the condensed network is the network there."""
    root, net = ball.root, ball.net
    for index, lines in root.lines.items():
        value = values[graph.nodes[index].inputs[0]].flatten(1)
        assert bool((value >= lines.low - SLACK).all())
        assert bool((value <= lines.high + SLACK).all())
    assert net.size == root.undecided
    assert all(
        bool(root.lines[relu].unstable[0, which].all()) and len(which) == b - a
        for (relu, which), (a, b) in zip(net.where, net.blocks)
    )
    true = [values[graph.nodes[k].inputs[0]].flatten(1)[:, which] for k, which in net.where]
    z = torch.cat(true, 1) if true else delta.new_zeros((len(delta), 0))
    again = delta @ net.neurons.a.T + net.neurons.b + z.clamp_min(0) @ net.neurons.m.T
    assert bool(((again - z).abs() <= net.neurons.slack + SLACK).all())
    assert float(net.neurons.slack.max() if net.size else 0.0) < 1e-10
    for first, last in net.blocks:
        assert not bool(net.neurons.m[first:last, first:].any())
    rows = torch.eye(values[-1][0].numel(), dtype=torch.float64) - 0.5
    goals = objectives(root, net, rows, rows.sum(1))
    value = delta @ goals.a.T + goals.b + z.clamp_min(0) @ goals.m.T
    true_value = values[-1].flatten(1) @ rows.T - rows.sum(1)
    assert bool(((value - true_value).abs() <= goals.slack + SLACK).all())


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(DOMAINS), st.sampled_from((0.3, 0.8, 1.0)))
@settings(max_examples=6)
def test_bounds_and_the_condensed_network_hold_on_smaller_balls(kind, seed, norm, domain, part):
    graph, large, small, delta, values = setting(seed, kind, norm, domain, part)
    once = bound_again(large, small, hulls=True)
    holds(graph, once, delta, values)
    holds(graph, bound_again(once, small), delta, values)  # and again, from what was multiplied out already


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10**6), st.sampled_from(NORMS))
@settings(max_examples=4)
def test_what_is_known_is_kept_and_used(kind, seed, norm):
    graph, large, small, delta, values = setting(seed, kind, norm, None, 0.5)
    fresh = bound_root(graph, small)
    known = {k: (v.low, v.high) for k, v in fresh.lines.items()}
    frozen = bound_again(large, small, known, frozen=set(fresh.lines))
    tighter = bound_again(large, small, known)
    for k, (low, high) in known.items():
        before, kept, found = (ball.root.lines[k] for ball in (large, frozen, tighter))
        which = before.unstable
        assert torch.equal(kept.low[which], torch.maximum(low, before.low)[which])
        assert torch.equal(kept.high[which], torch.minimum(high, before.high)[which])
        assert bool((found.low >= kept.low).all())
        assert bool((found.high <= kept.high).all())
    holds(graph, frozen, delta, values)
    holds(graph, tighter, delta, values)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_about_as_tight_as_those_of_the_graph(kind):
    wide, narrow = 0.0, 0.0
    for seed in range(8):
        graph, large, small, _, _ = setting(seed, kind, "linf", (0.0, 1.0), 0.6)
        known = {k: (v.low, v.high) for k, v in large.root.lines.items()}
        fresh, again = bound_root(graph, small, known), bound_again(large, small).root
        which = {k: v.unstable for k, v in large.root.lines.items()}
        wide += sum(float((v.high - v.low)[which[k]].sum()) for k, v in again.lines.items())
        narrow += sum(float((v.high - v.low)[which[k]].sum()) for k, v in fresh.lines.items())
    assert wide <= 1.05 * narrow  # intervals from the graph are a little tighter at times
