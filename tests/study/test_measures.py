"""Measures of a data set: consistent with each other, with the verifier on its own, and with closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import radii
from radii.cli.main import run
from radii.decide import Budget
from radii.engine.native import Native
from radii.models.classifier import Classifier
from radii.problem import Answer, Domain, Instance, Norm, Proof, Property, Query, Verdict
from radii.study.measures import drawn

PROPERTIES: list[Property] = [
    radii.Classification(),
    radii.Standard(0.4),
    radii.Lipschitz(3.0),
    radii.Probability(0.08),
    radii.StrongClassification(0.4, on="probability"),
]


def network(seed: int) -> Classifier:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(2, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    for weight in module.parameters():
        weight.data = torch.randn(weight.shape)
    return radii.load_classifier(module, input_shape=(2,))


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_measures_agree_with_each_other_and_with_the_verifier_alone(norm: str) -> None:
    net, rng = network(3), np.random.default_rng(3)
    x = rng.uniform(0.1, 0.9, (5, 2)).astype(np.float32)
    y = net.reference(x).argmax(1)
    found = radii.measures(net, (x, y), epsilon=0.06, properties=PROPERTIES, norm=norm, seconds=1, samples=30)
    assert [row.property for row in found.rows] == [str(one) for one in PROPERTIES]
    for row in (*found.rows, *found.by_class):
        assert row.proven <= row.not_refuted <= row.security
        assert row.accuracy_low <= row.accuracy <= row.accuracy_high
    assert sum(row.inputs for row in found.by_class) == len(found.outcomes) == 5 * len(PROPERTIES)
    verdicts = set()
    for one in found.outcomes:
        if one.verdict is Verdict.ROBUST:
            assert not one.attacked
            assert one.violations == 0
        verdicts.add(one.verdict)
        if one.verdict is not Verdict.BROKEN:
            continue
        # The verifier is not asked about inputs that a witness already breaks: asked alone it must not prove them.
        asked = next(prop for prop in PROPERTIES if str(prop) == one.property)
        query = Query(Instance(x[one.index], int(y[one.index])), 0.06, asked, Norm.of(norm))
        assert Native().decide(net, [query], Budget(seconds=1))[0].verdict is not Verdict.ROBUST
    assert verdicts >= {Verdict.ROBUST, Verdict.BROKEN}


def test_a_linear_network_has_the_measures_of_its_closed_form() -> None:
    """f(x) = 2x moves by at most 2ε; a share of 1 − δ/2ε of the points of a ball moves it by δ or more."""
    layer = torch.nn.Linear(1, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[2.0]]), torch.tensor([0.5])
    net = radii.load_classifier(layer, input_shape=(1,))
    data = np.full((4, 1), 0.5, np.float32), np.array([0, 1, 2, 3])  # targets of a regression, not classes
    asked = [radii.Standard(0.21), radii.Standard(0.15), radii.Lipschitz(2.01), radii.Lipschitz(1.99)]
    wide, narrow, flat, steep = radii.measures(net, data, epsilon=0.1, properties=asked, samples=400).rows
    assert (wide.proven, wide.security, wide.accuracy) == (1.0, 1.0, 1.0)
    assert (narrow.not_refuted, narrow.security) == (0.0, 0.0)
    assert narrow.accuracy == pytest.approx(0.75, abs=0.05)
    assert (flat.proven, flat.accuracy) == (1.0, 1.0)
    assert (steep.not_refuted, steep.accuracy) == (0.0, 0.0)


@pytest.mark.parametrize(("norm", "inside"), [("linf", 0.25), ("l2", 0.25), ("l1", 0.25)])
def test_points_are_uniform_in_the_ball(norm: str, inside: float) -> None:
    """In two dimensions a ball of half the size holds a quarter of the area."""
    net = radii.load_classifier(torch.nn.Linear(2, 2), input_shape=(2,), domain=None)
    assert net.domain == Domain(-np.inf, np.inf)
    query = Query(Instance(np.array([0.5, 0.5], np.float32), 0), 0.4, radii.Classification(), Norm.of(norm))
    points = drawn(net, query, 8000, np.random.default_rng(0))
    far = np.linalg.norm(points - np.array([0.5, 0.5]), ord=query.norm.order, axis=1)
    assert far.max() <= 0.4
    assert (far <= 0.2).mean() == pytest.approx(inside, abs=0.02)
    assert np.abs(points.mean(0) - 0.5).max() < 0.02


def test_points_stay_in_the_domain() -> None:
    net = network(0)
    for norm in ("linf", "l2", "l1"):
        query = Query(Instance(np.array([0.0, 1.0], np.float32), 0), 0.3, radii.Classification(), Norm.of(norm))
        points = drawn(net, query, 200, np.random.default_rng(1))
        assert all(query.ball(net.domain).contains(point) for point in points)


def test_bad_input_is_refused() -> None:
    net = network(0)
    data = np.full((1, 2), 0.5, np.float32), np.array([0])
    for options, line in [
        ({"epsilon": 0}, "epsilon: expected a number above 0"),
        ({"epsilon": 0.1, "samples": 0}, "samples"),
        ({"epsilon": 0.1, "properties": ["standard:-1"]}, "delta"),
        ({"epsilon": 0.1, "properties": [radii.Classification(0)]}, "leave the target out"),
    ]:
        with pytest.raises(radii.InputError, match=line):
            radii.measures(net, data, **options)


def test_a_threshold_of_half_or_less_is_warned_of() -> None:
    """Three classes of 0.45, 0.5 and 0.05: above η = 0.4, and still not on top."""
    low = radii.StrongClassification(0.4, on="probability")
    values = np.array([0.45, 0.5, 0.05])
    assert not low.violations(3, 0).violated(values)
    assert radii.Classification().violations(3, 0).violated(values)
    assert "does not keep the label on top" in low.caution
    assert radii.StrongClassification(0.5, on="probability").caution
    assert not radii.StrongClassification(0.51, on="probability").caution
    assert not radii.StrongClassification(0.4).caution


@dataclass(frozen=True)
class Gullible:
    """A verifier that is wrong: it takes every property for proven."""

    identity: str = "gullible"
    proves: bool = True
    refutes: bool = False

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        return [Answer.robust(Proof("hope")) for _ in queries]


def test_an_attack_or_a_sample_that_breaks_what_is_proven_is_an_alarm(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """f(x) = 2x moves by 0.2: proven for δ = 0.21 by every verifier, for 0.15 by a wrong one only."""
    layer = torch.nn.Linear(1, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[2.0]]), torch.tensor([0.5])
    net = radii.load_classifier(layer, input_shape=(1,), name="line")
    data = np.full((2, 1), 0.5, np.float32), np.array([0, 0])
    asked = [radii.Standard(0.21), radii.Standard(0.15)]
    assert radii.measures(net, data, epsilon=0.1, properties=asked, samples=20).alarms == ()
    found = radii.measures(net, data, epsilon=0.1, properties=asked, samples=20, verifier=Gullible())
    assert found.alarms == tuple(
        f"line, input {k}, standard:delta=0.15, ε = 0.1: proven, but the attack breaks it" for k in (0, 1)
    )
    for row in found.rows:
        assert row.proven <= row.not_refuted <= row.security
    monkeypatch.setattr("radii.verifiers.catalogue.make", lambda what: Gullible())
    words = [
        "properties",
        "zoo:mnist5k-standard",
        "--data",
        "mnist5k",
        "--index",
        "0",
        "--eps",
        "0.1",
        "--samples",
        "5",
    ]
    assert run([*words, "--property", "standard:0.1", "--verifier", "gullible"]) == 3
    said = capfd.readouterr().err
    assert "input 0, standard:delta=0.1, ε = 0.1: proven, but the attack breaks it" in said
    assert "partial: 1 contradiction" in said


def test_laws_settle_what_the_verifier_then_is_not_asked() -> None:
    """LR(ε, L) proves SR(ε, εL), and an SR that is broken breaks the LR: only the first of two goes to the verifier."""
    asked: list[str] = []

    class Counting(Native):
        def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
            asked.extend(str(query.property) for query in queries)
            return super().decide(classifier, queries, budget)

    layer = torch.nn.Linear(1, 1)
    layer.weight.data, layer.bias.data = torch.tensor([[2.0]]), torch.tensor([0.5])
    net = radii.load_classifier(layer, input_shape=(1,))
    data = np.full((1, 1), 0.5, np.float32), np.array([0])
    for first, second, proven in (("lipschitz:2.1", "standard:0.25", 1.0), ("standard:0.15", "lipschitz:1", 0.0)):
        rows = radii.measures(net, data, epsilon=0.1, properties=[first, second], verifier=Counting()).rows
        assert [row.proven for row in rows] == [proven] * 2
        assert [row.not_refuted for row in rows] == [proven] * 2
    assert asked == ["lipschitz:constant=2.1", "standard:delta=0.15"]


def test_what_is_broken_in_a_ball_is_broken_in_larger_ones() -> None:
    net, rng = network(3), np.random.default_rng(3)
    x = rng.uniform(0.1, 0.9, (5, 2)).astype(np.float32)
    data, asked = (x, net.reference(x).argmax(1)), [radii.Classification(), radii.Standard(0.4)]
    small = radii.measures(net, data, epsilon=0.06, properties=asked, seconds=1, samples=10)
    large = radii.measures(net, data, epsilon=0.12, properties=asked, seconds=1, samples=10, below=small)
    alone = radii.measures(net, data, epsilon=0.12, properties=asked, seconds=1, samples=10)
    assert [(o.verdict, o.violations) for o in large.outcomes] == [(o.verdict, o.violations) for o in alone.outcomes]
    for one, other in zip(small.rows, large.rows):
        assert other.proven <= one.proven
        assert other.not_refuted <= one.not_refuted
        assert other.security <= one.security
    with pytest.raises(radii.InputError, match="below: expected measures of"):
        radii.measures(net, data, epsilon=0.06, properties=asked, below=large)
