"""The exam for deciders: each function takes a decider and raises `AssertionError` where the contract is broken.

    from radii.testing import DECIDER_EXAM, check_decider

    check_decider(MyDecider())                                   # all of it
    @pytest.mark.parametrize("check", DECIDER_EXAM, ids=lambda c: c.__name__)
    def test_my_decider(check): check(MyDecider())               # or one test per rule

What is true is known from `radii.testing.exact_radius`, which shares no code with any decider. Norms that a decider
says are unsupported (UNKNOWN, `Reason.UNSUPPORTED`) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from radii.decide import Budget, Decider, Measurer, replay
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Classification, Instance, Norm, Query, Reason, Status, Verdict
from radii.testing.exact import exact_radius
from radii.testing.toys import double_toy, linear_toy, overflow_toy, random_instance, random_network

BUDGET = Budget(seconds=20.0)
SLACK = 1e-5  # relative to the radius: rounding of the float32 network, tolerance of the exact solvers
FACTORS = (0.0, 0.5, 0.99, 1.01, 1.5)  # of the exact radius
KINDS = ("dense", "conv", "residual", "leaky", "maxpool")
NORMS = ("linf", "l2", "l1")


def require(condition: bool, message: str) -> None:
    """Raise `AssertionError` with the message unless the condition holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)


@lru_cache(maxsize=32)
def _case(kind: str, seed: int) -> tuple[Classifier, Instance]:
    network = linear_toy(seed).classifier if kind == "linear" else random_network(seed, kind)
    return network, random_instance(network, seed)


@lru_cache(maxsize=256)
def _truth(kind: str, seed: int, norm: str, target: int | None) -> float:
    network, instance = _case(kind, seed)
    return exact_radius(network, instance.x, instance.label, norm, target)


def _queries(kind: str, seed: int, norm: str) -> list[tuple[Query, float]]:
    """Questions around the exact radius, untargeted and for one target, each with that radius."""
    network, instance = _case(kind, seed)
    other = (instance.label + 1) % network.classes
    found = []
    for target in (None, other):
        radius = _truth(kind, seed, norm, target)
        for factor in FACTORS:
            epsilon = factor * radius if math.isfinite(radius) else 0.3 * factor
            found.append((Query(instance, epsilon, Classification(target), Norm.of(norm)), radius))
    return found


Asked = tuple[Classifier, Query, float, Answer]
_LAST: list[tuple[Decider, list[Asked]]] = []  # several rules look at the answers of one decider: ask it once


def _decided(decider: Decider) -> list[Asked]:
    """Every question of the exam with its true radius and the decider's answer."""
    if _LAST and _LAST[0][0] is decider:
        return _LAST[0][1]
    results: list[Asked] = []
    for kind in ("linear", *KINDS):
        network, _ = _case(kind, 1)
        for norm in NORMS:
            asked = _queries(kind, 1, norm)
            answers = decider.decide(network, [query for query, _ in asked], BUDGET)
            require(len(answers) == len(asked), f"expected {len(asked)} answers, got {len(answers)}")
            results += [(network, query, radius, answer) for (query, radius), answer in zip(asked, answers)]
    _LAST[:] = [(decider, results)]
    return results


def answers_are_true(decider: Decider) -> None:
    """ROBUST only below the exact radius, BROKEN only above it, each answer at the place of its question."""
    for network, query, radius, answer in _decided(decider):
        about = f"{network.name}, {query.norm}, ε = {query.epsilon:.9g}, exact radius {radius:.9g}"
        if answer.verdict is Verdict.ROBUST:
            require(query.epsilon <= radius * (1 + SLACK), f"expected no proof, got ROBUST: {about}")
        if answer.verdict is Verdict.BROKEN:
            require(query.epsilon >= radius * (1 - SLACK), f"expected no witness, got BROKEN: {about}")


def witnesses_replay(decider: Decider) -> None:
    """Every BROKEN answer's witness lies in the ball and the domain and breaks the property on the original model."""
    for network, query, _, answer in _decided(decider):
        if answer.witness is not None:
            again = replay(network, query, answer.witness.x)
            require(again is not None, f"expected a witness that replays for ε = {query.epsilon:.9g} on {network.name}")
            size = query.norm.distance(answer.witness.x, query.instance.x)
            require(
                abs(size - answer.witness.distance) <= 1e-9, f"expected distance {size}, got {answer.witness.distance}"
            )


