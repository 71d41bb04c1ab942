"""The exam every verifier passes: subclass `VerifierExam` in a test module and say how to make one.

    class TestMine(VerifierExam):
        def make(self):
            return MyVerifier()

Questions are asked on toys whose radii are known exactly. A verifier that only proves or only refutes is held to that;
`norms` says which norms it takes, `slow_norms` those it takes but too slowly to be asked, `exact = False` excuses one
that may answer UNKNOWN where it could know.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter

import numpy as np
import psutil

from radii.decide import Budget, Decider, Measurer, SpecDecider, replay
from radii.models.classifier import Classifier
from radii.problem import (
    Answer,
    Classification,
    Clause,
    Instance,
    Norm,
    OutputSpec,
    Query,
    Reason,
    SpecQuery,
    Status,
    Verdict,
)
from radii.testing.decider_exam import overflow_is_not_proven, precision_is_the_models
from radii.testing.toys import LinearToy, linear_toy

BUDGET = Budget(seconds=20)


class VerifierExam(ABC):
    """The questions; each is a test."""

    norms: tuple[str, ...] = ("linf",)
    slow_norms: tuple[str, ...] = ()
    exact: bool = True

    @abstractmethod
    def make(self) -> Decider:
        """The verifier under examination."""

    def test_it_says_who_it_is(self) -> None:
        verifier = self.make()
        assert isinstance(verifier, Decider)
        assert verifier.identity
        assert verifier.identity == self.make().identity
        assert verifier.proves or verifier.refutes

    def test_it_can_be_sent_to_another_process(self) -> None:
        verifier = self.make()
        assert pickle.loads(pickle.dumps(verifier)).identity == verifier.identity

    def test_no_query_is_no_answer(self) -> None:
        assert self.make().decide(linear_toy(0).classifier, [], BUDGET) == []

    def test_overflow_in_float32_is_not_proven(self) -> None:
        overflow_is_not_proven(self.make())

    def test_a_float64_network_is_judged_in_float64(self) -> None:
        precision_is_the_models(self.make())

    def test_answers_are_on_the_right_side_of_the_exact_radius(self) -> None:
        verifier = self.make()
        for norm in map(Norm.of, self.norms):
            seen: Counter[Verdict] = Counter()
            for seed in range(4):
                toy, instance, truth = _case(seed, norm)
                queries = [Query(instance, truth * f, norm=norm) for f in (0.5, 0.99, 1.01, 1.5)]
                answers = verifier.decide(toy.classifier, queries, BUDGET)
                assert len(answers) == len(queries)
                for query, answer in zip(queries, answers):
                    self._fair(verifier, toy.classifier, query, answer, truth)
                    seen[answer.verdict] += 1
            assert seen[Verdict.ROBUST] > 0 or not verifier.proves
            assert seen[Verdict.BROKEN] > 0 or not verifier.refutes
            if self.exact and verifier.proves and verifier.refutes:
                assert seen[Verdict.UNKNOWN] == 0

    def _fair(self, verifier: Decider, network: Classifier, query: Query, answer: Answer, truth: float) -> None:
        if answer.verdict is Verdict.ROBUST:
            assert verifier.proves
            assert query.epsilon < truth
            assert answer.proof is not None
        if answer.verdict is Verdict.BROKEN:
            assert verifier.refutes
            assert query.epsilon >= truth * (1 - 1e-6)
            assert answer.witness is not None
            assert replay(network, query, answer.witness.x) is not None
        assert answer.cpu_seconds >= 0
        assert answer.wall_seconds >= 0

    def test_a_misclassified_input_is_never_robust(self) -> None:
        toy, instance, _ = _case(1, Norm.of("linf"))
        wrong = Instance(instance.x, (instance.label + 1) % toy.classifier.classes)
        verifier = self.make()
        (answer,) = verifier.decide(toy.classifier, [Query(wrong, 0.01)], BUDGET)
        assert answer.verdict is not Verdict.ROBUST
        if verifier.refutes:
            assert answer.verdict is Verdict.BROKEN

    def test_one_target_is_easier_to_withstand_than_all(self) -> None:
        toy, instance, _ = _case(2, Norm.of("linf"))
        verifier = self.make()
        for target in Classification().targets(toy.classifier.classes, instance.label):
            truth = toy.radius(instance.x, instance.label, target=target)
            if not np.isfinite(truth):
                continue
            query = Query(instance, truth * 0.9, Classification(target))
            self._fair(verifier, toy.classifier, query, verifier.decide(toy.classifier, [query], BUDGET)[0], truth)

    def test_what_it_does_not_take_is_an_answer_with_a_reason(self) -> None:
        toy, instance, _ = _case(0, Norm.of("linf"))
        for name in {"linf", "l1", "l2"} - {*self.norms, *self.slow_norms}:
            (answer,) = self.make().decide(toy.classifier, [Query(instance, 0.01, norm=Norm.of(name))], BUDGET)
            assert answer.verdict is Verdict.UNKNOWN
            assert answer.reason is Reason.UNSUPPORTED
            assert answer.detail

    def test_measured_radii_hold_the_exact_one(self) -> None:
        verifier = self.make()
        if not isinstance(verifier, Measurer):
            return
        for norm in map(Norm.of, self.norms):
            toy, instance, truth = _case(3, norm)
            (radius,) = verifier.measure(
                toy.classifier, [instance], Classification(), norm, BUDGET, tolerance=0.01 * truth, limit=2 * truth
            )
            assert radius.status is Status.CLOSED
            assert radius.lower is not None
            assert radius.upper is not None
            assert radius.lower <= truth <= radius.upper * (1 + 1e-6)

    def test_specifications(self) -> None:
        verifier = self.make()
        if not isinstance(verifier, SpecDecider):
            return
        toy = linear_toy(0)
        low, high = np.full(5, 0.2), np.full(5, 0.6)
        row = toy.weight[0]
        least = float(np.minimum(row * low, row * high).sum() + toy.bias[0])
        pick = np.array([[1.0, 0.0, 0.0]])
        for bound, verdict in ((least - 0.1, Verdict.ROBUST), (least + 0.1, Verdict.BROKEN)):
            query = SpecQuery(low, high, OutputSpec((Clause(pick, np.array([bound])),)))
            assert verifier.decide_spec(toy.classifier, query, BUDGET).verdict is verdict

    def test_it_leaves_no_process_behind(self) -> None:
        before = {child.pid for child in psutil.Process().children(recursive=True)}
        toy, instance, truth = _case(0, Norm.of("linf"))
        self.make().decide(toy.classifier, [Query(instance, truth / 2)], BUDGET)
        after = {c.pid for c in psutil.Process().children(recursive=True)}
        assert after <= before


def _case(seed: int, norm: Norm) -> tuple[LinearToy, Instance, float]:
    """A linear toy, an input in the middle of its domain and its exact radius."""
    toy = linear_toy(seed)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        x = rng.uniform(0.3, 0.7, 5).astype(np.float32)
        instance = Instance(x, int(toy.classifier.predict(x)))
        truth = toy.radius(x, instance.label, norm)
        if 0.01 < truth < np.inf:
            return toy, instance, float(truth)
    raise AssertionError("the toy has no input with a radius: choose other seeds")
