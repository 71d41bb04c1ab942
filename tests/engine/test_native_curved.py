"""Native on Sigmoid, Tanh and products: radii hold those of a dense grid, and no violation is ever lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.balls import points
from tests.engine.curved import KINDS, conv_tanh, curved, gap, grid_radius
from tests.engine.tuned import few_inputs

from radii.bounds.intermediate_curves import Place, relax
from radii.bounds.operands import Operands
from radii.bounds.region import Region
from radii.decide import Budget, replay
from radii.engine.interval_tree import IntervalTree
from radii.engine.native import Native
from radii.engine.output_rows import margins
from radii.engine.tuning import DEFAULT
from radii.errors import UnsupportedOperator
from radii.models import load_classifier
from radii.problem import L1, L2, LINF, Classification, Clause, OutputSpec, Query, SpecQuery, Status, Verdict
from radii.testing import exact_radius, random_instance
from radii.testing._build import Builder
from radii.verifiers.catalogue import make

BUDGET = Budget(seconds=30)
QUICK = Native(effort="fast")
NORMS = {"linf": LINF, "l2": L2, "l1": L1}


def measure(network, instance, norm=LINF, tolerance=2e-3, budget=BUDGET, tuning=DEFAULT):
    return replace(QUICK, tuning=tuning).measure(
        network, [instance], Classification(), norm, budget, tolerance=tolerance
    )[0]


def check(seed: int, kind: str, norm) -> None:
    """[lower, upper] meets the interval that the grid leaves for the radius, and is closed."""
    network = curved(seed, kind)
    instance = random_instance(network, seed)
    radius = measure(network, instance, norm)
    about = f"{kind} {seed} {norm}: {radius}"
    if radius.status is Status.MISCLASSIFIED:
        assert float(gap(network, instance.x.copy(), instance.label)) <= 1e-6, about
        return
    low, high = grid_radius(network, instance.x, instance.label, norm)
    assert radius.status in (Status.CLOSED, Status.ROBUST), about
    assert radius.lower <= high, (about, low, high)
    assert radius.upper is None or radius.upper >= low - 1e-6, (about, low, high)
    x = points(instance.x, radius.lower, norm.name, (0.0, 1.0), count=2_000, seed=seed)
    assert float(gap(network, x, instance.label).min()) > 0, about


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_radii_are_those_of_a_dense_grid(kind, norm):
    check(KINDS.index(kind), kind, NORMS[norm])


@given(st.integers(100, 10**6), st.sampled_from(KINDS), st.sampled_from(sorted(NORMS)))
@settings(max_examples=8)
def test_hypothesis_finds_no_network_that_is_wrong(seed, kind, norm):
    check(seed, kind, NORMS[norm])


def tree_of(network, instance, goal, norm, few) -> IntervalTree:
    asked = margins(network, instance.label, Classification())
    size = torch.tensor([goal], dtype=torch.float64)
    ball = Region.around(torch.from_numpy(instance.x[None].copy()), size, norm, network.domain)
    operands = Operands.of(asked.graph)
    none = torch.full((1, operands.size), torch.inf, dtype=torch.float64)
    tree = IntervalTree(asked, ball, goal, operands, asked.shift, few_inputs(few).intervals)
    tree.start(relax(operands, Place((ball,)), -none, none))
    return tree


@pytest.mark.parametrize("few", [0, 12])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["tanh", "gate", "square", "mixed", "broadcast", "clipped"])
def test_no_violation_is_lost(kind, norm, few):
    """Every violating point of the ball lies in an open node of its row, at no less than the node's radius."""
    network = curved(7, kind, inputs=3)
    instance = random_instance(network, 7)
    goal = 0.45 if norm == "linf" else 0.8
    x = points(instance.x, goal, norm, (0.0, 1.0), count=3_000, seed=1)
    with torch.no_grad():
        tree = tree_of(network, instance, goal, NORMS[norm], few)
        asked = tree.margins
        outputs = asked.graph.values(torch.from_numpy(x))
        margin = outputs[-1].flatten(1) @ asked.rows.T - asked.shift
        flat = torch.cat([outputs[s.source].flatten(1) for s in tree.operands.all], 1)
        distance = torch.from_numpy(np.linalg.norm(x - instance.x, ord=NORMS[norm].order, axis=1))
        met = 0
        for _ in range(6):
            for row in range(len(asked.rows)):
                nodes = tree.open.pick((tree.open.objective == row).nonzero()[:, 0])
                bad = (margin[:, row] <= 0).nonzero()[:, 0]
                held = torch.zeros(len(bad), dtype=torch.bool)
                for k in range(len(nodes)):
                    inside = (flat[bad] >= nodes.low[k] - 1e-12).all(1) & (flat[bad] <= nodes.high[k] + 1e-12).all(1)
                    boxed = torch.from_numpy(x)[bad]
                    inside &= ((boxed >= nodes.box_low[k]) & (boxed <= nodes.box_high[k])).all(1)
                    held |= inside & (distance[bad] >= nodes.radius[k] - 1e-12)
                assert bool(held.all())
                met += len(bad)
            if not tree.step():
                break
    assert met > 100


