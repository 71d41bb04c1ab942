"""Rounding: where floats mislead, no bound is above the exact minimum, found in rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.balls import dense_graph, exact_curves, least, region
from tests.engine.tuned import PAIRED

from radii.bounds.activations import ReluLines
from radii.bounds.intermediate import bound_root
from radii.bounds.lowering import lower
from radii.bounds.rounding import gamma, outward, proving
from radii.bounds.tuning import Bounding
from radii.decide import Budget
from radii.engine import condensed as condense_module
from radii.engine import matrices
from radii.engine.condensed import CondensedRoot, condense, objectives
from radii.engine.native import Native
from radii.engine.smaller_ball import bound_again
from radii.engine.subproblem import Problem
from radii.engine.tree import Tree
from radii.engine.tuning import DEFAULT
from radii.errors import InputError
from radii.models import Classifier, load_classifier
from radii.problem import LINF, Classification, Domain, Instance, Query, Verdict
from radii.testing._build import Builder


def nasty(seed: int, widths: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Float32 weights of very different sizes whose large parts nearly cancel."""
    rng = np.random.default_rng(seed)
    layers = []
    for before, after in pairwise(widths):
        weight = rng.normal(size=(after, before)) * 10.0 ** rng.integers(-3, 8, (after, 1))
        if before > 1:  # pairs of columns that cancel but for their last bits
            weight[:, 1] = -weight[:, 0] * (1 + rng.integers(-2, 3, after) * 2.0**-22)
        bias = -weight.sum(1) * 0.5 * (1 + rng.normal(size=after) * 1e-6)
        layers.append((weight.astype(np.float32).astype(np.float64), bias.astype(np.float32).astype(np.float64)))
    return layers


@contextmanager
def in_factors(basis: list[list[float]] | str | None) -> Iterator[None]:
    """All products with A go through a basis of its rows, which may be no basis at all, or leave zeros out."""
    with pytest.MonkeyPatch.context() as patch:
        if basis == ZEROS:
            patch.setattr(matrices, "sparse_rows", lambda net, *_: net.blocks[-1][0] if net.blocks else 0)
        elif basis is not None:
            patch.setattr(condense_module, "spanning", lambda *_: torch.tensor(basis, dtype=torch.float64))
            patch.setattr(matrices, "thinner", lambda *sizes: True)
        yield


ZEROS = "zeros are left out of all layers but the last"
# None, one of two rows that add up to 1, one that spans half of everything
BASES = [None, [[0.6], [0.8]], [[0.5]], ZEROS]


