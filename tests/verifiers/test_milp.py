"""The MILP verifier against closed forms, brute force and the limits it is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.verifiers.nets import Net, convnet, f32, mlp

from radii.decide import Budget
from radii.errors import InputError
from radii.logit_query import logit_query
from radii.problem import (
    L1,
    L2,
    LINF,
    Classification,
    Clause,
    Domain,
    Instance,
    Lipschitz,
    OutputSpec,
    Query,
    Reason,
    SpecQuery,
    Standard,
    Status,
    StrongClassification,
    Verdict,
)
from radii.verifiers._mip_model import least_margin
from radii.verifiers.encode import encode, unsupported
from radii.verifiers.milp import Milp, safety

RNG = np.random.default_rng(11)
SOLVERS = ["highs", pytest.param("scip", marks=pytest.mark.filterwarnings("ignore"))]
WIDE = Domain(-100.0, 100.0)


def linear(weight, bias, domain=WIDE):
    net = Net((len(weight[0]),))
    net.add("Gemm", f32(weight), f32(bias), transB=1)
    return net.build(len(weight), domain)


def exact_radius(weight, bias, x, label, norm):
    """The distance to the nearest tie of a linear classifier: |margin| over the dual norm."""
    weight, bias, x = (np.asarray(v, np.float64) for v in (weight, bias, x))
    found = []
    for j in range(len(bias)):
        if j != label:
            row = weight[label] - weight[j]
            found.append((row @ x + bias[label] - bias[j]) / norm.dual.size(row))
    return min(found)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("norm", [LINF, L1])
def test_linear_classifier_has_its_dual_norm_radius(solver, norm):
    weight, bias = f32(RNG.normal(size=(3, 5))), f32(RNG.normal(size=3))
    network, x = linear(weight, bias), f32(RNG.normal(size=5))
    instance = Instance(x, int(network.predict(x)))
    truth = exact_radius(weight, bias, x, instance.label, norm)
    asked = [Query(instance, truth * f, norm=norm) for f in (0.999, 1.001)]
    verdicts = [a.verdict for a in Milp(solver).decide(network, asked, Budget(20))]
    assert verdicts == [Verdict.ROBUST, Verdict.BROKEN]
    (radius,) = Milp(solver).measure(
        network, [instance], Classification(), norm, Budget(20), tolerance=1e-3 * truth, limit=3 * truth
    )
    assert radius.status is Status.CLOSED
    # The witness is a float32 one: rounding may break it a hair before the real tie.
    assert radius.lower <= truth <= radius.upper * (1 + 1e-6)


@pytest.mark.parametrize("norm", [LINF, L1])
def test_measure_brackets_what_decide_says(norm):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        network = mlp(rng, [3, 8, 6, 3])
        x = f32(rng.uniform(size=3))
        instance = Instance(x, int(network.predict(x)))
        (radius,) = Milp().measure(network, [instance], Classification(), norm, Budget(30), tolerance=1e-4)
        if radius.upper is None:
            continue
        assert radius.status is Status.CLOSED
        below, above = Milp().decide(
            network,
            [Query(instance, radius.lower * 0.9999, norm=norm), Query(instance, radius.upper * 1.001, norm=norm)],
            Budget(30),
        )
        assert below.verdict is Verdict.ROBUST
        assert above.verdict is Verdict.BROKEN
        assert norm.distance(radius.witness.x, x) == radius.upper


def test_every_property_agrees_with_sampling():
    network = mlp(RNG, [2, 6, 3])
    x = f32([0.4, 0.5])
    instance = Instance(x, int(network.predict(x)))
    grid = f32(np.stack(np.meshgrid(*[np.linspace(-0.1, 0.1, 81)] * 2), -1).reshape(-1, 2) + x)
    logits = network(grid)
    top = float(logits[:, instance.label].min())
    change = float(np.abs(logits - network.reference(x)).max())
    cases = [
        (StrongClassification(top - 0.05), Verdict.ROBUST),
        (StrongClassification(top + 0.05), Verdict.BROKEN),
        (Standard(change + 0.05), Verdict.ROBUST),
        (Standard(change - 0.05), Verdict.BROKEN),
    ]
    for property, expected in cases:
        (answer,) = Milp().decide(network, [Query(instance, 0.1, property)], Budget(20))
        assert answer.verdict is expected, property


def test_conjunctions_and_boxes():
    network = linear([[1, 0], [0, 1]], [0, 0])
    both = Clause(np.array([[-1.0, 0.0], [0.0, -1.0]]), np.array([-0.6, -0.6]))  # y0 ≥ .6 and y1 ≥ .6
    for high, expected in ((0.7, Verdict.BROKEN), (0.5, Verdict.ROBUST)):
        box = SpecQuery(np.zeros(2), np.array([1.0, high]), OutputSpec((both,)))
        assert Milp().decide_spec(network, box, Budget(10)).verdict is expected


def test_a_tie_is_broken_and_a_margin_below_the_safety_is_never_robust():
    network = linear([[1.0], [-1.0]], [0.0, 0.0], Domain(-1, 1))
    (tie,) = Milp().decide(network, [Query(Instance(f32([0.5]), 0), 0.5)], Budget(10))
    assert tie.verdict is Verdict.BROKEN
    # Margin 2·(0.5 − ε): 4e-9 is far below what the solver's tolerance is worth.
    query = Query(Instance(f32([0.5]), 0), 0.5 - 2e-9)
    question = logit_query(network, query, ("linf",), unsupported)
    encoding = encode(network.graph, question.region.low, question.region.high)
    assert safety(least_margin(encoding, question.region, question.spec.clauses[0])) > 4e-9
    assert Milp().decide(network, [query], Budget(10))[0].verdict is not Verdict.BROKEN


def test_misclassified_inputs_have_radius_zero():
    network = linear([[1.0], [-1.0]], [0.0, 0.0])
    wrong = Instance(f32([-0.5]), 0)
    assert Milp().decide(network, [Query(wrong, 0.0)], Budget(10))[0].verdict is Verdict.BROKEN
    (radius,) = Milp().measure(network, [wrong], Classification(), LINF, Budget(10), tolerance=1e-3, limit=1.0)
    assert radius.status is Status.MISCLASSIFIED


def test_limits_are_obeyed_and_say_so():
    rng = np.random.default_rng(3)
    network = mlp(rng, [30, 60, 60, 5])
    instance = Instance(f32(rng.uniform(size=30)), 0)
    instance = Instance(instance.x, int(network.predict(instance.x)))
    query = Query(instance, 0.12)
    (late,) = Milp().decide(network, [query], Budget(seconds=0.4))
    assert (late.verdict, late.reason) == (Verdict.UNKNOWN, Reason.TIME)
    assert late.cpu_seconds < 3.0
    (full,) = Milp().decide(network, [query], Budget(seconds=60, memory=2**20))
    assert (full.verdict, full.reason) == (Verdict.UNKNOWN, Reason.MEMORY)
    (radius,) = Milp().measure(network, [instance], Classification(), LINF, Budget(seconds=1.0), tolerance=1e-4)
    assert radius.lower is None or radius.upper is None or radius.lower < radius.upper


def test_what_it_cannot_do_is_an_answer_with_the_reason():
    network = convnet(RNG)
    x = f32(RNG.uniform(size=(1, 5, 5)))
    instance = Instance(x, int(network.predict(x)))
    for query, words in (
        (Query(instance, 0.1, norm=L2), "norm"),
        (Query(instance, 0.1, Lipschitz(3.0)), "lipschitz"),
        (Query(Instance(x + 3.0, 0), 0.1), "domain"),
    ):
        (answer,) = Milp().decide(network, [query], Budget(5))
        assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.UNSUPPORTED)
        assert words in answer.detail


def test_a_query_for_another_network_is_refused():
    network = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    with pytest.raises(InputError, match="expected"):
        Milp().decide(network, [Query(Instance(f32(np.zeros(3)), 0), 0.1)], Budget(5))
    other = SpecQuery(np.zeros(3), np.ones(3), OutputSpec((Clause(np.ones((1, 2)), np.zeros(1)),)))
    with pytest.raises(InputError, match="another network"):
        Milp().decide_spec(network, other, Budget(5))


def test_unknown_solver_and_unbounded_search_are_refused():
    with pytest.raises(InputError, match="highs"):
        Milp("hihgs")
    network = linear([[1.0], [-1.0]], [0.0, 0.0], Domain(-math.inf, math.inf))
    with pytest.raises(InputError, match="limit"):
        Milp().measure(network, [Instance(f32([0.5]), 0)], Classification(), LINF, Budget(5), tolerance=1e-3)


def test_the_prediction_of_an_input_that_a_third_class_wins():
    """Towards one target the radius is measured all the same; the prediction is the model's, not the label."""
    net = linear([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.0, 0.0, 5.0])
    instance = Instance(np.array([1.0, 0.0], np.float32), 0)
    found = Milp().measure(net, [instance], Classification(1), LINF, Budget(seconds=20.0), tolerance=1e-3)[0]
    assert found.prediction == 2
    assert found.upper == pytest.approx(0.5, abs=2e-3)
