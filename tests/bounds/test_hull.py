"""Hulls of first-layer neurons: lines that hold in rational arithmetic at every corner, with and without numba."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.bounds.balls import region
from tests.engine.test_nodes import problem

from radii.bounds.activations import MaskedLines
from radii.bounds.hull import few_columns, offsets, through_hulls
from radii.engine.slopes import certify, climb
from radii.engine.subproblem import worth_hulls
from radii.engine.sweep import sweep
from radii.engine.tree import Tree
from radii.evidence.log import TreeLog

D, N = 5, 4


def asked(seed: int):
    """Weights of very different sizes that nearly cancel, over a box that the domain cuts off on some sides."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(N, D)) * 10.0 ** rng.integers(-6, 7, size=(N, D))
    w[:, 1] = -w[:, 0] * (1.0 + 1e-15 * rng.normal(size=N))
    b = rng.normal(size=N) * np.abs(w).max(1) * 10.0 ** rng.integers(-3, 1, size=N)
    slack = np.abs(b) * rng.choice([0.0, 1e-13])
    ball = region(rng.random(D), 0.3, domain=(0, 1)).shifted()
    return rng, ball, tuple(torch.from_numpy(part) for part in (w, b, slack))


def corners(ball):
    down, up = (side[0].tolist() for side in ball.box())
    return [tuple(Fraction(x) for x in corner) for corner in product(*((-d, u) for d, u in zip(down, up)))]


def dot(row, x):
    return sum((Fraction(a) * b for a, b in zip(row, x)), Fraction(0))


@given(st.integers(0, 2**32 - 1))
def test_any_slopes_have_an_offset_that_holds_at_every_corner(seed):
    rng, ball, (w, b, slack) = asked(seed)
    share = rng.uniform(-0.5, 1.5, size=(2, N, D)) * rng.choice([1.0, 1e-9, 0.0])
    slopes = torch.from_numpy(share) * w
    found = offsets(ball, slopes, w, b, slack)
    for o, i in product(range(2), range(N)):
        for x in corners(ball):  # line − relu is concave, so it is least at a corner
            z = dot(w[i].tolist(), x) + Fraction(float(b[i])) + Fraction(float(slack[i]))
            assert dot(slopes[o, i].tolist(), x) + Fraction(float(found[o, i])) >= max(z, Fraction(0))


@pytest.mark.parametrize(("compiled", "few"), [(True, False), (False, False), (True, True)])
@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(0, 4))
def test_bounds_through_hulls_hold_at_every_corner(compiled, few, seed, rounds):
    rng, ball, rows = asked(seed)
    w, b, slack = rows
    if few:
        w[torch.from_numpy(rng.random((N, D)) < 0.5)] = 0.0
        w[:, rng.integers(D)] = 0.0
    columns = few_columns(w, 1.0) if few else None
    assert (columns is not None) == few
    cost = torch.from_numpy(rng.exponential(size=(2, N)) * rng.integers(0, 2, size=(2, N)))
    # x has nearly what the neurons take away from it: everything cancels.
    a = cost @ w * torch.from_numpy(rng.uniform(0.0, 1.0 + 1e-9, size=(2, D)))
    c = torch.from_numpy(rng.normal(size=2))
    kernel = 0 if compiled else 10**9
    slopes, least = through_hulls(ball, rows, cost, (a, c), rounds, kernel, columns)
    for o in range(2):
        for x in corners(ball):
            values = [
                max(dot(w[i].tolist(), x) + Fraction(float(b[i])) + Fraction(float(slack[i])), Fraction(0))
                for i in range(N)
            ]
            truth = dot(a[o].tolist(), x) + Fraction(float(c[o])) - dot(cost[o].tolist(), values)
            assert dot(slopes[o].tolist(), x) + Fraction(float(least[o])) <= truth


