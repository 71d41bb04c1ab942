"""The exam for deciders: each function takes a decider and raises `AssertionError` where the contract is broken.

    from radii.testing import DECIDER_EXAM, check_decider

    check_decider(MyDecider())                                   # all of it
    @pytest.mark.parametrize("check", DECIDER_EXAM, ids=lambda c: c.__name__)
    def test_my_decider(check): check(MyDecider())               # or one test per rule

What is true is known from `radii.testing.exact_radius`, which shares no code with any decider. Norms that a decider
says are unsupported (UNKNOWN, `Reason.UNSUPPORTED`) are left out. A `Scope` asks for more (norms that must be taken,
radii that must be exact) or for less (networks that are too slow to be asked about); `VerifierExam` is this exam as a
class of tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import psutil

from radii.decide import Budget, Decider, Measurer, SpecDecider, replay
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import (
    Answer,
    Classification,
    Clause,
    Instance,
    Norm,
    OutputSpec,
    Percent,
    Query,
    Reason,
    SpecQuery,
    Status,
    Verdict,
)
from radii.testing._decider_cases import EVERYTHING, Scope, case, networks, queries, truth
from radii.testing.toys import double_toy, linear_toy, overflow_toy

BUDGET = Budget(seconds=20.0)
TOLERANCE = 0.002  # of measured radii
SLACK = 1e-5  # relative to the radius: rounding of the float32 network, tolerance of the exact solvers
Rule = Callable[..., None]  # takes a decider (or a measurer) and a scope


def require(condition: bool, message: str) -> None:
    """Raise `AssertionError` with the message unless the condition holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)


Asked = tuple[Classifier, Query, float, Answer]
_LAST: list[tuple[Decider, Scope, list[Asked]]] = []  # several rules look at the answers of one decider: ask it once


def _decided(decider: Decider, scope: Scope) -> list[Asked]:
    """Every query of the exam with its true radius and the decider's answer."""
    if _LAST and _LAST[0][0] is decider and _LAST[0][1] == scope:
        return _LAST[0][2]
    results: list[Asked] = []
    for kind, seed, norm in networks(scope):
        network, _ = case(kind, seed)
        asked = queries(kind, seed, norm)
        answers = decider.decide(network, [query for query, _ in asked], BUDGET)
        require(len(answers) == len(asked), f"expected {len(asked)} answers, got {len(answers)}")
        results += [(network, query, radius, answer) for (query, radius), answer in zip(asked, answers)]
    _LAST[:] = [(decider, scope, results)]
    return results


