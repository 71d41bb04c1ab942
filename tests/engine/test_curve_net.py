"""Networks with Tanh on their condensed form: the form, its lines, bounds, cuts, hidden intervals and trees."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from tests.bounds.balls import points
from tests.engine.curved import curved, gap, grid_radius
from tests.engine.test_native_curved import NORMS, measure
from tests.engine.tuned import few_inputs

from radii.bounds.curve_lines import Slants, certified, gaps
from radii.bounds.intermediate_curves import Place, relax
from radii.bounds.operands import Operands
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.engine.curve_cutting import lowest_in_sphere
from radii.engine.curve_hidden import narrowed
from radii.engine.curve_net import condense_curves, margins_of
from radii.engine.curve_nodes import CurvedNodes, divide
from radii.engine.curve_slopes import certify, climb
from radii.engine.curve_tree import CurvedTree
from radii.engine.output_rows import margins
from radii.engine.subproblem import Problem
from radii.models import load_classifier
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Relu, Tanh
from radii.problem import LINF, Classification, Domain, Status
from radii.testing import random_instance
from radii.testing._build import Builder

FREE = Domain(-np.inf, np.inf)


def residual(seed: int, inputs: int = 3):
    """x → tanh → dense → tanh, plus what went in and a dense function of x; its second layer knows x itself."""
    b = Builder(seed, (inputs,)).dense(4).apply("Tanh")
    first, shape = b.at, b.shape
    b = b.dense(4).apply("Tanh").apply("Add", first, shape=shape)
    middle = b.at
    b = b.back("x", (inputs,)).dense(4).apply("Add", middle, shape=shape).apply("Sigmoid").dense(3).balance()
    return load_classifier(b.model(), name=f"residual-{seed}")


def network(kind: str, seed: int, inputs: int = 3):
    return residual(seed, inputs) if kind == "residual" else curved(seed, kind, inputs)


def condensed(classifier, x, goal, norm, domain):
    """The condensed network of a ball, the question, the bounds it was made of."""
    asked = margins(classifier, classifier_label(classifier, x), Classification())
    size = torch.tensor([goal], dtype=torch.float64)
    ball = Region.around(torch.from_numpy(x[None].copy()), size, norm, domain)
    operands = Operands.of(asked.graph)
    none = torch.full((1, operands.size), torch.inf, dtype=torch.float64)
    relaxed = relax(operands, Place((ball,)), -none, none)
    return condense_curves(relaxed), asked, operands


def classifier_label(classifier, x) -> int:
    return int(np.argmax(classifier(x[None].astype(np.float32))[0]))


def values(net, asked, operands, x):
    """Pre-activations of the neurons and margins at inputs, from the graph."""
    outputs = asked.graph.values(torch.from_numpy(x))
    flat = torch.cat([outputs[s.source].flatten(1) for s in operands.all], 1)
    return flat[:, net.place], outputs[-1].flatten(1) @ asked.rows.T - asked.shift


@pytest.mark.parametrize("domain", [Domain(0.0, 1.0), FREE], ids=["domain", "free"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["tanh", "sigmoid", "mixed", "clipped", "residual"])
def test_no_violation_is_lost(kind, norm, domain):
    """The form is the network's; every violating point lies in an open node, its neurons in narrowed intervals."""
    classifier = network(kind, 7)
    instance = random_instance(classifier, 7)
    goal = 0.45 if norm == "linf" else 0.8
    with proving():
        net, asked, operands = condensed(classifier, instance.x, goal, NORMS[norm], domain)
        inside = (domain.low, domain.high) if domain is not FREE else (-9.0, 9.0)
        x = points(instance.x, goal, norm, inside, count=3_000, seed=1)
        z, margin = values(net, asked, operands, x)
        delta, rows = torch.from_numpy(x - instance.x), net.neurons
        y = torch.tanh(z) if net.relu is None else torch.where(net.relu, z.clamp_min(0.0), torch.tanh(z))
        off = (delta @ rows.a.T + rows.b + y @ rows.m.T - z).abs()
        assert bool((off <= rows.slack + 1e-12).all())
        tight, _ = narrowed(net, 6)
        assert bool(((z >= tight.low - 1e-12) & (z <= tight.high + 1e-12)).all())
        assert float((tight.high - tight.low).sum()) <= float((net.high - net.low).sum())
        tree = CurvedTree(Problem.of(tight, margins_of(tight, asked.rows, asked.shift)), goal)
        distance = torch.from_numpy(np.linalg.norm(x - instance.x, ord=NORMS[norm].order, axis=1))
        met = 0
        for _ in range(6):
            for row in range(len(asked.rows)):
                nodes = tree.open.pick((tree.open.objective == row).nonzero()[:, 0])
                bad = (margin[:, row] <= 0).nonzero()[:, 0]
                held = torch.zeros(len(bad), dtype=torch.bool)
                for k in range(len(nodes)):
                    within = (z[bad] >= nodes.low[k] - 1e-12).all(1) & (z[bad] <= nodes.high[k] + 1e-12).all(1)
                    held |= within & (distance[bad] >= nodes.radius[k] - 1e-12)
                assert bool(held.all())
                met += len(bad)
            if tree.done or not tree.step():
                break
    assert met > 20 or tree.done