def test_few_columns_name_every_input_of_a_neuron_once():
    w = torch.tensor([[0.0, 2.0, 0.0, torch.nan], [0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    found = few_columns(w, 0.5)
    assert found.shape == (3, 2)
    assert sorted(found[0].tolist()) == [1, 3]
    for row, columns in zip(w, found):
        rest = row.clone()
        rest[columns] = 0.0
        assert not bool((rest != 0).any())
        assert int((row[columns] != 0).sum()) == int((row != 0).sum())  # none is counted twice
    assert few_columns(w, 0.4) is None
    assert few_columns(torch.ones((2, 3)), 1.0) is None
    assert few_columns(w[:0], 1.0) is None


@given(st.integers(0, 2**32 - 1))
def test_bounds_by_few_columns_are_those_by_all(seed):
    rng = np.random.default_rng(seed)
    w = torch.from_numpy(rng.normal(size=(N, 12)) * (rng.random((N, 12)) < 0.3))
    w[:, 3] = 0.0
    rows = w, torch.from_numpy(rng.normal(size=N)), torch.zeros(N).double()
    ball = region(rng.random(12), 0.3, domain=(0, 1)).shifted()
    cost = torch.from_numpy(rng.exponential(size=(3, N)) * rng.integers(0, 2, size=(3, N)))
    linear = torch.from_numpy(rng.normal(size=(3, 12))), torch.from_numpy(rng.normal(size=3))
    ways = (0, None), (10**9, None), (0, few_columns(w, 1.0))
    values = [
        ball.lowest(*(part[None] for part in through_hulls(ball, rows, cost, linear, 6, *way)))[0] for way in ways
    ]
    for other in values[1:]:
        assert torch.allclose(values[0], other, atol=1e-4)


def test_a_hull_knows_which_inputs_a_neuron_has():
    # 2·x1 − relu(x1 + x2) on |x| ≤ 1 is least at x1 = −1: −2 at x2 ≤ 1, as relu(−1 + 1) = 0. A triangle says −3 + …
    ball = region(np.zeros(2), 1.0).shifted()
    rows = torch.ones((1, 2), dtype=torch.float64), torch.zeros(1, dtype=torch.float64), torch.zeros(1).double()
    a, c = torch.tensor([[2.0, 0.0]]).double(), torch.zeros(1).double()
    found = through_hulls(ball, rows, torch.ones((1, 1)).double(), (a, c), 6)
    assert float(ball.lowest(found[0][None], found[1][None])) == pytest.approx(-2.0, abs=1e-6)
    triangle = ball.lowest((a - 0.5)[None], (c - 1.0)[None])
    assert float(triangle) == pytest.approx(-3.0)


def test_numbers_that_are_none_prove_nothing():
    ball = region(np.zeros(2), 1.0).shifted()
    one = torch.ones(1, dtype=torch.float64)
    for bad in (torch.inf, torch.nan):
        for place in range(4):
            w, b, cost, a = torch.ones((1, 2)).double(), one.clone(), one[None].clone(), torch.ones((1, 2)).double()
            (w, b, cost, a)[place].view(-1)[0] = bad
            found = through_hulls(ball, (w, b, 0.0 * one), cost, (a, 100.0 * one), 3)
            assert not bool(ball.lowest(found[0][None], found[1][None]) > 0)


@pytest.mark.parametrize("seed", range(4))
def test_nodes_bounded_through_hulls_stay_below_their_objectives(seed):
    plain, x, values = problem(seed)
    asked = plain.with_hulls()
    assert asked.hulls
    lowest = []
    for one in (plain, asked):
        nodes = one.roots()
        lowest.append(climb(one, nodes, 4))
        bound = torch.from_numpy(x) @ nodes.a.T + nodes.c
        assert bool((bound.numpy() <= values[-1] + 1e-9).all())
    assert bool((lowest[1] >= lowest[0]).all())
    assert float((lowest[1] - lowest[0]).max()) > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_so_many_neurons_are_hulled_as_are_asked_for_and_those_cost_most(seed):
    hulled, (whole, x, values) = 1, problem(seed)
    tuning = replace(whole.tuning, trees=replace(whole.tuning.trees, hulled=hulled))
    some, net = replace(whole, tuning=tuning, hulls=True), whole.net
    nodes = some.roots()
    plain = climb(whole, nodes, 4)
    lines = MaskedLines.of(nodes.low.double(), nodes.high.double())
    asked = net, some.fine, nodes, lines, *some.asked(some.fine, nodes)
    found, everything = (sweep(*asked, leaves).left for leaves in (hulled, net.size))
    assert bool((everything != 0).sum(1).gt(hulled).any())
    n = net.blocks[0][1]
    for part, total, lift in zip(found, everything, lines.lift[:, :n]):
        chosen = part != 0
        assert int(chosen.sum()) == min(hulled, int((total != 0).sum()))
        assert torch.equal(part, total * chosen)
        loss = -total * lift
        if chosen.any() and not chosen.all():
            assert float(loss[chosen].min()) >= float(loss[~chosen].max())
    lowest = certify(some, nodes)
    assert bool((lowest >= plain).all())
    assert bool((torch.from_numpy(x) @ nodes.a.T + nodes.c <= torch.from_numpy(values[-1]) + 1e-9).all())


def test_trees_use_hulls_where_they_pay_and_logs_hear_of_it():
    plain, _, _ = problem(0)
    assert Tree(plain, 0.3).problem.hulls
    log = TreeLog([], [], 0.3)
    assert Tree(plain, 0.3, log=log).problem.hulls
    assert log.hulls
    tuning = replace(plain.tuning, trees=replace(plain.tuning.trees, hull_neurons=plain.net.blocks[0][1] - 1))
    assert not Tree(replace(plain, tuning=tuning), 0.3, log=log).problem.hulls
    assert not log.hulls


def test_many_neurons_get_hulls_where_each_sees_few_inputs():
    plain, _, _ = problem(0)
    net, first = plain.net, plain.net.blocks[0][1]
    trees = replace(plain.tuning.trees, hull_neurons=0, hull_inputs=0.5)
    a = net.neurons.a.clone()
    a[:first, 2:] = 0.0
    thin = replace(net, neurons=replace(net.neurons, a=a))
    assert not worth_hulls(net, trees)
    assert worth_hulls(thin, trees)
    assert not worth_hulls(thin, replace(trees, hull_inputs=0.0))
    assert not worth_hulls(replace(thin, region=region(np.zeros(a.shape[1]), 0.3, "l2").shifted()), trees)