def answers_are_true(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """ROBUST only below the exact radius, BROKEN only above it, each answer at the place of its query."""
    for network, query, radius, answer in _decided(decider, scope):
        about = f"{network.name}, {query.norm}, ε = {query.epsilon:.9g}, exact radius {radius:.9g}"
        if answer.verdict is Verdict.ROBUST:
            require(query.epsilon <= radius * (1 + SLACK), f"expected no proof, got ROBUST: {about}")
        if answer.verdict is Verdict.BROKEN:
            require(query.epsilon >= radius * (1 - SLACK), f"expected no witness, got BROKEN: {about}")


def linear_networks_are_decided(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """Where answers are to be exact, none about a linear network is UNKNOWN, 1 % off its radius."""
    if not (scope.exact and decider.proves and decider.refutes):
        return
    for network, query, radius, answer in _decided(decider, scope):
        if network.name.startswith("linear") and query.epsilon > 0:
            about = f"{network.name}, {query.norm}, ε = {query.epsilon:.9g}, exact radius {radius:.9g}"
            require(answer.verdict is not Verdict.UNKNOWN, f"expected an answer, got {answer.detail}: {about}")


def witnesses_replay(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """Every BROKEN answer's witness lies in the ball and the domain and breaks the property on the original model."""
    for network, query, _, answer in _decided(decider, scope):
        if answer.witness is not None:
            again = replay(network, query, answer.witness.x)
            require(again is not None, f"expected a witness that replays for ε = {query.epsilon:.9g} on {network.name}")
            size = query.norm.distance(answer.witness.x, query.instance.x)
            require(
                abs(size - answer.witness.distance) <= 1e-9, f"expected distance {size}, got {answer.witness.distance}"
            )


def says_what_it_can(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """Without `proves` never ROBUST, without `refutes` never BROKEN; with them, some easy query is answered."""
    require(decider.proves or decider.refutes, "expected a decider that proves or refutes, got neither")
    everything = _decided(decider, scope)
    for norm in scope.norms or ("",):
        _says(decider, {answer.verdict for _, query, _, answer in everything if norm in ("", query.norm.name)})


def _says(decider: Decider, seen: set[Verdict]) -> None:
    require(decider.proves or Verdict.ROBUST not in seen, "expected no ROBUST from a decider that does not prove")
    require(decider.refutes or Verdict.BROKEN not in seen, "expected no BROKEN from a decider that does not refute")
    require(not decider.proves or Verdict.ROBUST in seen, "expected ROBUST somewhere, got none on tiny networks")
    require(not decider.refutes or Verdict.BROKEN in seen, "expected BROKEN somewhere, got none on tiny networks")


def other_norms_are_refused(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """A norm that the decider does not take is an answer, UNKNOWN with the reason `unsupported` and a detail."""
    network, instance = case("linear", 0)
    for norm in sorted(scope.refused):
        (answer,) = decider.decide(network, [Query(instance, 0.01, norm=Norm.of(norm))], BUDGET)
        refused = answer.reason is Reason.UNSUPPORTED and bool(answer.detail)
        require(refused, f"expected {norm} to be unsupported, with a detail, got {answer.verdict} {answer.detail}")


def unknown_has_a_reason(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """UNKNOWN carries a reason and costs are numbers that can be added up."""
    for _, _, _, answer in _decided(decider, scope):
        if answer.verdict is Verdict.UNKNOWN:
            require(isinstance(answer.reason, Reason), f"expected a Reason, got {answer.reason!r}")
        for cost in (answer.cpu_seconds, answer.wall_seconds, answer.nodes, answer.peak_memory):
            require(math.isfinite(cost) and cost >= 0, f"expected costs of at least 0, got {cost!r}")


def misclassified_is_broken(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """An input on the wrong side is BROKEN, unless the decider does not refute; ε = 0 around a right one is not."""
    network, instance = case("dense", 2)
    wrong = Instance(instance.x, (instance.label + 1) % network.classes)
    answers = decider.decide(network, [Query(wrong, 0.01), Query(instance, 0.0)], BUDGET)
    require(answers[0].verdict is not Verdict.ROBUST, "expected a misclassified input not to be ROBUST")
    if decider.refutes:
        require(answers[0].verdict is Verdict.BROKEN, f"expected BROKEN of a wrong input, got {answers[0].verdict}")
    require(answers[1].verdict is not Verdict.BROKEN, "expected ε = 0 around a correct input not to be BROKEN")


def misuse_raises(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """Queries that make no sense for the network raise `InputError`; no query gives no answer."""
    network, instance = case("dense", 3)
    require(decider.decide(network, [], BUDGET) == [], "expected no answers to no queries")
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


def budget_is_obeyed(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """A tiny budget is answered, truly, with UNKNOWN where it does not suffice; nothing hangs or raises."""
    network, instance = case("dense", 1)
    radius = truth("dense", 1, "linf", None)
    queries = [Query(instance, factor * radius) for factor in (0.999, 1.001)]
    for budget in (Budget(seconds=1e-3), Budget(seconds=20.0, nodes=1)):
        for query, answer in zip(queries, decider.decide(network, queries, budget), strict=True):
            right = Verdict.ROBUST if query.epsilon < radius else Verdict.BROKEN
            require(answer.verdict in (right, Verdict.UNKNOWN), f"expected {right} or UNKNOWN, got {answer.verdict}")


def repeats_itself(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """The same queries get the same verdicts again, and inputs are left as they were."""
    kind = "residual" if "residual" in scope.kinds else scope.kinds[-1]
    network, instance = case(kind, 1)
    before = instance.x.copy()
    asked = [query for query, _ in queries(kind, 1, "linf")]
    first, second = (decider.decide(network, asked, BUDGET) for _ in range(2))
    same = [a.verdict for a in first] == [a.verdict for a in second]
    require(same, "expected the same verdicts to the same queries")
    require(bool(np.array_equal(before, instance.x)), "expected inputs to be left unchanged")


def overflow_is_not_proven(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """No proof for float32 arithmetic covers inputs on which the network overflows in float32."""
    network, instance = overflow_toy(), Instance(np.full(12, 0.5, dtype=np.float32), 1)
    for answer in _taken(decider, network, [Query(instance, 0.49)]):
        proven = "" if answer.proof is None else answer.proof.arithmetic
        require(proven != "float32", "expected no proof for float32 where the outputs overflow to ∞, got ROBUST")


def precision_is_the_models(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """A float64 network is judged in float64: it is no tie when only float32 cannot tell its outputs apart."""
    network, instance = double_toy(), Instance(np.full(1, 0.5, dtype=np.float32), 0)
    answers = _taken(decider, network, [Query(instance, 0.39), Query(instance, 0.41)])
    for answer, wrong in zip(answers, (Verdict.BROKEN, Verdict.ROBUST)):
        require(answer.verdict is not wrong, f"expected anything but {wrong} of a float64 network of radius 0.4")
        if answer.witness is not None:
            kinds = {answer.witness.x.dtype.name, answer.witness.outputs.dtype.name}
            require(kinds == {"float64"}, f"expected a witness in float64, got {' and '.join(sorted(kinds))}")


def _taken(decider: Decider, network: Classifier, queries: list[Query]) -> list[Answer]:
    """The answers, none where the decider refuses the network or the query."""
    try:
        return decider.decide(network, queries, BUDGET)
    except InputError:
        return []


def identity_is_stable(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """The identity is one line of text that does not change with use."""
    before = decider.identity
    decider.decide(*_one_query(), BUDGET)
    require(isinstance(before, str) and bool(before.strip()), "expected an identity, got an empty one")
    require("\n" not in before, "expected an identity of one line")
    require(decider.identity == before, f"expected the identity to stay {before!r}, got {decider.identity!r}")


def _one_query() -> tuple[Classifier, list[Query]]:
    network, instance = case("dense", 1)
    return network, [Query(instance, 0.01)]


def specifications_are_decided(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """A bound on one output of a linear network over a box, just met and just missed; for those that decide such."""
    if not isinstance(decider, SpecDecider):
        return
    toy = linear_toy(0)
    low, high = np.full(5, 0.2), np.full(5, 0.6)
    row = toy.weight[0]
    least = float(np.minimum(row * low, row * high).sum() + toy.bias[0])
    pick = np.array([[1.0, 0.0, 0.0]])
    for bound, verdict in ((least - 0.1, Verdict.ROBUST), (least + 0.1, Verdict.BROKEN)):
        query = SpecQuery(low, high, OutputSpec((Clause(pick, np.array([bound])),)))
        found = decider.decide_spec(toy.classifier, query, BUDGET).verdict
        unsure = found is Verdict.UNKNOWN and not (scope.exact and decider.proves and decider.refutes)
        require(found is verdict or unsure, f"expected {verdict} of a specification of a linear network, got {found}")


def leaves_no_process(decider: Decider, scope: Scope = EVERYTHING) -> None:
    """Programs that a decider starts have ended when it has answered."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    decider.decide(*_one_query(), BUDGET)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    require(not left, f"expected no process to be left behind, got {left}")


def radii_hold_the_truth(measurer: Measurer, scope: Scope = EVERYTHING) -> None:
    """lower ≤ exact radius ≤ upper, in order, within the tolerance when closed; closed if linear and `exact`."""
    for kind, seed, norm in networks(scope):
        network, instance = case(kind, seed)
        exact = truth(kind, seed, norm, None)
        try:
            radii = measurer.measure(
                network, [instance, instance], Classification(), Norm.of(norm), BUDGET, tolerance=TOLERANCE
            )
        except InputError:  # a norm or property it cannot measure
            require(not scope.norms, f"expected radii in {norm}, got a refusal")
            continue
        require(len(radii) == 2, f"expected 2 radii, got {len(radii)}")
        for radius in radii:
            about = f"{network.name}, {norm}: exact {exact:.9g}, got [{radius.lower}, {radius.upper}]"
            low, high = radius.lower or 0.0, math.inf if radius.upper is None else radius.upper
            require(low <= exact * (1 + SLACK), f"expected a lower end below {about}")
            require(high >= exact * (1 - SLACK), f"expected an upper end above {about}")
            if radius.status is Status.CLOSED and radius.gap is not None:
                require(radius.gap <= TOLERANCE * (1 + 1e-6), f"expected a gap below {TOLERANCE} when closed: {about}")
            elif scope.exact and kind == "linear" and math.isfinite(exact):
                require(radius.status is Status.CLOSED, f"expected a closed radius, got {radius.status}: {about}")


def tolerance_may_be_relative(measurer: Measurer, scope: Scope = EVERYTHING) -> None:
    """A tolerance in per cent of the upper end is kept with the radius; linear networks are closed if `exact`."""
    network, instance = case("linear", 0)
    for percent in (20.0, 0.5):
        asked = Classification(), Norm.of("linf"), BUDGET
        (radius,) = measurer.measure(network, [instance], *asked, tolerance=Percent(percent))
        require(radius.tolerance == Percent(percent), f"expected tolerance {percent:g}%, got {radius.tolerance}")
        about = f"tolerance {percent:g}%: [{radius.lower}, {radius.upper}] is {radius.status}"
        if scope.exact or radius.status is Status.CLOSED:
            require(radius.gap is not None and radius.upper is not None, f"expected both ends, got {about}")
            near = (radius.gap or 0.0) <= percent / 100 * (radius.upper or 0.0) * (1 + 1e-6)
            require(near and radius.status is Status.CLOSED, f"expected a closed radius, got {about}")


def misclassified_has_radius_zero(measurer: Measurer, scope: Scope = EVERYTHING) -> None:
    """A misclassified input has radius 0 and is not searched."""
    network, instance = case("dense", 2)
    wrong = Instance(instance.x, (instance.label + 1) % network.classes)
    (radius,) = measurer.measure(network, [wrong], Classification(), Norm.of("linf"), BUDGET, tolerance=0.01)
    require(radius.status is Status.MISCLASSIFIED, f"expected status misclassified, got {radius.status}")


DECIDER_EXAM: tuple[Rule, ...] = (
    answers_are_true,
    linear_networks_are_decided,
    witnesses_replay,
    says_what_it_can,
    unknown_has_a_reason,
    other_norms_are_refused,
    misclassified_is_broken,
    misuse_raises,
    budget_is_obeyed,
    repeats_itself,
    overflow_is_not_proven,
    precision_is_the_models,
    identity_is_stable,
    specifications_are_decided,
    leaves_no_process,
)
MEASURER_EXAM: tuple[Rule, ...] = (
    radii_hold_the_truth,
    tolerance_may_be_relative,
    misclassified_has_radius_zero,
)


def check_decider(decider: Decider, exam: Sequence[Rule] = DECIDER_EXAM, scope: Scope = EVERYTHING) -> None:
    """Run the whole exam; the first broken rule raises `AssertionError`."""
    for rule in exam:
        rule(decider, scope)


def check_measurer(measurer: Measurer, scope: Scope = EVERYTHING) -> None:
    """Run the exam for `measure`; the first broken rule raises `AssertionError`."""
    for rule in MEASURER_EXAM:
        rule(measurer, scope)