@pytest.mark.parametrize("kind", ["tanh", "sigmoid", "mixed", "clipped"])
@pytest.mark.parametrize("norm", NORMS)
def test_radii_are_those_of_a_dense_grid(kind, norm):
    classifier = curved(11, kind)
    instance = random_instance(classifier, 11)
    radius = measure(classifier, instance, NORMS[norm], tuning=few_inputs(0))
    if radius.status is Status.MISCLASSIFIED:
        return
    low, high = grid_radius(classifier, instance.x, instance.label, NORMS[norm])
    assert radius.status in (Status.CLOSED, Status.ROBUST), radius
    assert radius.lower <= high
    assert radius.upper is None or radius.upper >= low - 1e-6
    x = points(instance.x, radius.lower, norm, (0.0, 1.0), count=2_000, seed=2)
    assert float(gap(classifier, x, instance.label).min()) > 0


def cancelling(seed: int) -> tuple[Graph, list[np.ndarray]]:
    """Dense, ReLU, dense, tanh, dense, tanh, dense; weights of very different sizes that nearly cancel."""
    rng, shapes = np.random.default_rng(seed), [(4, 2), (3, 4), (3, 3), (2, 3)]
    weights = []
    for rows, columns in shapes:
        w = rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-6, 4, size=(rows, columns))
        w[:, -1] = -w[:, 0] * (1.0 + 1e-13 * rng.normal(size=rows))
        weights.append(w / max(1.0, float(np.abs(w).max()) / 1e3))
    weights[0] = np.abs(weights[0])  # with the biases below every ReLU is on
    nodes = [Node(None, (), (2,))]
    for k, w in enumerate(weights):
        bias = torch.from_numpy(np.full(len(w), 1e4 if k == 0 else 0.3))
        nodes.append(Node(Dense(torch.from_numpy(w), bias), (len(nodes) - 1,), (len(w),)))
        if k < 3:
            nodes.append(Node(Relu() if k == 0 else Tanh(), (len(nodes) - 1,), (len(w),)))
    return Graph(tuple(nodes)), weights


def exactly(weights: list[np.ndarray], x: list[Fraction]) -> tuple[list, list]:
    """The pre-activations of all tanh and the outputs, in 60 digits."""
    mpmath.mp.dps = 60
    value, seen = [mpmath.mpf(v.numerator) / v.denominator for v in x], []
    for k, w in enumerate(weights):
        bias = mpmath.mpf(1e4 if k == 0 else 0.3)
        z = [mpmath.fsum(mpmath.mpf(float(c)) * v for c, v in zip(row, value)) + bias for row in w]
        seen += z if k in (1, 2) else []
        value = z if k in (0, 3) else [mpmath.tanh(v) for v in z]
    return seen, value


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_weights_that_nearly_cancel_hold_in_sixty_digits(seed, norm):
    """Linear bounds of nodes with any slopes and multipliers, at points inside them; intervals of neurons."""
    graph, weights = cancelling(seed)
    center = torch.tensor([[0.375, 0.625]], dtype=torch.float64)
    ball = Region.around(center, torch.tensor([0.25], dtype=torch.float64), NORMS[norm], Domain(0.0, 1.0))
    operands = Operands.of(graph)
    none = torch.full((1, operands.size), torch.inf, dtype=torch.float64)
    rows = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    with proving():
        net, _ = narrowed(condense_curves(relax(operands, Place((ball,)), -none, none)), 6)
        assert net.relu is None
        assert net.size == 6
        problem = Problem.of(net, margins_of(net, rows, torch.tensor([0.1, -0.2], dtype=torch.float64)))
        nodes = CurvedNodes.roots(net, torch.arange(2))
        climb(problem, nodes, 4)
        at = torch.tensor([1, 4])
        middle = 0.5 * (nodes.low + nodes.high)
        parts = divide(nodes, at, middle[torch.arange(2), at])
        climb(problem, parts, 3)
        steps = torch.Generator().manual_seed(seed)
        parts.slope = torch.rand(parts.slope.shape, generator=steps)
        parts.pull = torch.where(parts.set_low.isfinite(), 0.7, torch.where(parts.set_high.isfinite(), -0.4, 0.0))
        certify(problem, parts)
    x = points(center[0].numpy(), 0.25, norm, (0.0, 1.0), count=40, seed=seed)
    met = 0
    for point in x:
        exact = [Fraction(float(v)) for v in point]
        z, outputs = exactly(weights, exact)
        for k, value in enumerate(z):
            assert float(net.low[k]) <= value <= float(net.high[k])
        delta = [v - Fraction(float(c)) for v, c in zip(exact, center[0])]
        for k in range(len(parts)):
            if not all(float(parts.set_low[k, i]) <= v <= float(parts.set_high[k, i]) for i, v in enumerate(z)):
                continue
            which = int(parts.objective[k])
            objective = mpmath.fsum(float(c) * o for c, o in zip(rows[which], outputs)) - [0.1, -0.2][which]
            bound = sum((Fraction(float(a)) * d for a, d in zip(parts.a[k], delta)), Fraction(float(parts.c[k])))
            assert mpmath.mpf(bound.numerator) / bound.denominator <= objective
            met += 1
    assert met > 10


