"""Hidden signs: settled where they hold, left alone where most neurons really take both; exact radii on both paths."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from tests.bounds.balls import dense_graph, region
from tests.engine.tuned import settling

from radii.bounds.intermediate import bound_root
from radii.decide import Budget
from radii.engine import sign_prover
from radii.engine.budget import Meter
from radii.engine.condensed import CondensedRoot, condense
from radii.engine.frontier import Frontier
from radii.engine.goals import Goal, Outcome, climb
from radii.engine.hidden_layers import mixed_share, settle_signs
from radii.engine.native import Native
from radii.engine.output_rows import margins
from radii.engine.prover import Limits
from radii.engine.radius_search import RadiusSearch
from radii.engine.sign_prover import End, SignProver
from radii.engine.tuning import DEFAULT
from radii.problem import L1, L2, LINF, Classification, Query, Status, Verdict
from radii.testing import exact_radius, random_instance, relu_toy

SHAPES = ((4, 7, 6, 6, 3), (5, 6, 6, 5, 5, 3))
NODES = Budget(None, nodes=20_000)  # the same steps every time


def second_layer(rows: list[list[float]], bias: list[float]):
    """The condensed network of relu(x), relu(x − ½) and relu(−x) on [−1, 1], followed by these neurons."""
    first = ([[1.0], [1.0], [-1.0]], [0.0, -0.5, 0.0])
    return condense(bound_root(dense_graph([first, (rows, bias), ([[1.0] * len(bias)], [0.0])]), region([0.0], 1.0)))


def test_neurons_that_take_both_signs_are_told_from_those_that_do_not():
    # relu(x) − relu(x − ½) + .05 lies in [.05, .55], and linear bounds do not see it; relu(x) − ½ takes both signs.
    held, both = [1.0, -1.0, 0.0], [1.0, 0.0, 0.0]
    assert [len(which) for _, which in second_layer([held, both], [0.05, -0.5]).where] == [3, 2]
    assert mixed_share(second_layer([held, held], [0.05, 0.06])) == 0.0
    assert mixed_share(second_layer([both, both], [-0.5, -0.4])) == 1.0
    assert mixed_share(second_layer([held, both], [0.05, -0.5])) == 0.5


def test_without_nodes_to_spend_slopes_alone_tighten_hidden_bounds():
    graph = relu_toy(3, SHAPES[1]).graph.to(torch.float64)
    root = bound_root(graph, region(torch.full((5,), 0.5), 0.3))
    ball = CondensedRoot(root, condense(root))
    steps = [root, *(settled.root for settled, _, _ in settle_signs(ball, lambda visited: True, 0))]
    widths = [sum(float((v.high - v.low).sum()) for v in step.lines.values()) for step in steps]
    assert widths[-1] < 0.999 * widths[0]


@pytest.mark.parametrize("threshold", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_radii_hold_whichever_way_is_taken(seed, threshold, monkeypatch):
    """With plain trees kept short, all networks go on as mixed ones, or none does."""
    settled = []
    whole = SignProver._settle
    monkeypatch.setattr(SignProver, "_settle", lambda *a: settled.append(a) or whole(*a))
    network = relu_toy(seed, SHAPES[seed % 2])
    instance = random_instance(network, seed, reach=0.4)
    norm = (LINF, L2, LINF, L1)[seed % 4]
    exact = exact_radius(network, instance.x, instance.label, norm)
    native = Native(effort="fast", tuning=settling(threshold, plain_shallow=600))
    radius = native.measure(network, [instance], Classification(), norm, NODES, tolerance=1e-3, limit=3.0)[0]
    if exact == 0:
        assert radius.status is Status.MISCLASSIFIED
        return
    if threshold == 0.0:
        assert not settled
    assert radius.lower <= exact * (1 + 1e-9) + 1e-9
    assert radius.upper is None or radius.upper >= exact * (1 - 1e-5) - 1e-6
    below, beyond = (Query(instance, exact * part, norm=norm) for part in (0.9, 1.1))
    answers = native.decide(network, [below, beyond], NODES)
    assert answers[0].verdict is not Verdict.BROKEN
    assert answers[1].verdict is not Verdict.ROBUST
    if norm is LINF:
        assert radius.status in (Status.CLOSED, Status.ROBUST)
        assert answers[0].verdict is Verdict.ROBUST


def test_each_way_is_taken(monkeypatch):
    ways = []
    whole = sign_prover.settle_signs
    monkeypatch.setattr(sign_prover, "settle_signs", lambda *a, **k: ways.append(a[2]) or whole(*a, **k))
    for threshold in (0.0, 2.0):
        native = Native(effort="fast", tuning=settling(threshold, plain_shallow=600))
        for seed in range(6):
            network = relu_toy(seed, SHAPES[1])
            instance = random_instance(network, seed, reach=0.4)
            exact = exact_radius(network, instance.x, instance.label, LINF)
            native.decide(network, [Query(instance, 0.97 * exact)], NODES)
        ways.append(None)
    mixed, settled = ways[: ways.index(None)], ways[ways.index(None) + 1 : -1]
    assert set(mixed) == {0}
    assert settled
    assert 0 not in settled


@pytest.mark.parametrize(("slopes", "caps"), [(0.0, []), (1e9, [0])])
def test_where_it_costs_little_hidden_bounds_get_slopes_of_their_own(slopes, caps, monkeypatch):
    seen = []
    whole = sign_prover.settle_signs
    monkeypatch.setattr(sign_prover, "settle_signs", lambda *a, **k: seen.append(a[2]) or whole(*a, **k))
    mixed = settling(0.0)
    search, _ = deep_search(1000, replace(mixed, settling=replace(mixed.settling, slopes=slopes)))
    search.proven = True
    assert not SignProver(search).attempt(Goal(1.0, 0.5, None, 50.0, 77.0)).proven
    assert seen == caps


@pytest.mark.parametrize("seed", range(4))
def test_radii_hold_with_slopes_of_their_own_for_hidden_bounds(seed):
    network = relu_toy(seed, SHAPES[seed % 2])
    instance = random_instance(network, seed, reach=0.4)
    exact = exact_radius(network, instance.x, instance.label, LINF)
    mixed = settling(0.0)
    native = Native(effort="fast", tuning=replace(mixed, settling=replace(mixed.settling, slopes=1e9)))
    radius = native.measure(network, [instance], Classification(), LINF, NODES, tolerance=1e-3, limit=3.0)[0]
    assert radius.status in (Status.CLOSED, Status.ROBUST)
    assert radius.lower <= exact * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("until", "least", "caps"),
    [
        (1.0, 16, [16, 48, 144]),  # passes cost 1/60 of the budget for 16 nodes per neuron: all three fit
        (0.1, 16, [16, 48]),  # a third one would not
        (0.05, 16, [16, 25]),  # the second has what fits
        (0.03, 16, [16]),  # too little for a pass worth its name
        (1.0, 40, [40, 120, 360]),  # as proven goals have shown
    ],
)
def test_no_pass_is_begun_that_cannot_end_in_time(until, least, caps, monkeypatch):
    prover, seen = passes_of(monkeypatch, Goal(1.0, 1.0, deep_nodes=least), until, bottleneck=True)
    assert seen == caps
    assert prover.outcome.deep_nodes == pytest.approx(caps[-1], abs=1)


def test_a_decision_has_nothing_to_save_its_time_for(monkeypatch):
    assert passes_of(monkeypatch, None)[1] == [16, 48, 144]


@pytest.mark.parametrize("nodes", [16.0, 77.0])
def test_without_a_bottleneck_a_goal_of_the_ladder_has_one_pass(nodes, monkeypatch):
    prover, seen = passes_of(monkeypatch, Goal(1.0, 1.0, deep_nodes=nodes), 1.0)
    assert seen == [nodes]
    assert prover.outcome.deep_nodes == nodes


def test_an_outcome_tells_of_the_last_pass():
    """What the frontier lives on: the nodes per neuron of a pass that was begun, and how many layers it settled."""
    search, _ = deep_search(1000, settling(2.0))
    search.proven = True
    found = SignProver(search).attempt(Goal(1.0, 0.5, None, 50.0, 77.0))
    assert not found.proven
    assert found.deep_nodes == 77.0
    assert 0 < found.settled[0] <= found.settled[1]


@pytest.mark.parametrize(("threshold", "nodes"), [(0.0, None), (2.0, None), (0.0, 1), (2.0, 1)])
def test_an_outcome_tells_whether_hidden_layers_are_left_alone(threshold, nodes):
    search, _ = deep_search(1000, settling(threshold))
    search.proven = True
    found = SignProver(search).attempt(Goal(1.0, 0.5, nodes, 50.0, 77.0))
    assert not found.proven
    assert found.plain == (threshold == 0.0)


def deep_search(nodes, tuning=DEFAULT):
    """A search in a deep network with so many nodes, and its meter."""
    network = relu_toy(3, SHAPES[1])
    instance = random_instance(network, 3, reach=0.4)
    meter = Meter(Budget(None, nodes=nodes))
    asked = margins(network, instance.label, Classification())
    return RadiusSearch(
        asked, lambda e: region(instance.x, e), 1e-3, meter, lambda _: None, limit=1.0, tuning=tuning
    ), meter


def passes_of(monkeypatch, goal, until=1.0, bottleneck=False):
    """The nodes per neuron of the passes over a deep network that never prove their goal, and the prover.

    Without a goal of many it is the only one.
    """
    search, meter = deep_search(60 * 16)
    prover = SignProver(search)
    prover.outcome = Outcome(False, bottleneck=bottleneck)
    seen = []

    def take(ball, radius, limits, nodes):
        seen.append(int(nodes))
        meter.nodes += int(nodes)
        return End.AGAIN, ball

    monkeypatch.setattr(prover, "_pass", take)
    root = bound_root(search.margins.graph, search.region(1.0))
    ball = CondensedRoot(root, condense(root))
    assert ball.depth > prover.settling.deep
    if goal is None:
        assert not prover._settle_fully(ball, 1.0, Limits())
    else:
        assert not prover._settle(ball, 1.0, goal, Limits(until, None))
    return prover, seen


def test_a_leap_that_comes_to_no_pass_is_not_tried_again():
    search, meter = deep_search(100)
    search.lower, search.proven = 0.5, True
    goals = climb(search, Frontier(near=True, reach=0.5, cost=0.05))
    asked = [next(goals)]
    while meter.over is None:
        meter.nodes += 30
        search.stopped = meter.over
        with suppress(StopIteration):
            asked.append(goals.send(Outcome(False)))
    assert asked[0].deep_nodes > 16
    assert len(asked) > 2
    assert all(goal.deep_nodes == 16 for goal in asked[1:])
