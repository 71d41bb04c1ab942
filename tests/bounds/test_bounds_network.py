"""Interval, backward and condensed bounds of whole networks hold what the networks do at points of the ball."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.balls import DOMAINS, NORMS, points, region

from radii.bounds.bound import bound, ends
from radii.bounds.intermediate import bound_root
from radii.bounds.interval import enclose
from radii.bounds.lowering import lower
from radii.bounds.tuning import Bounding
from radii.engine.condensed import condense, objectives
from radii.engine.cutting import refine
from radii.engine.slopes import climb
from radii.engine.subproblem import Problem
from radii.models.operators import Affine, Operator, Relu, Tanh
from radii.testing import KINDS, random_instance, random_network, relu_toy

SLACK = 1e-11  # rounding of the network's own float64 evaluation at the samples


def _curved(operator: Operator | None) -> Operator | None:
    return Tanh() if isinstance(operator, Relu) else operator


def setting(seed: int, kind: str, norm: str, domain: tuple | None, factor: float = 1.0):
    """A lowered network in float64, a ball, points of it and the values of all nodes there."""
    network = random_network(seed, kind, domain)
    instance = random_instance(network, seed)
    size = {"linf": 0.15, "l2": 0.4, "l1": 0.9}[norm] * factor
    graph = lower(network.graph).to(torch.float64)
    x = torch.from_numpy(points(instance.x, size, norm, domain, seed=seed))
    values = graph.values(x.reshape(-1, *graph.input_shape))
    return network, instance, graph, region(instance.x, size, norm, domain), x, values


@pytest.mark.parametrize("kind", KINDS)
def test_lowering_keeps_the_function(kind):
    network = random_network(3, kind)
    x = torch.rand((64, *network.input_shape), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(lower(network.graph)(x).flatten(1), network.graph.logits(x).flatten(1), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(DOMAINS))
@settings(max_examples=4)
def test_intervals_hold_every_value(kind, seed, norm, domain):
    _, _, graph, ball, _, values = setting(seed, kind, norm, domain)
    bounds = enclose(graph, ball)
    for low, high, value in zip(bounds.low, bounds.high, values):
        assert bool((value >= low - SLACK).all())
        assert bool((value <= high + SLACK).all())


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(DOMAINS))
@settings(max_examples=4)
def test_backward_bounds_hold_and_are_no_looser_than_intervals(kind, seed, norm, domain):
    network, _, graph, ball, x, values = setting(seed, kind, norm, domain)
    root, plain = bound_root(graph, ball), enclose(graph, ball)
    for index, lines in root.lines.items():
        before = graph.nodes[index].inputs[0]
        value = values[before].flatten(1)
        assert bool((value >= lines.low - SLACK).all())
        assert bool((value <= lines.high + SLACK).all())
        assert bool((lines.low >= plain.low[before].flatten(1) - 1e-12).all())
        # The lines themselves: relu lies between them on the whole interval.
        assert bool((value.clamp_min(0) >= lines.slope_low * value - SLACK).all())
        assert bool((value.clamp_min(0) <= lines.slope_high * value + lines.offset + SLACK).all())
    rows = torch.randn((1, 5, network.classes), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    linear = root.margins(rows)
    line = x @ linear.a[0].T + linear.shifted()[0]
    assert bool((line <= values[-1].flatten(1) @ rows[0].T + SLACK).all())
    assert bool((root.region.lowest(linear.a, linear.shifted())[0] <= line.amin(0) + SLACK).all())


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(DOMAINS))
@settings(max_examples=4)
def test_condensed_form_is_the_network_itself(kind, seed, norm, domain):
    network, instance, graph, ball, x, values = setting(seed, kind, norm, domain)
    root = bound_root(graph, ball)
    net = condense(root)
    true = [values[graph.nodes[k].inputs[0]].flatten(1)[:, which] for k, which in net.where]
    z = torch.cat(true, 1) if true else x.new_zeros((len(x), 0))
    delta = x - torch.from_numpy(instance.x.astype(np.float64).reshape(1, -1))
    again = delta @ net.neurons.a.T + net.neurons.b + z.clamp_min(0) @ net.neurons.m.T
    assert bool(((again - z).abs() <= net.neurons.slack + SLACK).all())
    assert float(net.neurons.slack.max() if net.size else 0.0) < 1e-11
    for first, last in net.blocks:  # strictly lower triangular in blocks
        assert not bool(net.neurons.m[first:last, first:].any())
    rows = torch.eye(network.classes, dtype=torch.float64)
    shift = torch.arange(network.classes, dtype=torch.float64)
    goals = objectives(root, net, rows, shift)
    value = delta @ goals.a.T + goals.b + z.clamp_min(0) @ goals.m.T
    assert bool(((value - (values[-1].flatten(1) - shift)).abs() <= goals.slack + SLACK).all())


@pytest.mark.parametrize("kind", ["dense", "residual", "leaky", "maxpool"])
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(DOMAINS))
@settings(max_examples=4)
def test_nodes_hold_every_point_that_meets_their_cut(kind, seed, norm, domain):
    network, instance, graph, ball, x, values = setting(seed, kind, norm, domain, factor=1.5)
    root = bound_root(graph, ball)
    net = condense(root)
    rows = torch.eye(network.classes, dtype=torch.float64)
    outputs = values[-1].flatten(1)
    shift = outputs.mean(0)  # so that about half of the points violate each objective
    problem = Problem.of(net, objectives(root, net, rows, shift))
    nodes = problem.roots()
    lowest = climb(problem, nodes, 6)
    goal = outputs - shift
    assert bool((lowest <= goal.amin(0) + SLACK).all())
    delta = x - torch.from_numpy(instance.x.astype(np.float64).reshape(1, -1))
    assert bool((delta @ nodes.a.T + nodes.c <= goal + SLACK).all())
    empty = refine(problem, nodes)
    true = [values[graph.nodes[k].inputs[0]].flatten(1)[:, which] for k, which in net.where]
    z = torch.cat(true, 1) if true else x.new_zeros((len(x), 0))
    for k in range(network.classes):
        inside = z[goal[:, k] <= 0]
        assert not len(inside) or not bool(empty[k])
        assert bool((inside >= nodes.low[k].double() - SLACK).all())
        assert bool((inside <= nodes.high[k].double() + SLACK).all())


def test_lowered_networks_keep_relu_only():
    for kind in KINDS:
        operators = [n.operator for n in lower(random_network(0, kind).graph).nodes[1:]]
        assert all(isinstance(o, (Affine, Relu)) for o in operators)


@pytest.mark.parametrize("smooth", [False, True])
def test_bounds_that_must_hurry_hold_and_are_looser(smooth):
    """Once the time is up no layer is bounded backwards, which is what takes long on deep networks."""
    _, _, graph, ball, x, values = setting(3, "dense", "linf", None)
    if smooth:
        graph = replace(graph, nodes=tuple(replace(n, operator=_curved(n.operator)) for n in graph.nodes))
        values = graph.values(x.reshape(-1, *graph.input_shape))
    unit = torch.eye(graph.nodes[-1].size, dtype=torch.float64)[None]
    found = []
    for go_on in (True, False):
        net = bound(graph, ball, go_on=lambda go_on=go_on: go_on)
        linear = net.margins(unit)
        lowest = ball.lowest(linear.a, linear.shifted())[0]
        assert bool((lowest <= values[-1].flatten(1).amin(0) + SLACK).all())
        low, high = ends(net)
        found.append(float((high - low).sum()))
    assert found[1] > found[0]


@pytest.mark.parametrize("smooth", [False, True])
def test_bounds_that_are_stopped_in_the_middle_of_a_layer_still_hold(smooth):
    """Time may end between any two groups of neurons: what was bounded stays, and nothing is begun after it."""
    network = relu_toy(5, (6, 12, 12, 3))
    graph = lower(network.graph).to(torch.float64)
    if smooth:
        graph = replace(graph, nodes=tuple(replace(n, operator=_curved(n.operator)) for n in graph.nodes))
    ball = region(random_instance(network, 5).x, 0.3)
    one_by_one = Bounding(coefficients=1, curve_coefficients=1)

    def stopped(allowed: int) -> tuple[torch.Tensor, int]:
        looks = itertools.count()
        low, high = ends(bound(graph, ball, go_on=lambda: next(looks) < allowed, tuning=one_by_one))
        return high - low, next(looks)

    whole, all_looks = stopped(10**9)
    widths = [stopped(allowed)[0] for allowed in range(all_looks)]
    for wider, narrower in pairwise([*widths, whole]):
        assert bool((wider >= narrower - SLACK).all())
    assert len({float(width.sum()) for width in widths}) > 4