def test_an_objective_whose_least_value_is_0_is_never_closed():
    """tanh(x) − tanh(x) in two neurons, under splits, cuts and multipliers."""
    one = torch.ones((2, 1), dtype=torch.float64)
    none = torch.zeros(2, dtype=torch.float64)
    mix = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    nodes = (
        Node(None, (), (1,)),
        Node(Dense(3.0 * one, none), (0,), (2,)),
        Node(Tanh(), (1,), (2,)),
        Node(Dense(mix, none[:1]), (2,), (1,)),
    )
    graph = Graph(nodes)
    ball = Region.around(torch.zeros((1, 1)), torch.tensor([0.4], dtype=torch.float64), LINF, FREE)
    operands = Operands.of(graph)
    wide = torch.full((1, 2), torch.inf, dtype=torch.float64)
    with proving():
        net = condense_curves(relax(operands, Place((ball,)), -wide, wide))
        tree = CurvedTree(Problem.of(net, margins_of(net, one[:1], none[:1])), 0.4)
        for _ in range(8):
            tree.step()
    assert not tree.done
    assert tree.lower == 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_lines_hold_on_dense_grids_whatever_their_slopes(dtype):
    rng = torch.Generator().manual_seed(3)
    low = (torch.rand((40, 6), generator=rng) * 8 - 6).to(torch.float32)
    high = low + torch.rand((40, 6), generator=rng).to(torch.float32) ** 3 * 6
    relu = torch.tensor([True, False, False, True, False, False])
    slants = Slants.of(relu, low, high)
    share = torch.linspace(0, 1, 401, dtype=torch.float64)[:, None, None]
    z = (low.double() + share * (high.double() - low.double())).clamp(low.double(), high.double())
    curve = torch.where(relu, z.clamp_min(0.0), torch.tanh(z))
    for slope in (slants.start, torch.rand(slants.start.shape, generator=rng)):
        lines = certified(relu, low, high, slope, dtype)
        below = lines.under.double() * z + lines.floor.double()
        above = lines.over.double() * z + lines.ceiling.double()
        assert bool((below <= curve + 1e-15).all())
        assert bool((above >= curve - 1e-15).all())
        assert float((curve - below).amin(0).amax()) < 1e-2
        assert float((above - curve).amin(0).amax()) < 1e-2
        strays = (curve - slope[0].double() * z).amax(0) - (curve - slope[0].double() * z).amin(0)
        undecided = ~relu | ((low < 0) & (high > 0))
        assert bool(((gaps(relu, low, high, slope[0]) - strays).abs() < 1e-2)[undecided].all())


def test_rows_under_cuts_in_spheres_are_bounded_by_their_duals():
    rng = np.random.default_rng(4)
    w, g = (torch.from_numpy(rng.normal(size=(5, 7, 6))).float(), torch.from_numpy(rng.normal(size=(5, 6))).float())
    k, c = torch.from_numpy(rng.normal(size=(5, 7))).float(), torch.from_numpy(rng.uniform(0.1, 1.5, 5)).float()
    epsilon = torch.tensor([0.8], dtype=torch.float32)
    found = lowest_in_sphere(w, k, g, c, epsilon).double()
    share = torch.linspace(0, 20, 40_001, dtype=torch.float64)
    for node in range(5):
        for row in range(7):
            mixed = w[node, row].double() + share[:, None] * g[node].double()
            dual = k[node, row] + share * c[node] - 0.8 * mixed.square().sum(1).sqrt()
            if float(0.8 * g[node].norm()) > float(c[node]) + 0.1:
                assert float(dual.max()) - 1e-3 < float(found[node, row]) <= float(dual.max()) + 1e-6
    x = rng.normal(size=(4_000, 6))
    x = torch.from_numpy(0.8 * x / np.linalg.norm(x, axis=1, keepdims=True) * rng.uniform(0.3, 1, (4_000, 1)))
    for node in range(5):
        inside = x[(x @ g[node].double() + c[node]) <= 0]
        value = inside @ w[node].double().T + k[node]
        assert bool((value >= found[node]).all())