def above(value: Fraction) -> float:
    """The least float that is at least a fraction."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def grown(layers, center: float, epsilon: float, larger: float = 1.0, coarse: bool = False):
    """The exact curves on the ball, the engine's root and condensed network there; by way of a ball so much larger.

    `coarse`: all hidden rows are bounded in float32.
    """
    low, high = Fraction(center) - Fraction(epsilon), Fraction(center) + Fraction(epsilon)
    tuning = replace(Bounding(), heavy=-1) if coarse else Bounding()
    root = bound_root(dense_graph(layers), region([center], larger * epsilon), tuning=tuning)
    if larger > 1.0:
        some = replace(DEFAULT, trees=replace(DEFAULT.trees, hulled=2))  # of three or four neurons
        ball = bound_again(CondensedRoot(root, condense(root)), region([center], epsilon), tuning=some, hulls=True)
        return exact_curves(layers, low, high), ball.root, ball.net
    return exact_curves(layers, low, high), root, condense(root)


@given(st.integers(0, 10**6), st.sampled_from([(1, 4, 2), (1, 4, 3, 2), (1, 3, 3, 3, 2)]), st.floats(1e-9, 1.0))
@pytest.mark.parametrize(
    ("larger", "basis", "coarse"),
    [(1.0, None, False), *((2.0, basis, False) for basis in BASES), (1.0, None, True), (2.0, None, True)],
)
@settings(max_examples=40)
def test_no_bound_is_above_the_exact_minimum(larger, basis, coarse, seed, widths, epsilon):
    layers = nasty(seed, widths)
    with in_factors(basis):
        curves, root, _ = grown(layers, 0.5, epsilon, larger, coarse)
    unit = np.eye(max(widths))
    for curve, lines in zip(curves, root.lines.values()):
        for j in range(lines.low.shape[1]):
            row = unit[j, : lines.low.shape[1]]
            assert Fraction(float(lines.low[0, j])) <= least(curve, row)
            assert Fraction(float(lines.high[0, j])) >= -least(curve, -row)
    rows = torch.tensor([[1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    exact = [least(curves[-1], row) for row in rows.tolist()]
    linear = root.margins(rows[None])
    for value, truth in zip(root.region.lowest(linear.a, linear.shifted())[0].tolist(), exact):
        assert Fraction(value) <= truth


@given(st.integers(0, 10**6), st.sampled_from([(1, 4, 2), (1, 4, 3, 2)]), st.floats(1e-6, 1.0))
@pytest.mark.parametrize("larger", [1.0, 2.0])
@pytest.mark.parametrize(("basis", "coarse"), [*((basis, False) for basis in BASES), (None, True)])
@settings(max_examples=40)
def test_a_tree_never_closes_on_a_tie(basis, coarse, larger, seed, widths, epsilon):
    """The objective is shifted so that its exact minimum is 0 or a hair below: whatever the rounding, it stays open."""
    with in_factors(basis):
        _never_closes(nasty(seed, widths), epsilon, larger, coarse)


def _never_closes(layers, epsilon: float, larger: float, coarse: bool) -> None:
    curves, root, net = grown(layers, 0.5, epsilon, larger, coarse)
    rows = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    truth = least(curves[-1], rows[0].tolist())
    for share, tuning in product((0.0, 1e-3), (DEFAULT, PAIRED)):
        shift = torch.tensor([above(truth)], dtype=torch.float64)
        shift = shift + share * shift.abs()
        tree = Tree(Problem.of(net, objectives(root, net, rows, shift), tuning), epsilon)
        tree.start()
        for _ in range(30):
            assert not tree.done
            if not tree.step():
                break
        assert not tree.done


@given(st.integers(0, 10**6))
@settings(max_examples=15)
def test_a_tree_closes_a_little_below_the_minimum(seed):
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in ((1, 5), (5, 4), (4, 2))]
    curves, root, net = grown(layers, 0.5, 0.5)
    rows = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    truth = float(least(curves[-1], rows[0].tolist()))
    shift = torch.tensor([truth - 1e-4 * (1 + abs(truth))], dtype=torch.float64)
    tree = Tree(Problem.of(net, objectives(root, net, rows, shift)), 0.5)
    tree.start()
    for _ in range(60):
        if tree.done or not tree.step():
            break
    assert tree.done


@given(st.floats(-1e30, 1e30), st.floats(0, 1e30))
def test_outward_never_loses_a_value(low, width):
    ends = torch.tensor([low], dtype=torch.float64), torch.tensor([low + width], dtype=torch.float64)
    below, beyond = outward(*ends, torch.float32)
    assert float(below.double()) <= low
    assert float(beyond.double()) >= low + width


def test_outward_beyond_the_largest_float32_stays_sound():
    big = torch.tensor([1e39], dtype=torch.float64)
    below, beyond = outward(big, big, torch.float32)
    assert float(below) <= 1e39 <= float(beyond)


def test_gamma_is_at_least_highams_and_refuses_what_it_cannot_bound():
    u = Fraction(1, 2**53)
    for n in (1, 10, 10**6):
        assert Fraction(gamma(n)) >= n * u / (1 - n * u)
    with pytest.raises(OverflowError):
        gamma(2**24, 2.0**-24)


@given(st.floats(-1e20, -1e-20), st.floats(1e-20, 1e20))
@settings(max_examples=80)
def test_upper_lines_are_above_relu_at_both_ends(low, high):
    lines = ReluLines.of(torch.tensor([[low]], dtype=torch.float64), torch.tensor([[high]], dtype=torch.float64))
    slope, offset = Fraction(float(lines.slope_high)), Fraction(float(lines.offset))
    assert slope * Fraction(low) + offset >= 0
    assert slope * Fraction(high) + offset >= Fraction(high)


@pytest.mark.parametrize(
    ("low", "high"), [(math.nan, math.nan), (-math.inf, math.inf), (math.nan, 1.0), (-1.0, math.nan)]
)
def test_ends_that_are_no_numbers_never_make_a_neuron_stable(low, high):
    lines = ReluLines.of(torch.tensor([[low]], dtype=torch.float64), torch.tensor([[high]], dtype=torch.float64))
    useless = bool(lines.unstable) or not bool(torch.isfinite(lines.slope_high + lines.offset))
    assert useless, "a neuron of unknown sign was taken for a stable one"


def broken_weights(value: float) -> Classifier:
    """A network that sums its inputs and meets one weight that is no number, as a file may hold it."""
    builder = Builder(0, (2,))
    weight = np.array([[1.0, value], [0.5, 1.0], [1.0, 1.0]], dtype=np.float32)
    builder.apply("Gemm", builder.constant(weight), builder.constant(np.zeros(3)), shape=(3,), transB=1).apply("Relu")
    model = builder.dense(2).model()
    return Classifier(model.SerializeToString(), (2,), 2, "broken", Domain())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_never_give_robust(value):
    network = broken_weights(value)
    query = Query(Instance(np.array([0.5, 0.5], dtype=np.float32), 0), 0.01)
    try:
        (answer,) = Native().decide(network, [query], Budget(seconds=5))
    except InputError:  # refused by name is as good
        return
    assert answer.verdict is not Verdict.ROBUST


def test_overflow_inside_the_bounds_never_gives_robust():
    """Weights of 1e38 nine times over: over the reals the class changes at 0.1, float64 bounds overflow on the way."""
    builder = Builder(0, (1,))
    scale = builder.constant(np.array([[1e38]]))
    builder.apply("Gemm", scale, builder.constant(np.array([-0.5e38])), shape=(1,), transB=1).apply("Relu")
    for _ in range(9):
        builder.apply("Gemm", scale, builder.constant(np.zeros(1)), shape=(1,), transB=1).apply("Relu")
    out = builder.constant(np.array([[0.0], [1.0]]))
    builder.apply("Gemm", out, builder.constant(np.array([1.0, 0.0])), shape=(2,), transB=1)
    network = Classifier(builder.model().SerializeToString(), (1,), 2, "overflow", Domain())
    instance = Instance(np.array([0.4], dtype=np.float32), 0)
    (answer,) = Native().decide(network, [Query(instance, 0.2)], Budget(seconds=5))
    assert answer.verdict is not Verdict.ROBUST
    (radius,) = Native().measure(network, [instance], Classification(), LINF, Budget(seconds=5), tolerance=0.01)
    assert radius.lower is None or radius.lower <= 0.1 + 1e-7


def test_proofs_use_full_float32_whatever_the_process_allows():
    backend = torch.backends.mkldnn.matmul
    before = backend.fp32_precision
    backend.fp32_precision = "bf16"
    try:
        with proving():
            assert backend.fp32_precision == "ieee"
            assert torch.backends.cudnn.conv.fp32_precision == "ieee"
            assert not torch.is_grad_enabled()
        assert backend.fp32_precision == "bf16"
    finally:
        backend.fp32_precision = before


@pytest.mark.parametrize("epsilon", [0.02, 1e-5])
@pytest.mark.parametrize("seed", range(4))
def test_float32_rows_through_convolutions_bound_the_float64_ones(seed, epsilon):
    """A pass in float32, its rounding charged, never claims more than the exact linear bound, on any ball."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(2, 8, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 16, 5),
    )
    classifier = load_classifier(net, input_shape=(2, 8, 8))
    graph = lower(classifier.graph.logits).to(torch.float64)
    x = torch.rand(1, 128)
    ball = region(x[0].numpy(), epsilon, "linf", (0.0, 1.0))
    with proving():
        root = bound_root(graph, ball)
        rows = torch.randn((1, 5, 5), dtype=torch.float64)
        exact = root.margins(rows)
        last, one = len(graph.nodes) - 1, torch.arange(1)
        coarse = root.deviations.coarse(last, root.lines).backward(rows, one)
        points = ball.center + (2 * torch.rand(200, 128) - 1).double() * epsilon
        points = points.clamp(0.0, 1.0)
        values = graph(points.reshape(-1, 2, 8, 8)) @ rows[0].T
    claimed = (points - ball.center) @ coarse.a[0].T + coarse.shifted()[0]
    assert bool((claimed <= values + 1e-12).all())
    low, best = ball.shifted().lowest(coarse.a, coarse.shifted()), ball.lowest(exact.a, exact.shifted())
    spread = values.amax(0) - values.amin(0)
    assert bool((low <= best + 1e-4 * spread).all())
    assert bool((low >= best - 1e-2 * spread).all())


@given(
    st.lists(st.tuples(st.floats(-2, 2), st.floats(0, 2), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_lines_measured_from_a_reference_hold_at_every_end(drawn, dtype):
    """relu(z) − relu(r) between its lines, in rational arithmetic, for any slopes and references near the interval."""
    low, width, slope, share = (torch.tensor(part, dtype=torch.float64)[None] for part in zip(*drawn))
    high = low + width
    reference = low + share * width
    lines = replace(ReluLines.of(low, high), slope_low=slope, slope_high=1.0 - slope).measured_from(reference, dtype)
    assert lines.base is not None
    for j in range(low.shape[1]):
        r = Fraction(float(reference[0, j]))
        kink = [0.0] if float(low[0, j]) < 0 < float(high[0, j]) else []
        for z in (Fraction(float(low[0, j])), Fraction(float(high[0, j])), *map(Fraction, kink)):
            value = max(z, Fraction(0)) - max(r, Fraction(0))
            under = Fraction(float(lines.slope_low[0, j])) * (z - r) + Fraction(float(lines.base[0, j]))
            over = Fraction(float(lines.slope_high[0, j])) * (z - r) + Fraction(float(lines.offset[0, j]))
            assert under <= value <= over
