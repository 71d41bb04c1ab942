"""Pair planes: corners are those of the octagon, bounds hold in rational arithmetic, in nodes and in whole trees."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.test_nodes import problem
from tests.engine.tuned import PAIRED

from radii.bounds.planes import corners, least_offset, offset_charge
from radii.bounds.rounding import unit_of
from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.nodes import Nodes, fix
from radii.engine.pairing import with_planes, worth_planes
from radii.engine.slopes import certify, climb
from radii.engine.subproblem import Problem
from radii.engine.tree import Tree
from radii.evidence.log import TreeLog
from radii.problem import LINF, Classification
from radii.testing import exact_radius, random_instance, random_network

small = st.integers(-6, 6)


def paired(seed: int) -> tuple[Problem, Nodes, np.ndarray, list[np.ndarray]]:
    """A small problem with pair planes, its roots, and points of the ball with what the network gives there."""
    plain, x, values = problem(seed)
    plain = replace(plain, tuning=PAIRED)
    nodes = plain.roots()
    climb(plain, nodes, 2)
    asked, nodes = with_planes(plain, nodes)
    assert asked.planes is not None
    return asked, nodes, x, values


@given(st.lists(st.tuples(small, small), min_size=1, max_size=4), st.tuples(small, small), st.tuples(small, small))
def test_the_least_value_over_an_octagon_is_at_one_of_its_thirteen_points(some, c, s):
    x, y = ([float(p[k]) for p in some] for k in (0, 1))
    total, less = [a + b for a, b in zip(x, y)], [a - b for a, b in zip(x, y)]
    ends = [torch.tensor(end) for end in (min(x), max(x), min(y), max(y))]
    octagon = torch.tensor([min(total), max(total), min(less), max(less)])
    found = corners((ends[0], ends[1]), (ends[2], ends[3]), octagon)
    both = tuple(torch.tensor(float(k)) for k in c), tuple(torch.tensor(float(k)) for k in s)
    # All corners of an octagon with whole ends lie on a grid of halves.
    axis = torch.arange(-6.0, 6.5, 0.5)
    grid = torch.cartesian_prod(axis, axis)
    p, q = grid.T
    inside = (p >= min(x)) & (p <= max(x)) & (q >= min(y)) & (q <= max(y))
    inside &= (p + q >= min(total)) & (p + q <= max(total)) & (p - q >= min(less)) & (p - q <= max(less))
    truth = least_offset(grid[inside], *both)[0]
    assert float(least_offset(found, *both)[0]) == float(truth)


@given(st.integers(0, 2**32 - 1), st.sampled_from([torch.float32, torch.float64]))
def test_offsets_hold_in_rational_arithmetic(seed, dtype):
    rng = np.random.default_rng(seed)
    # Numbers of very different sizes; sums or differences that nearly cancel.
    base = rng.normal(size=3) * 10.0 ** rng.integers(-6, 7)
    other = rng.choice([-1.0, 1.0]) * base * (1.0 + 1e-7 * rng.normal(size=3)) + rng.choice([0.0, 1e-3]) * rng.normal()
    some = [(Fraction(a), Fraction(b)) for a, b in zip(base.tolist(), other.tolist())]

    def ends(values: list[Fraction]) -> list[float]:
        """The least and the largest, outward in the precision."""
        low, high = (torch.tensor([float(v)], dtype=dtype) for v in (min(values), max(values)))
        far = torch.tensor([torch.inf], dtype=dtype)
        return [float(torch.nextafter(low, -far)), float(torch.nextafter(high, far))]

    x, y = ends([a for a, _ in some]), ends([b for _, b in some])
    octagon = torch.tensor([ends([a + b for a, b in some]) + ends([a - b for a, b in some])], dtype=dtype)
    turn = [torch.tensor([[value]], dtype=dtype) for value in (*x, *y)]
    points = corners((turn[0], turn[1]), (turn[2], turn[3]), octagon[None])
    c, s = (tuple(torch.from_numpy(rng.normal(size=(1, 1))).to(dtype) for _ in range(2)) for _ in range(2))
    s = tuple(slope + rng.choice([0.0, 1.0]) * cost for slope, cost in zip(s, c))
    span = torch.tensor([max(map(abs, x)) + max(map(abs, y))], dtype=dtype)
    found = least_offset(points, c, s)[0] - offset_charge(c, s, span, unit_of(dtype), 1)
    cost, slope = ([Fraction(float(part)) for part in pair] for pair in (c, s))
    weights = [(Fraction(i, 4), Fraction(j, 4), Fraction(4 - i - j, 4)) for i in range(5) for j in range(5 - i)]
    for weight in weights:
        z = [sum((w * p[k] for w, p in zip(weight, some)), Fraction(0)) for k in range(2)]
        truth = sum(cost[k] * max(z[k], Fraction(0)) - slope[k] * z[k] for k in range(2))
        assert Fraction(float(found)) <= truth


@pytest.mark.parametrize("seed", range(6))
def test_nodes_with_planes_stay_below_their_objectives(seed):
    asked, nodes, x, values = paired(seed)
    rng = np.random.default_rng(seed)
    *before, outputs = values
    z = np.concatenate(before, 1)
    for _ in range(4):
        for tilts in (False, True):
            if tilts:  # any slopes are sound
                nodes.tilt = torch.from_numpy(rng.normal(size=tuple(nodes.tilt.shape))).float()
                certify(asked, nodes)
            else:
                climb(asked, nodes, 4)
            bound = x @ nodes.a.numpy().T + nodes.c.numpy()
            same = (z[:, None] * nodes.sign.numpy()[None] >= 0).all(2)
            truth = outputs[:, nodes.objective.numpy()]
            assert ((bound <= truth + 1e-9) | ~same).all()
        free = nodes.where(nodes.splittable)
        if not len(free):
            break
        undecided = (free.low < 0) & (free.high > 0)
        nodes = fix(free, (undecided * torch.from_numpy(rng.random(tuple(undecided.shape)))).argmax(1))


def test_planes_make_bounds_tighter_and_are_never_looser_to_begin_with():
    gains = []
    for seed in range(6):
        asked, nodes, _, _ = paired(seed)
        plain, some = replace(asked, planes=None), nodes.pick(torch.arange(len(nodes)))
        before, after = certify(plain, some), certify(asked, nodes)
        assert bool((after >= before - 1e-9).all())
        gains.append(float((climb(asked, nodes, 12) - climb(plain, some, 12)).max()))
    assert max(gains) > 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_octagons_hold_all_points(seed):
    asked, _, _, values = paired(seed)
    assert asked.planes is not None
    z = np.concatenate(values[:-1], 1)
    for which, octagon in zip(asked.planes.neurons, asked.planes.octagons):
        i, j = which.numpy().reshape(2, -1)
        assert len(set(which.tolist())) == len(which)
        ends = octagon.double().numpy()
        for value, at in ((z[:, i] + z[:, j], 0), (z[:, i] - z[:, j], 2)):
            assert (value >= ends[:, at] - 1e-9).all()
            assert (value <= ends[:, at + 1] + 1e-9).all()


def test_trees_that_are_small_deep_or_logged_have_none():
    plain, _, _ = problem(0)
    assert not worth_planes(plain)
    wide = replace(plain, tuning=PAIRED)
    assert worth_planes(wide)
    for log, hears in ((None, True), (TreeLog([], [], 0.3), False)):
        tree = Tree(wide, 0.3, log=log).started()
        assert len(tree.open)
        tree.step()
        assert (tree.problem.planes is not None) is hears


@pytest.mark.parametrize("seed", range(300, 324))
def test_radii_with_planes_hold_the_exact_ones(seed):
    domain = (0.0, 1.0) if seed % 2 else None
    network = random_network(seed, "dense", domain)
    instance = random_instance(network, seed)
    exact = exact_radius(network, instance.x, instance.label, LINF)
    engine = Native(effort="fast", tuning=PAIRED)
    found = engine.measure(network, [instance], Classification(), LINF, Budget(seconds=20), tolerance=1e-3, limit=3.0)
    assert found[0].lower is None or found[0].lower <= exact * (1 + 1e-9) + 1e-9
    assert found[0].status.value in ("closed", "robust", "misclassified")
