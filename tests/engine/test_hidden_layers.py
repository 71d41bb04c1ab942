"""Hidden signs: settled where they hold, left alone where most neurons really take both; exact radii on both paths."""

from __future__ import annotations

import pytest
import torch
from tests.bounds.balls import dense_graph, region

from radii.bounds.intermediate import bound_root
from radii.decide import Budget
from radii.engine import radius_search as pursuit
from radii.engine.budget import Meter
from radii.engine.condensed import condense
from radii.engine.frontier import Frontier
from radii.engine.hidden_layers import mixed_share, settle_signs
from radii.engine.native import Native
from radii.engine.output_rows import margins
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
    steps = [root, *(settled for settled, _, _ in settle_signs(root, lambda visited: True, 0))]
    widths = [sum(float((v.high - v.low).sum()) for v in step.lines.values()) for step in steps]
    assert widths[-1] < 0.999 * widths[0]


@pytest.mark.parametrize("threshold", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(8))
def test_radii_hold_whichever_way_is_taken(seed, threshold, monkeypatch):
    """With plain trees kept short, all networks go on as mixed ones, or none does."""
    monkeypatch.setattr(pursuit, "PLAIN_DEEP", 1)
    monkeypatch.setattr(pursuit, "MIXED", threshold)
    settled = []
    whole = pursuit.RadiusSearch._settle
    monkeypatch.setattr(pursuit.RadiusSearch, "_settle", lambda *a: settled.append(a) or whole(*a))
    network = relu_toy(seed, SHAPES[seed % 2])
    instance = random_instance(network, seed, reach=0.4)
    norm = (LINF, L2, LINF, L1)[seed % 4]
    exact = exact_radius(network, instance.x, instance.label, norm)
    native = Native(effort="fast")
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
    monkeypatch.setattr(pursuit, "PLAIN_DEEP", 1)
    ways = []
    whole = pursuit.settle_signs
    monkeypatch.setattr(pursuit, "settle_signs", lambda *a, **k: ways.append(a[2]) or whole(*a, **k))
    for threshold in (0.0, 2.0):
        monkeypatch.setattr(pursuit, "MIXED", threshold)
        for seed in range(6):
            network = relu_toy(seed, SHAPES[1])
            instance = random_instance(network, seed, reach=0.4)
            exact = exact_radius(network, instance.x, instance.label, LINF)
            Native(effort="fast").decide(network, [Query(instance, 0.97 * exact)], NODES)
        ways.append(None)
    mixed, settled = ways[: ways.index(None)], ways[ways.index(None) + 1 : -1]
    assert set(mixed) == {0}
    assert settled
    assert 0 not in settled


@pytest.mark.parametrize(
    ("limit", "least", "caps"),
    [
        (1.0, 16, [16, 48, 144]),  # passes cost 1/60 of the budget for 16 nodes a sign: all three fit
        (0.1, 16, [16, 48]),  # a third one would not
        (0.05, 16, [16, 25]),  # the second has what fits
        (0.03, 16, [16]),  # too little for a pass worth its name
        (1.0, 40, [40, 120, 360]),  # as proven goals have shown
        (None, 16, [16, 48, 144]),  # a decision has nothing to save its time for
    ],
)
def test_no_pass_is_begun_that_cannot_end_in_time(limit, least, caps, monkeypatch):
    search, seen = passes_of(limit, monkeypatch, least=least, necked=True)
    assert seen == caps
    assert search.reached == pytest.approx(caps[-1], abs=1)


@pytest.mark.parametrize(("leap", "cap"), [(None, 16), (77.0, 77)])
def test_without_a_bottleneck_a_goal_of_the_ladder_has_one_pass(leap, cap, monkeypatch):
    search, seen = passes_of(1.0, monkeypatch, leap=leap)
    assert seen == [cap]
    assert search.reached == cap


def deep_search(nodes):
    """A search in a deep network with so many nodes, and its meter."""
    network = relu_toy(3, SHAPES[1])
    instance = random_instance(network, 3, reach=0.4)
    meter = Meter(Budget(None, nodes=nodes))
    asked = margins(network, instance.label, Classification())
    return pursuit.RadiusSearch(asked, lambda e: region(instance.x, e), 1e-3, meter, lambda _: None, limit=1.0), meter


def passes_of(limit, monkeypatch, **state):
    """The nodes a sign of the passes over a deep network that never prove their goal, and the search."""
    search, meter = deep_search(60 * 16)
    for name, value in state.items():
        setattr(search, name, value)
    seen = []

    def take(root, goal, until, cap, nodes):
        seen.append(cap)
        meter.nodes += cap
        search.roots[goal] = root
        return None

    monkeypatch.setattr(search, "_pass", take)
    root = bound_root(search.margins.graph, search.region(1.0))
    assert sum(bool(lines.unstable.any()) for lines in root.lines.values()) > pursuit.DEEP
    assert not search._settle(root, 1.0, limit, None)
    return search, seen


def test_a_leap_that_comes_to_no_pass_is_not_tried_again(monkeypatch):
    search, meter = deep_search(100)
    search.lower, search.proven = 0.5, True
    frontiers = iter([Frontier(near=True, reach=0.5, cost=0.05)])
    monkeypatch.setattr(pursuit, "Frontier", lambda: next(frontiers, Frontier()))
    goals = []

    def fail(goal, share):
        goals.append((goal, search.leap))
        meter.nodes += 30
        search.stopped = meter.over
        return False

    monkeypatch.setattr(search, "_try", fail)
    search._climb()
    assert goals[0][1] > 16
    assert len(goals) > 2
    assert all(leap is None for _, leap in goals[1:])