def says_what_it_can(decider: Decider) -> None:
    """Without `proves` never ROBUST, without `refutes` never BROKEN; with them, some easy question is answered."""
    seen = {answer.verdict for _, _, _, answer in _decided(decider)}
    require(decider.proves or Verdict.ROBUST not in seen, "expected no ROBUST from a decider that does not prove")
    require(decider.refutes or Verdict.BROKEN not in seen, "expected no BROKEN from a decider that does not refute")
    require(not decider.proves or Verdict.ROBUST in seen, "expected ROBUST somewhere, got none on tiny networks")
    require(not decider.refutes or Verdict.BROKEN in seen, "expected BROKEN somewhere, got none on tiny networks")


def unknown_has_a_reason(decider: Decider) -> None:
    """UNKNOWN carries a reason and costs are numbers that can be added up."""
    for _, _, _, answer in _decided(decider):
        if answer.verdict is Verdict.UNKNOWN:
            require(isinstance(answer.reason, Reason), f"expected a Reason, got {answer.reason!r}")
        for cost in (answer.cpu_seconds, answer.wall_seconds, answer.nodes, answer.peak_memory):
            require(math.isfinite(cost) and cost >= 0, f"expected costs of at least 0, got {cost!r}")


def misclassified_is_not_robust(decider: Decider) -> None:
    """An input on the wrong side already, or a ball of ε = 0 around a right one, is not answered wrongly."""
    network, instance = _case("dense", 2)
    wrong = Instance(instance.x, (instance.label + 1) % network.classes)
    answers = decider.decide(network, [Query(wrong, 0.01), Query(instance, 0.0)], BUDGET)
    require(answers[0].verdict is not Verdict.ROBUST, "expected a misclassified input not to be ROBUST")
    require(answers[1].verdict is not Verdict.BROKEN, "expected ε = 0 around a correct input not to be BROKEN")


def misuse_raises(decider: Decider) -> None:
    """Questions that make no sense for the network raise `InputError`; no question gives no answer."""
    network, instance = _case("dense", 3)
    require(decider.decide(network, [], BUDGET) == [], "expected no answers to no questions")
    misuses = {
        "a label outside the classes": Query(Instance(instance.x, network.classes), 0.1),
        "an input of another shape": Query(Instance(np.zeros(network.size + 1, dtype=np.float32), 0), 0.1),
        "a target outside the classes": Query(instance, 0.1, Classification(network.classes)),
        "the label as target": Query(instance, 0.1, Classification(instance.label)),
    }
    for what, query in misuses.items():
        try:
            decider.decide(network, [query], BUDGET)
        except InputError:
            continue
        raise AssertionError(f"expected InputError for {what}, got an answer")


def budget_is_obeyed(decider: Decider) -> None:
    """A tiny budget is answered, truly, with UNKNOWN where it does not suffice; nothing hangs or raises."""
    network, instance = _case("dense", 1)
    radius = _truth("dense", 1, "linf", None)
    queries = [Query(instance, factor * radius) for factor in (0.999, 1.001)]
    for budget in (Budget(seconds=1e-3), Budget(seconds=20.0, nodes=1)):
        for query, answer in zip(queries, decider.decide(network, queries, budget), strict=True):
            right = Verdict.ROBUST if query.epsilon < radius else Verdict.BROKEN
            require(answer.verdict in (right, Verdict.UNKNOWN), f"expected {right} or UNKNOWN, got {answer.verdict}")


def repeats_itself(decider: Decider) -> None:
    """The same questions get the same verdicts again, and inputs are left as they were."""
    network, instance = _case("residual", 1)
    before = instance.x.copy()
    queries = [query for query, _ in _queries("residual", 1, "linf")]
    first, second = (decider.decide(network, queries, BUDGET) for _ in range(2))
    same = [a.verdict for a in first] == [a.verdict for a in second]
    require(same, "expected the same verdicts to the same questions")
    require(bool(np.array_equal(before, instance.x)), "expected inputs to be left unchanged")


def overflow_is_not_proven(decider: Decider) -> None:
    """No proof for float32 arithmetic covers inputs on which the network overflows in float32."""
    network, instance = overflow_toy(), Instance(np.full(12, 0.5, dtype=np.float32), 1)
    for answer in _taken(decider, network, [Query(instance, 0.49)]):
        proven = "" if answer.proof is None else answer.proof.arithmetic
        require(proven != "float32", "expected no proof for float32 where the outputs overflow to ∞, got ROBUST")


