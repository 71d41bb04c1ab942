"""Native: its radii hold the exact ones, its proofs hold at random points, and bad input is refused in one line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.balls import points

from radii.bounds.lowering import refuse_unsupported
from radii.decide import Budget, replay
from radii.engine.native import Native
from radii.engine.radius_search import RadiusSearch
from radii.errors import DataError, InputError, UnsupportedOperator
from radii.models import load_classifier
from radii.models.graph import Graph, Node
from radii.models.operators import Scale, Softmax
from radii.problem import L1, L2, LINF, Classification, Instance, Norm, Query, Radius, Reason, Status, Verdict
from radii.search import direct
from radii.testing import KINDS, exact_radius, linear_toy, random_instance, random_network, relu_toy
from radii.testing._build import Builder

BUDGET = Budget(seconds=20)
TOLERANCE = 1e-3
LIMIT = 3.0
QUICK = Native(effort="fast")
SEEN = 1e-5  # relative: witnesses are float32, and the exact solvers have tolerances


def measure(network, instance, norm: Norm = LINF, target: int | None = None, budget: Budget = BUDGET, **more) -> Radius:
    options = {"tolerance": TOLERANCE, "limit": LIMIT, **more}
    return QUICK.measure(network, [instance], Classification(target), norm, budget, **options)[0]


def check_exact(seed: int, kind: str, norm: Norm, domain: tuple | None, targeted: bool) -> None:
    """[lower, upper] holds the exact radius, and is closed."""
    network = random_network(seed, kind, domain)
    instance = random_instance(network, seed)
    target = (instance.label + 1) % network.classes if targeted else None
    exact = exact_radius(network, instance.x, instance.label, norm, target)
    radius = measure(network, instance, norm, target)
    about = f"{kind} {seed} {norm} domain {domain} target {target}: exact {exact!r}, got {radius}"
    if exact == 0:
        assert radius.status is Status.MISCLASSIFIED, about
        return
    assert radius.lower is None or radius.lower <= exact * (1 + 1e-9) + 1e-9, about
    assert radius.upper is None or radius.upper >= exact * (1 - SEEN) - 1e-6, about
    assert radius.status in (Status.CLOSED, Status.ROBUST), about
    if radius.status is Status.ROBUST:
        assert exact >= LIMIT - 1e-6, about


@pytest.mark.parametrize("seed", range(60))
def test_exact_on_random_networks(seed):
    """Every kind of network with each of its settings: the domain, the target and the norm change with the seed."""
    kind = KINDS[seed % len(KINDS)]
    check_exact(seed, kind, (LINF, L2, L1)[seed // 10 % 3], (0.0, 1.0) if seed // 30 else None, seed % 4 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 400))
def test_exact_on_two_hundred_random_networks(seed):
    for norm in (LINF, L2, L1):
        check_exact(seed, KINDS[seed % len(KINDS)], norm, (0.0, 1.0) if seed // 2 % 2 else None, seed % 3 == 0)


@given(
    st.integers(1000, 10**6),
    st.sampled_from(KINDS),
    st.sampled_from((LINF, L2, L1)),
    st.sampled_from((None, (0.0, 1.0))),
    st.booleans(),
)
@settings(max_examples=12)
def test_hypothesis_finds_no_network_that_is_wrong(seed, kind, norm, domain, targeted):
    check_exact(seed, kind, norm, domain, targeted)


@pytest.mark.parametrize("norm", [LINF, L2, L1])
@pytest.mark.parametrize("domain", [None, (0.0, 1.0)])
def test_linear_networks_are_closed_at_the_root(norm, domain):
    toy = linear_toy(4, domain=domain)
    instance = random_instance(toy.classifier, 4)
    exact = toy.radius(instance.x, instance.label, norm)
    radius = measure(toy.classifier, instance, norm, tolerance=1e-6)
    assert radius.lower <= exact * (1 + 1e-12)
    assert radius.lower == pytest.approx(exact, abs=2e-6)
    assert radius.upper == pytest.approx(exact, abs=2e-6)


@pytest.mark.parametrize("kind", ["dense", "residual", "leaky", "maxpool"])
@pytest.mark.parametrize("norm", [LINF, L2, L1])
def test_decisions_on_both_sides_of_the_exact_radius(kind, norm):
    network = random_network(7, kind)
    instance = random_instance(network, 7)
    exact = exact_radius(network, instance.x, instance.label, norm)
    queries = [Query(instance, exact * f, Classification(), norm) for f in (0.5, 0.995, 1.005, 2.0)]
    answers = QUICK.decide(network, queries, BUDGET)
    assert [a.verdict for a in answers] == [Verdict.ROBUST, Verdict.ROBUST, Verdict.BROKEN, Verdict.BROKEN]
    assert all(a.proof.arithmetic == "real" for a in answers[:2])
    for query, answer in zip(queries[2:], answers[2:]):
        assert replay(network, query, answer.witness.x) is not None


@pytest.mark.parametrize("norm", [LINF, L2, L1])
def test_ten_thousand_points_of_proven_balls_break_nothing(norm):
    for seed, kind in enumerate(("dense", "conv", "residual", "clip"), start=20):
        network = random_network(seed, kind)
        instance = random_instance(network, seed)
        radius = measure(network, instance, norm)
        assert radius.lower is not None
        x = points(instance.x, radius.lower, norm.name, (0.0, 1.0), count=10_000, seed=seed).astype(np.float32)
        inside = np.array([norm.distance(p, instance.x) <= radius.lower for p in x])
        outputs = network.reference(x[inside].reshape(-1, *network.input_shape))
        others = np.delete(outputs, instance.label, axis=1).max(1)
        assert inside.sum() > 5_000
        assert np.all(outputs[:, instance.label] > others - 1e-5)
        ball = Query(instance, radius.upper, Classification(), norm)
        assert replay(network, ball, radius.witness.x) is not None
        assert radius.witness.distance == radius.upper


def test_networks_that_end_in_a_relu():
    """Outputs tie at 0 there, and a tie counts as broken."""
    for seed in range(3):
        builder = Builder(seed, (4,)).dense(6).apply("Relu").dense(3).balance().apply("Relu")
        network = load_classifier(builder.model(), name=f"rectified-{seed}")
        instance = random_instance(network, seed)
        exact = exact_radius(network, instance.x, instance.label)
        radius = measure(network, instance)
        if exact == 0:
            assert radius.status is Status.MISCLASSIFIED
        else:
            assert radius.status is Status.CLOSED
            assert radius.lower <= exact + 1e-9
            assert radius.upper >= exact * (1 - SEEN)


def test_a_misclassified_input_has_radius_zero_and_is_not_searched():
    network = random_network(3, "dense")
    instance = random_instance(network, 3)
    wrong = Instance(instance.x, (instance.label + 1) % network.classes)
    radius = measure(network, wrong)
    assert (radius.lower, radius.upper, radius.status) == (0.0, 0.0, Status.MISCLASSIFIED)
    assert radius.prediction == instance.label
    assert (radius.cost.nodes, radius.cost.queries) == (0, 0)


def test_right_and_wrong_inputs_keep_their_places_in_a_batch():
    network = random_network(3, "dense")
    instances = [random_instance(network, seed) for seed in (3, 4, 5)]
    instances[1] = Instance(instances[1].x, (instances[1].label + 1) % network.classes)
    seen: list[int] = []
    radii = QUICK.measure(
        network, instances, Classification(), LINF, BUDGET, tolerance=0.01, progress=lambda at, _: seen.append(at)
    )
    assert [r.status is Status.MISCLASSIFIED for r in radii] == [False, True, False]
    assert seen == [0, 1, 2]
    for instance, radius in zip(instances, radii):
        exact = exact_radius(network, instance.x, instance.label)
        assert radius.lower <= exact + 1e-9
        assert radius.upper >= exact * (1 - SEEN)


@pytest.mark.parametrize("bad", [0, -1, math.nan])
def test_a_tolerance_of_nothing_is_refused(bad):
    network = random_network(1, "dense")
    with pytest.raises(InputError, match="tolerance: expected"):
        measure(network, random_instance(network, 1), tolerance=bad)


@pytest.mark.parametrize("budget", [{"seconds": 0}, {"seconds": -1}, {"nodes": 0}, {"memory": 0}])
def test_a_budget_of_nothing_is_refused(budget):
    with pytest.raises(InputError, match="budget"):
        Budget(**budget)


def test_an_input_outside_the_domain_is_refused():
    network = random_network(1, "dense")
    outside = Instance(np.full(network.input_shape, 1.5, dtype=np.float32), 0)
    with pytest.raises(DataError, match=r"1\.5"):
        measure(network, outside)


def test_an_unbounded_domain_without_a_witness_asks_for_a_limit():
    builder = Builder(0, (2,))
    builder.apply("Gemm", builder.constant(np.zeros((2, 2))), builder.constant(np.array([1.0, 0.0])), shape=(2,))
    network = load_classifier(builder.model(), domain=None, name="constant")
    instance = Instance(np.zeros(2, dtype=np.float32), 0)
    with pytest.raises(InputError, match="limit"):
        measure(network, instance, limit=None)
    assert measure(network, instance, limit=2.5).status is Status.ROBUST


def test_operators_without_bounds_are_named_and_the_attack_is_offered():
    graph = random_network(0, "dense").graph
    size = graph.nodes[-1].size
    soft = Node(Softmax(), (len(graph.nodes) - 1,), (size,), "attention")
    inner = Graph((*graph.nodes, soft, Node(Scale(torch.tensor(2.0)), (len(graph.nodes),), (size,))))
    with pytest.raises(UnsupportedOperator, match=r"Softmax \(node attention\).*attack") as caught:
        refuse_unsupported(inner)
    assert caught.value.operators == ("Softmax",)


def test_the_same_seed_and_nodes_give_the_same_radius():
    network = relu_toy(2, (6, 16, 16, 4))
    instance = random_instance(network, 2)
    first, second = (measure(network, instance, L2, budget=Budget(None, nodes=60), tolerance=1e-6) for _ in range(2))
    assert (first.lower, first.upper, first.cost.nodes) == (second.lower, second.upper, second.cost.nodes)
    assert np.array_equal(first.witness.x, second.witness.x)


def test_a_small_budget_leaves_a_valid_open_interval():
    network = relu_toy(3, (10, 40, 40, 40, 4))
    instance = random_instance(network, 3, reach=0.4)
    few = measure(network, instance, budget=Budget(None, nodes=20), tolerance=1e-7)
    more = measure(network, instance, budget=Budget(None, nodes=400), tolerance=1e-7)
    for radius in (few, more):
        assert radius.lower is None or radius.upper is None or radius.lower < radius.upper
    assert (few.lower or 0.0) <= (more.lower or 0.0) + 1e-12
    hurried = measure(network, instance, budget=Budget(seconds=1e-3), tolerance=1e-7)
    assert hurried.status in (Status.OPEN, Status.UNSOLVED)
    assert hurried.cost.timeouts == 1
    (answer,) = QUICK.decide(network, [Query(instance, more.upper * 0.9999)], Budget(seconds=1e-3))
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.reason is Reason.TIME


def test_memory_that_is_used_up_is_an_answer():
    network = relu_toy(3, (10, 40, 40, 40, 4))
    instance = random_instance(network, 3, reach=0.4)
    radius = measure(network, instance, budget=Budget(seconds=20, memory=1), tolerance=1e-7)
    assert radius.cost.memory_errors == 1
    assert radius.status in (Status.OPEN, Status.UNSOLVED)


def test_other_properties_and_targets_are_refused_in_one_line():
    network = random_network(1, "dense")
    instance = random_instance(network, 1)
    with pytest.raises(InputError, match="target: expected"):
        measure(network, instance, target=network.classes)
    with pytest.raises(InputError, match="target: expected another class"):
        measure(network, instance, target=instance.label)


def test_a_contradiction_stops_its_own_instance_only(monkeypatch, caplog):
    """A prover that goes wrong on one of three inputs: an alarm names both ends, the other radii are as they were."""
    network = linear_toy(3, inputs=4, classes=3).classifier
    instances = [random_instance(network, seed) for seed in range(3)]
    asked = network, instances, Classification(), LINF, Budget(seconds=None, nodes=50)
    before = QUICK.measure(*asked, tolerance=TOLERANCE)
    search = RadiusSearch.run

    def wrong(self: RadiusSearch) -> None:
        search(self)
        if self.upper == before[1].upper:
            self.lower, self.proven = 2.0 * self.upper, True

    monkeypatch.setattr(RadiusSearch, "run", wrong)
    heard: list[int] = []
    found = direct(network, QUICK, instances, asked[-1], tolerance=TOLERANCE, progress=lambda k, _: heard.append(k))
    assert heard == [0, 1, 2]
    assert [(r.lower, r.upper) for r in found[::2]] == [(r.lower, r.upper) for r in before[::2]]
    one, upper = found[1], before[1].upper
    assert (one.lower, one.proof, one.upper, one.status) == (None, None, upper, Status.OPEN)
    assert one.witness is not None
    assert one.alarm.startswith(f"contradiction: proven robust up to {2.0 * upper!r} but a witness at {upper!r} was")
    assert one.alarm in caplog.text