@pytest.mark.parametrize("kind", ["tanh", "gate"])
def test_intervals_of_units_are_split_where_inputs_are_many(kind):
    """The same radii as by splitting inputs."""
    network = curved(3, kind, inputs=4)
    instance = random_instance(network, 3)
    by_inputs = measure(network, instance)
    by_units = measure(network, instance, tuning=few_inputs(0))
    assert by_units.status is by_inputs.status is Status.CLOSED
    assert by_units.lower <= by_inputs.upper
    assert by_inputs.lower <= by_units.upper


@pytest.mark.parametrize("norm", NORMS)
def test_ten_thousand_points_of_proven_balls_break_nothing(norm):
    for seed in (1,):
        network = conv_tanh(seed)
        instance = random_instance(network, seed)
        radius = measure(network, instance, NORMS[norm], budget=Budget(seconds=1.5))
        x = points(instance.x, radius.lower, norm, (0.0, 1.0), count=10_000, seed=seed)
        assert float(gap(network, x, instance.label).min()) > 0
        assert radius.lower > 0.2 * radius.upper
        query = Query(instance, radius.upper, Classification(), NORMS[norm])
        assert replay(network, query, radius.witness.x) is not None


@pytest.mark.parametrize("kind", ["tanh", "gate", "square"])
@pytest.mark.parametrize("norm", NORMS)
def test_decisions_on_both_sides_of_the_radius(kind, norm):
    network = curved(5, kind)
    instance = random_instance(network, 5)
    radius = measure(network, instance, NORMS[norm], tolerance=1e-4)
    sizes = 0.5 * radius.lower, radius.lower, radius.upper, 1.5 * radius.upper
    answers = QUICK.decide(network, [Query(instance, e, Classification(), NORMS[norm]) for e in sizes], BUDGET)
    assert [a.verdict for a in answers] == [Verdict.ROBUST, Verdict.ROBUST, Verdict.BROKEN, Verdict.BROKEN]
    near = Query(instance, 0.3 * radius.lower, Classification(), NORMS[norm])
    others = [make(name).decide(network, [near], BUDGET)[0] for name in ("bounds", "envelope")]
    assert [a.verdict for a in others] == [Verdict.ROBUST, Verdict.ROBUST]


def random_spec(rng, network) -> SpecQuery:
    """A random disjunction of conjunctions near what a random box reaches."""
    low = rng.uniform(0, 0.6, network.size).astype(np.float32).astype(np.float64)
    high = low + rng.uniform(0.02, 0.4, network.size).astype(np.float32)
    reached = network((low + rng.uniform(size=(300, network.size)) * (high - low)).astype(np.float32)).astype(float)
    clauses = []
    for _ in range(rng.integers(1, 3)):
        rows = rng.normal(size=(rng.integers(1, 3), network.classes))
        span = reached @ rows.T
        clauses.append(Clause(rows, np.quantile(span, 0.02, axis=0) - rng.uniform(-0.1, 0.2) * np.ptp(span, axis=0)))
    return SpecQuery(low, high, OutputSpec(tuple(clauses)))


