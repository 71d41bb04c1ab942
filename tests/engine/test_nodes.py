"""Lines of single neurons, and bounds of hidden ones under cuts: what the fast forms of both must still do."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.bounds.balls import dense_graph, points, region

from radii.bounds.activations import MaskedLines, least_width
from radii.bounds.intermediate import bound_root
from radii.bounds.rounding import U32
from radii.engine.condensed import condense, objectives, spanning
from radii.engine.cutting import positions, refine
from radii.engine.matrices import Matrices, factor_charges
from radii.engine.slopes import climb
from radii.engine.sparse import SparseRows, sparse_rows
from radii.engine.subproblem import Problem
from radii.engine.sweep import both_ends, hidden_rows
from radii.engine.tuning import DEFAULT

WIDTHS = (6, 9, 8, 7, 3)
ENDS = st.one_of(st.floats(-1e4, 1e4, width=32), st.sampled_from([0.0, 1e-30, -1e-30, 2.0**-120, -(2.0**-120)]))


@given(ENDS, ENDS, st.sampled_from([torch.float32, torch.float64]), st.floats(0, 1))
def test_lines_of_a_neuron_hold_at_both_ends(a, b, dtype, alpha):
    low, high = min(a, b), max(a, b)
    found = MaskedLines.of(torch.tensor([low], dtype=dtype), torch.tensor([high], dtype=dtype))
    alpha = torch.tensor([alpha], dtype=dtype)
    unstable, steep, lift, floor = (
        Fraction(float(part)) for part in (found.unstable, found.steep, found.lift, found.floor(alpha))
    )
    assert unstable == (low < 0 < high)
    for z in (Fraction(low), Fraction(high), Fraction(0) if low <= 0 <= high else Fraction(low)):
        truth = max(z, Fraction(0))
        tiny = Fraction(least_width(dtype))  # for intervals that are thinner than that
        assert floor * z <= truth + tiny
        assert steep * z + lift >= truth - tiny
    if not unstable:
        assert lift == 0
        assert floor == steep


@pytest.mark.parametrize("ends", [(np.nan, 1.0), (-1.0, np.nan), (np.nan, np.nan), (-np.inf, np.inf)])
def test_ends_that_are_no_numbers_give_no_lines(ends):
    low, high = (torch.tensor([end]) for end in ends)
    found = MaskedLines.of(low, high)
    assert bool(found.steep.isnan().all())
    assert bool(found.floor(torch.tensor([0.5])).isnan().all()) or ends == (-np.inf, np.inf)
    assert not bool((found.lift >= 0).any())


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 9))
def test_positions_are_the_columns_that_are_set(seed, rows, columns):
    mask = torch.from_numpy(np.random.default_rng(seed).random((rows, columns)) < 0.4)
    which, counts = positions(mask, shared=False)
    for i, row in enumerate(mask):
        assert which[i, counts[i]].tolist() == row.nonzero()[:, 0].tolist()
        assert set(which[i, ~counts[i]].tolist()) <= set(which[i, :1].tolist())


def problem(seed: int) -> tuple[Problem, np.ndarray, list[np.ndarray]]:
    """Outputs of a random network on a ball, shifted so that a few points break them; those points, from the centre,
    and the undecided pre-activations and shifted outputs there."""
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a), 0.3 * rng.normal(size=b)) for a, b in pairwise(WIDTHS)]
    center = rng.random(WIDTHS[0])
    root = bound_root(dense_graph(layers), region(center, 0.3))
    net = condense(root)
    x = points(center, 0.3, "linf", None, 400, seed)
    values, y = [], x
    for weight, bias in layers:
        values.append(y @ weight.T + bias)
        y = values[-1].clip(0)
    shift = np.quantile(values[-1], 0.01, axis=0)
    rows = torch.eye(WIDTHS[-1], dtype=torch.float64)
    asked = Problem.of(net, objectives(root, net, rows, torch.from_numpy(shift)))
    undecided = [values[k][:, which.numpy()] for k, (_, which) in enumerate(net.where)]
    return asked, x - center, [*undecided, values[-1] - shift]


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_hidden_neurons_stay_below_their_values(seed):
    asked, x, values = problem(seed)
    assert len(asked.net.blocks) == 3
    for side, dtype in ((asked.fast, torch.float32), (asked.fine, torch.float64)):
        low, high = (end.to(dtype)[None] for end in (asked.net.low, asked.net.high))
        for (first, last), truth in zip(asked.net.blocks, values):
            which, turn = both_ends(torch.arange(first, last)[None])
            a, k = hidden_rows(asked.net, side, low - 1e-5, high + 1e-5, which, turn, first)
            bound = torch.from_numpy(x) @ a[0].double().T + k[0].double()
            assert bool((bound.numpy() <= np.concatenate([truth, -truth], 1) + 1e-9).all())


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_bounds_under_cuts_hold_at_every_violation_however_many_rows_go_together(seed):
    whole, _, values = problem(seed)
    found = []
    for size, both in ((2**20, True), (1, True), (2**20, False), (1, False)):
        tuning = replace(DEFAULT, memory=replace(DEFAULT.memory, in_cache=size))
        asked = replace(whole, tuning=tuning)
        nodes = asked.roots()
        climb(asked, nodes, 4)
        empty = refine(asked, nodes, both)
        found.append(nodes)
        for i, margin in enumerate(values[-1].T):
            broken = margin <= 0
            assert broken.any()
            assert not empty[i]
            inside = np.concatenate([v[broken] for v in values[:-1]], 1)
            assert bool((nodes.low[i].numpy() <= inside + 1e-9).all())
            assert bool((nodes.high[i].numpy() >= inside - 1e-9).all())
    root = whole.roots()
    assert float((found[0].high - found[0].low).sum()) < 0.999 * float((root.high - root.low).sum())
    for one, other in (found[:2], found[2:]):
        torch.testing.assert_close(one.low, other.low)
        torch.testing.assert_close(one.high, other.high)


@pytest.mark.parametrize("first", [12, 90])
def test_products_with_the_inputs_go_through_few_numbers_where_the_first_layer_is_narrow(first):
    """The same bounds but for rounding, which is charged; a wide first layer keeps the plain products."""
    rng = np.random.default_rng(first)
    widths = (120, first, 70, 60, 3)
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a), 0.1 * rng.normal(size=b)) for a, b in pairwise(widths)]
    root = bound_root(dense_graph(layers), region(rng.random(widths[0]), 0.3))
    net = condense(root)
    rows, shift = torch.eye(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    plain = replace(net, basis=None)
    thin, thick = (Problem.of(it, objectives(root, it, rows, shift)) for it in (net, plain))
    assert (thin.fast.thin is not None) is (first == 12)
    if first == 12:
        assert len(net.basis) <= 12
    assert bool((thin.fine.charge >= thick.fine.charge).all())
    u = torch.from_numpy(rng.normal(size=(5, net.size)))
    x = torch.from_numpy(rng.normal(size=(4, widths[0])))
    for mine, other, exact in ((thin.fine, thick.fine, 1e-12), (thin.fast, thick.fast, 1e-4)):
        u, x = u.to(mine.charge.dtype), x.to(mine.charge.dtype)
        torch.testing.assert_close(mine.inputs(u), other.inputs(u), rtol=exact, atol=exact)
        torch.testing.assert_close(mine.linear(x), other.linear(x), rtol=exact, atol=exact)
    values = [climb(it, it.roots(), 6) for it in (thin, thick)]
    torch.testing.assert_close(*values, rtol=1e-3, atol=1e-3)


def test_a_basis_is_found_only_where_it_is_small():
    rng = np.random.default_rng(0)
    low, full = rng.normal(size=(200, 20)) @ rng.normal(size=(20, 300)), rng.normal(size=(200, 300))
    basis = spanning(torch.from_numpy(low))
    assert basis is not None
    assert basis.shape == (20, 300)
    torch.testing.assert_close(basis @ basis.T, torch.eye(20, dtype=torch.float64))
    torch.testing.assert_close(torch.from_numpy(low) @ basis.T @ basis, torch.from_numpy(low))
    assert spanning(torch.from_numpy(full)) is None
    assert spanning(torch.from_numpy(low[:10])) is None
    assert spanning(torch.full((200, 300), torch.nan, dtype=torch.float64)) is None
    nothing = spanning(torch.zeros((200, 300), dtype=torch.float64))
    assert nothing is None or not len(nothing)


@pytest.mark.parametrize("seed", range(5))
def test_products_whose_parts_cancel_stay_within_their_charges(seed):
    """P·W is small and its parts are not: float32 loses what only the charge for the longer sums covers."""
    rng = np.random.default_rng(seed)
    p, w = rng.normal(size=(40, 2)) * 1e3, rng.normal(size=(1, 30)).repeat(2, 0)
    p[:, 1] = -p[:, 0] * (1 + 1e-9 * rng.normal(size=40))
    a, magnitude, u = p @ w, torch.ones(30, dtype=torch.float64), rng.normal(size=(6, 40)).astype(np.float32)
    p, w, a = (torch.from_numpy(part) for part in (p, w, a))
    charge = factor_charges(a, p, w, magnitude, U32)
    found = (torch.from_numpy(u) @ p.float() @ w.float()).double()
    lost = (found - torch.from_numpy(u).double() @ a).abs() @ magnitude
    allowed = torch.from_numpy(u).double().abs() @ charge
    assert bool((lost <= allowed).all())
    without = torch.from_numpy(u).double().abs() @ ((a - p @ w).abs() @ magnitude)
    assert bool((lost > without).any())


@given(st.integers(0, 2**32 - 1), st.sampled_from([torch.float32, torch.float64]), st.integers(1, 4))
def test_products_without_zeros_are_the_products(seed, dtype, batch):
    rng = np.random.default_rng(seed)
    n, d, count = rng.integers(1, 9, 3)
    dense = torch.from_numpy(rng.integers(-9, 10, (n, d)) * (rng.random((n, d)) < 0.3)).to(dtype)  # exact in floats
    rows = SparseRows(dense, batch)
    u, x = (torch.from_numpy(rng.integers(-9, 10, (2, count, k))).to(dtype) for k in (n, d))
    assert torch.equal(rows.at(x), x @ dense.T)
    for k in range(1, n + 1):
        assert torch.equal(rows.combined(u[..., :k]), u[..., :k] @ dense[:k])


def test_zeros_are_left_out_of_whole_layers_that_have_many():
    net = problem(0)[0].net
    starts = [first for first, _ in net.blocks]
    net.neurons.a[: starts[2]] *= torch.arange(net.neurons.a.shape[1]) < 1  # of six inputs the first two layers see one
    few = replace(DEFAULT.trees, sparse_share=0.2, sparse_size=1)
    assert sparse_rows(net, few) == starts[2]
    assert sparse_rows(net, replace(few, sparse_share=0.1)) == 0
    assert sparse_rows(net, replace(few, sparse_size=2**20)) == 0
    none = net.neurons.pick(torch.arange(0))
    for dtype in (torch.float32, torch.float64):
        dense, sparse = (Matrices.of(net, none, dtype, trees=trees) for trees in (DEFAULT.trees, few))
        assert dense.sparse is None
        assert sparse.sparse is not None
        u, x = torch.rand((5, 3, net.size), dtype=dtype), torch.rand((4, net.neurons.a.shape[1]), dtype=dtype)
        for k in (starts[1], starts[2], net.size):
            assert torch.allclose(sparse.inputs(u[..., :k]), dense.inputs(u[..., :k]), atol=1e-5)
        assert torch.allclose(sparse.linear(x), dense.linear(x), atol=1e-5)
