"""The exams pass an honest decider and data set, and fail each kind of dishonest one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from radii.data import Dataset, load_dataset
from radii.decide import replay
from radii.errors import InputError
from radii.problem import Answer, Classification, Proof, Radius, Reason, Verdict, Witness
from radii.testing import (
    DECIDER_EXAM,
    MEASURER_EXAM,
    check_dataset,
    check_decider,
    check_measurer,
    exact_breach,
    random_instance,
    random_network,
)
from radii.testing import decider_exam as exam


@dataclass
class Honest:
    """Decides and measures by the exact search itself."""

    identity: str = "honest 1"
    proves: bool = True
    refutes: bool = True
    cache: dict = field(default_factory=dict)

    def breach(self, classifier, instance, property, norm):
        key = (classifier, instance, property, norm.name)
        if key not in self.cache:
            spec = property.violations(classifier.classes, instance.label)
            self.cache[key] = exact_breach(classifier, instance.x, spec, norm)
        return self.cache[key]

    def decide(self, classifier, queries, budget):
        return [self.one(classifier, query) for query in queries]

    def one(self, classifier, query):
        if query.instance.x.size != classifier.size:
            raise InputError(f"input: expected {classifier.size} values, got {query.instance.x.size}")
        found = self.breach(classifier, query.instance, query.property, query.norm)
        if query.epsilon < found.distance * (1 - 1e-6):
            return Answer.robust(Proof("enumeration"))
        if found.x is not None:
            center = query.instance.x.astype(np.float64)
            beyond = center + (found.x.reshape(center.shape) - center) * (1 + 2e-3)
            witness = replay(classifier, query, np.clip(beyond, classifier.domain.low, classifier.domain.high))
            if witness is not None:
                return Answer.broken(witness)
        return Answer.unknown(Reason.INCOMPLETE, "too near the boundary")

    def measure(self, classifier, instances, property, norm, budget, *, tolerance, limit=None, progress=None):
        radii = []
        for instance in instances:
            found = self.breach(classifier, instance, property, norm)
            if found.distance == 0:
                radii.append(Radius.wrong())
            else:
                radii.append(Radius(found.distance * 0.9999, found.distance * 1.0001, tolerance=tolerance))
        return radii


@dataclass
class Bent(Honest):
    """An honest decider whose answers are bent by a function of (classifier, queries, answers)."""

    bend: object = None

    def decide(self, classifier, queries, budget):
        return self.bend(classifier, queries, super().decide(classifier, queries, budget))


def always_robust(classifier, queries, answers):
    return [Answer.robust(Proof("hope")) for _ in answers]


def reversed_order(classifier, queries, answers):
    return answers[::-1]


def one_missing(classifier, queries, answers):
    return answers[:-1]


def far_witness(classifier, queries, answers):
    """Witnesses that break the property, but outside the ball."""
    far = [replace(q, epsilon=10.0) for q in queries]
    return [
        a if a.witness is None else Answer.broken(replace(replay(classifier, f, corner(classifier, f)) or a.witness))
        for a, f in zip(answers, far)
    ]


def corner(classifier, query):
    """A corner of the domain that breaks the property."""
    rng = np.random.default_rng(0)
    corners = rng.integers(0, 2, size=(512, *classifier.input_shape)).astype(np.float32)
    return next((c for c in corners if replay(classifier, query, c) is not None), query.instance.x)


def wrong_distance(classifier, queries, answers):
    return [
        a if a.witness is None else Answer.broken(Witness(a.witness.x, 0.0, a.witness.prediction, a.witness.outputs))
        for a in answers
    ]


def negative_cost(classifier, queries, answers):
    return [replace(a, cpu_seconds=-1.0) for a in answers]


BENT = [
    (always_robust, exam.answers_are_true),
    (always_robust, exam.misclassified_is_broken),
    (reversed_order, exam.answers_are_true),
    (one_missing, exam.answers_are_true),
    (far_witness, exam.witnesses_replay),
    (wrong_distance, exam.witnesses_replay),
    (negative_cost, exam.unknown_has_a_reason),
    (always_robust, exam.budget_is_obeyed),
]


@pytest.fixture(scope="module")
def honest():
    return Honest()


@pytest.mark.parametrize("rule", DECIDER_EXAM, ids=lambda rule: rule.__name__)
def test_honest_decider_passes(honest, rule):
    rule(honest)


def test_whole_exams_pass_the_honest(honest):
    check_decider(honest)
    check_measurer(honest)


@pytest.mark.parametrize(("bend", "rule"), BENT, ids=lambda f: f.__name__)
def test_bent_decider_fails(honest, bend, rule):
    with pytest.raises((AssertionError, ValueError)):
        rule(Bent(bend=bend, cache=honest.cache))


def test_attack_that_proves_fails(honest):
    with pytest.raises(AssertionError, match="does not prove"):
        exam.says_what_it_can(Honest(proves=False, cache=honest.cache))
    with pytest.raises(AssertionError, match="does not refute"):
        exam.says_what_it_can(Honest(refutes=False, cache=honest.cache))
    with pytest.raises(AssertionError, match="expected ROBUST somewhere"):
        exam.says_what_it_can(Bent(cache=honest.cache, bend=lambda c, q, a: [Answer.unknown(Reason.TIME) for _ in a]))


def test_decider_that_takes_anything_fails():
    class Careless(Honest):
        def decide(self, classifier, queries, budget):
            return [Answer.unknown(Reason.INCOMPLETE) for _ in queries]

    with pytest.raises(AssertionError, match="expected InputError for a label outside the classes"):
        exam.misuse_raises(Careless())


def test_decider_that_changes_its_mind_fails(honest):
    calls = iter(range(100))

    def moody(classifier, queries, answers):
        return answers if next(calls) % 2 else [Answer.unknown(Reason.TIME) for _ in answers]

    with pytest.raises(AssertionError, match="same verdicts"):
        exam.repeats_itself(Bent(bend=moody, cache=honest.cache))


def test_changing_identity_fails(honest):
    class Counting(Honest):
        @property
        def identity(self):
            self.calls = getattr(self, "calls", 0) + 1
            return f"call {self.calls}"

        @identity.setter
        def identity(self, value):
            pass

    with pytest.raises(AssertionError, match="identity to stay"):
        exam.identity_is_stable(Counting(cache=honest.cache))


@pytest.mark.parametrize("factor", [0.5, 2.0], ids=["upper too low", "lower too high"])
def test_wrong_radii_fail(honest, factor):
    class Off(Honest):
        def measure(self, *args, **options):
            radii = super().measure(*args, **options)
            return [r if r.misclassified else replace(r, lower=r.lower * factor, upper=r.upper * factor) for r in radii]

    with pytest.raises(AssertionError, match=r"expected an? (lower|upper) end"):
        MEASURER_EXAM[0](Off(cache=honest.cache))


def test_searching_a_misclassified_input_fails(honest):
    class Searching(Honest):
        def measure(self, classifier, instances, *args, **options):
            return [Radius(None, None) for _ in instances]

    with pytest.raises(AssertionError, match="misclassified"):
        exam.misclassified_has_radius_zero(Searching())


def test_target_is_honoured_by_the_honest(honest):
    net = random_network(1, "dense")
    instance = random_instance(net, 1)
    target = (instance.label + 2) % 3
    distance = honest.breach(net, instance, Classification(target), exam.Norm.of("linf")).distance
    answer = honest.one(net, exam.Query(instance, distance * 1.01, Classification(target)))
    assert answer.verdict is Verdict.BROKEN
    assert answer.witness.outputs[target] >= answer.witness.outputs[instance.label]


def test_dataset_exam_passes_embedded_digits():
    check_dataset(lambda: load_dataset("digits", split="test"))


def test_dataset_exam_fails_what_differs_each_time():
    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError, match="same x"):
        check_dataset(lambda: Dataset(rng.uniform(size=(30, 4)).astype(np.float32), np.arange(30) % 3))


def test_dataset_exam_fails_repeated_positions():
    with pytest.raises(AssertionError, match="every position"):
        check_dataset(lambda: Dataset(np.eye(4, dtype=np.float32), [0, 1, 0, 1], indices=np.array([0, 0, 1, 2])))


def test_dataset_exam_fails_on_an_alarm():
    with pytest.raises(AssertionError, match="divided by 255 twice"):
        check_dataset(lambda: Dataset(np.eye(4, dtype=np.float32) / 255, [0, 1, 0, 1]))