@pytest.mark.parametrize("few", [0, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_random_linear_properties_agree_with_a_dense_grid(kind, few):
    """ROBUST and BROKEN against the least value of each clause on a grid and how steep it is there."""
    decided = 0
    for seed in range(4):
        network = curved(seed, kind)
        query = random_spec(np.random.default_rng([seed, KINDS.index(kind)]), network)
        answer = replace(QUICK, tuning=few_inputs(few)).decide_spec(network, query, Budget(seconds=10))
        low, high = query.lower, query.upper
        share = torch.cartesian_prod(*[torch.linspace(0, 1, 161, dtype=torch.float64)] * 2)
        x = (torch.from_numpy(low) + share * torch.from_numpy(high - low)).requires_grad_(True)
        outputs = network.graph(x).flatten(1)
        least, slack = np.inf, np.inf
        for clause in query.spec.clauses:
            rows = outputs @ torch.from_numpy(clause.coefficients).T - torch.from_numpy(clause.bounds)
            worst = rows.amax(1)
            (slope,) = torch.autograd.grad(worst.sum(), x, retain_graph=True)
            reach = 1.3 * float((slope.abs() * torch.from_numpy(high - low) / 320).sum(1).max())
            lowest = float(worst.detach().min())
            least, slack = min(least, lowest), min(slack, lowest - reach)
        about = f"{kind} {seed}: {answer} least {least} surely {slack}"
        if answer.verdict is Verdict.ROBUST:
            assert least > 0, about
        elif answer.verdict is Verdict.BROKEN:
            assert slack <= 1e-5, about
        decided += answer.verdict is not Verdict.UNKNOWN
    assert decided >= 3


@pytest.mark.parametrize("seed", range(6))
def test_networks_that_end_in_a_clip(seed):
    """Outputs tie at both ends there, and a tie counts as broken."""
    builder = Builder(seed, (4,)).dense(6).apply("Relu").dense(3).balance().clip(-0.3, 0.4)
    network = load_classifier(builder.model(), name=f"clipped-{seed}")
    instance = random_instance(network, seed)
    exact = exact_radius(network, instance.x, instance.label)
    radius = measure(network, instance, tolerance=1e-3)
    if exact == 0:
        assert radius.status is Status.MISCLASSIFIED
        return
    assert radius.status is Status.CLOSED
    assert radius.lower <= exact + 1e-9
    assert radius.upper >= exact * (1 - 1e-5)


def test_float32_arithmetic_is_refused_where_no_runtime_promises_it():
    deployed = Native(effort="fast", arithmetic="float32")
    network = curved(0, "tanh")
    instance = random_instance(network, 0)
    with pytest.raises(UnsupportedOperator, match=r"float32.*Tanh.*real"):
        deployed.measure(network, [instance], Classification(), LINF, BUDGET, tolerance=1e-3)
    with pytest.raises(UnsupportedOperator, match=r"Sigmoid"):
        deployed.decide(curved(0, "squashed"), [Query(instance, 0.1)], BUDGET)


def test_float32_margins_of_products_hold_in_float32():
    network = curved(2, "square")
    instance = random_instance(network, 2)
    deployed = Native(effort="fast", arithmetic="float32")
    radius = deployed.measure(network, [instance], Classification(), LINF, BUDGET, tolerance=1e-3)[0]
    assert radius.status is Status.CLOSED
    assert radius.proof.arithmetic == "float32"
    x = points(instance.x, radius.lower, "linf", (0.0, 1.0), count=10_000).astype(np.float32)
    outputs = network.reference(x)
    assert (outputs[:, instance.label] > np.delete(outputs, instance.label, axis=1).max(1)).all()


def test_nodes_in_the_budget_repeat_exactly_and_more_of_them_prove_more():
    network = conv_tanh(4)
    instance = random_instance(network, 4)
    few, again, more = (measure(network, instance, budget=Budget(None, nodes=n), tolerance=1e-7) for n in (40, 40, 400))
    assert (few.lower, few.upper, few.cost.nodes) == (again.lower, again.upper, again.cost.nodes)
    assert few.lower <= more.lower < more.upper