def precision_is_the_models(decider: Decider) -> None:
    """A float64 network is judged in float64: it is no tie when only float32 cannot tell its outputs apart."""
    network, instance = double_toy(), Instance(np.full(1, 0.5, dtype=np.float32), 0)
    answers = _taken(decider, network, [Query(instance, 0.39), Query(instance, 0.41)])
    for answer, wrong in zip(answers, (Verdict.BROKEN, Verdict.ROBUST)):
        require(answer.verdict is not wrong, f"expected anything but {wrong} of a float64 network of radius 0.4")
        if answer.witness is not None:
            kinds = {answer.witness.x.dtype.name, answer.witness.outputs.dtype.name}
            require(kinds == {"float64"}, f"expected a witness in float64, got {' and '.join(sorted(kinds))}")


def _taken(decider: Decider, network: Classifier, queries: list[Query]) -> list[Answer]:
    """The answers, none where the decider refuses the network or the question."""
    try:
        return decider.decide(network, queries, BUDGET)
    except InputError:
        return []


def identity_is_stable(decider: Decider) -> None:
    """The identity is one line of text that does not change with use."""
    before = decider.identity
    decider.decide(*_one_question(), BUDGET)
    require(isinstance(before, str) and bool(before.strip()), "expected an identity, got an empty one")
    require("\n" not in before, "expected an identity of one line")
    require(decider.identity == before, f"expected the identity to stay {before!r}, got {decider.identity!r}")


def _one_question() -> tuple[Classifier, list[Query]]:
    network, instance = _case("dense", 1)
    return network, [Query(instance, 0.01)]


def radii_hold_the_truth(measurer: Measurer) -> None:
    """lower ≤ exact radius ≤ upper, in order, and both are within the tolerance when the status says closed."""
    for kind in ("linear", *KINDS):
        network, instance = _case(kind, 1)
        for norm in NORMS:
            exact = _truth(kind, 1, norm, None)
            try:
                radii = measurer.measure(
                    network, [instance, instance], Classification(), Norm.of(norm), BUDGET, tolerance=0.002
                )
            except InputError:  # a norm or property it cannot measure
                continue
            require(len(radii) == 2, f"expected 2 radii, got {len(radii)}")
            for radius in radii:
                about = f"{network.name}, {norm}: exact {exact:.9g}, got [{radius.lower}, {radius.upper}]"
                require(
                    radius.lower is None or radius.lower <= exact * (1 + SLACK), f"expected a lower end below {about}"
                )
                require(
                    radius.upper is None or radius.upper >= exact * (1 - SLACK), f"expected an upper end above {about}"
                )
                if radius.status is Status.CLOSED and radius.gap is not None:
                    require(radius.gap <= 0.002 * (1 + 1e-6), f"expected a gap of at most 0.002 when closed: {about}")


def misclassified_has_radius_zero(measurer: Measurer) -> None:
    """A misclassified input has radius 0 and is not searched."""
    network, instance = _case("dense", 2)
    wrong = Instance(instance.x, (instance.label + 1) % network.classes)
    (radius,) = measurer.measure(network, [wrong], Classification(), Norm.of("linf"), BUDGET, tolerance=0.01)
    require(radius.status is Status.MISCLASSIFIED, f"expected status misclassified, got {radius.status}")


DECIDER_EXAM: tuple[Callable[[Decider], None], ...] = (
    answers_are_true,
    witnesses_replay,
    says_what_it_can,
    unknown_has_a_reason,
    misclassified_is_not_robust,
    misuse_raises,
    budget_is_obeyed,
    repeats_itself,
    overflow_is_not_proven,
    precision_is_the_models,
    identity_is_stable,
)
MEASURER_EXAM: tuple[Callable[[Measurer], None], ...] = (radii_hold_the_truth, misclassified_has_radius_zero)


def check_decider(decider: Decider, exam: Sequence[Callable[[Decider], None]] = DECIDER_EXAM) -> None:
    """Run the whole exam; the first broken rule raises `AssertionError`."""
    for rule in exam:
        rule(decider)


def check_measurer(measurer: Measurer) -> None:
    """Run the exam for `measure`; the first broken rule raises `AssertionError`."""
    for rule in MEASURER_EXAM:
        rule(measurer)
