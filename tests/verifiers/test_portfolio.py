"""A cascade asks the dear members only what the cheap ones left open, within one budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.verifiers.nets import Net, f32, mlp

from radii.attacks.min_norm import MinimumNorm
from radii.decide import Budget
from radii.errors import InputError
from radii.problem import (
    Answer,
    Classification,
    Clause,
    Instance,
    OutputSpec,
    Query,
    Reason,
    SpecQuery,
    Standard,
    Verdict,
)
from radii.verifiers.bounds_only import BoundsOnly
from radii.verifiers.milp import Milp
from radii.verifiers.portfolio import Portfolio
from radii.verifiers.smt import Smt


@dataclass(frozen=True)
class Recorder:
    """Passes queries on and keeps what it was asked."""

    inner: object
    asked: list = field(default_factory=list)
    identity: str = "recorder"
    proves: bool = True
    refutes: bool = True

    def decide(self, classifier, queries, budget):
        self.asked.extend((query.epsilon, budget.seconds) for query in queries)
        return self.inner.decide(classifier, queries, budget)


@dataclass(frozen=True)
class Spender:
    """Says nothing, at a price."""

    price: float
    identity: str = "spender"
    proves: bool = False
    refutes: bool = False

    def decide(self, classifier, queries, budget):
        return [Answer.unknown(Reason.TIME, "spent", cpu_seconds=self.price) for _ in queries]


def network_and_instance():
    network = mlp(np.random.default_rng(4), [3, 8, 8, 3])
    x = f32([0.5, 0.4, 0.6])
    return network, Instance(x, int(network.predict(x)))


def test_only_what_is_open_goes_on():
    network, instance = network_and_instance()
    last = Recorder(Milp())
    cascade = Portfolio((MinimumNorm(), BoundsOnly(), last))
    queries = [Query(instance, e) for e in (0.001, 0.02, 0.1, 0.2, 0.5)]
    expected = [a.verdict for a in Milp().decide(network, queries, Budget(20))]
    answers = cascade.decide(network, queries, Budget(20))
    assert [a.verdict for a in answers] == expected
    assert {Verdict.ROBUST, Verdict.BROKEN} == set(expected)
    assert 0.001 not in [epsilon for epsilon, _ in last.asked]
    assert 0.5 not in [epsilon for epsilon, _ in last.asked]


def test_the_budget_is_shared():
    network, instance = network_and_instance()
    last = Recorder(Milp())
    (answer,) = Portfolio((Spender(4.0), last)).decide(network, [Query(instance, 0.01)], Budget(seconds=10))
    assert last.asked == [(0.01, 6.0)]
    assert answer.cpu_seconds >= 4.0
    (late,) = Portfolio((Spender(40.0), last)).decide(network, [Query(instance, 0.01)], Budget(seconds=10))
    assert (late.verdict, late.reason) == (Verdict.UNKNOWN, Reason.TIME)
    assert len(last.asked) == 1


def test_specifications_go_to_members_that_take_them():
    network, _ = network_and_instance()
    spec = SpecQuery(np.zeros(3), np.ones(3), OutputSpec((Clause(np.array([[1.0, 0, 0]]), np.array([-1e6])),)))
    assert Portfolio((MinimumNorm(), Milp())).decide_spec(network, spec, Budget(20)).verdict is Verdict.ROBUST
    nobody = Portfolio((MinimumNorm(),)).decide_spec(network, spec, Budget(20))
    assert nobody.reason is Reason.UNSUPPORTED


@dataclass(frozen=True)
class Refuser:
    """Takes nothing, as a verifier of another package may say it."""

    identity: str = "refuser"
    proves: bool = True
    refutes: bool = True

    def decide(self, classifier, queries, budget):
        raise InputError("refuser: expected another property")

    def decide_spec(self, classifier, query, budget):
        raise InputError("refuser: expected another specification")


def test_a_member_that_refuses_does_not_stop_the_cascade():
    network, instance = network_and_instance()
    box = SpecQuery(np.zeros(3), np.ones(3), OutputSpec((Clause(np.array([[1.0, 0, 0]]), np.array([-1e6])),)))
    cascade = Portfolio((Refuser(), BoundsOnly(), Milp()))
    (answer,) = cascade.decide(network, [Query(instance, 0.001, Standard(50.0))], Budget(20))
    assert answer.verdict is Verdict.ROBUST
    assert cascade.decide_spec(network, box, Budget(20)).verdict is Verdict.ROBUST
    (nobody,) = Portfolio((Refuser(),)).decide(network, [Query(instance, 0.1)], Budget(20))
    assert (nobody.reason, "another property" in nobody.detail) == (Reason.UNSUPPORTED, True)


def test_misuse_is_still_refused():
    network, instance = network_and_instance()
    cascade = Portfolio((BoundsOnly(), Milp()))
    with pytest.raises(InputError, match=r"shape|values|inputs"):
        cascade.decide(network, [Query(Instance(f32([0.1, 0.2]), 0), 0.1)], Budget(20))
    with pytest.raises(InputError, match="target"):
        cascade.decide(network, [Query(instance, 0.1, Classification(7))], Budget(20))
    spec = OutputSpec((Clause(np.array([[1.0, 0, 0]]), np.zeros(1)),))
    with pytest.raises(InputError, match="another network"):
        cascade.decide_spec(network, SpecQuery(np.zeros(2), np.ones(2), spec), Budget(20))


def test_operators_without_a_form_are_unsupported_not_an_error():
    net = Net((3,))
    net.add("Sin")
    network, x = net.build(3), f32([0.5, 0.4, 0.6])
    for verifier in (Milp(), Smt(), BoundsOnly(), MinimumNorm(), Portfolio((BoundsOnly(), Milp()))):
        (answer,) = verifier.decide(network, [Query(Instance(x, 2), 0.1)], Budget(20))
        assert answer.reason is Reason.UNSUPPORTED, verifier
        assert "Sin" in answer.detail


def test_identity_lists_the_members_and_none_is_refused():
    assert "attack" in Portfolio((MinimumNorm(), Milp())).identity
    assert "milp" in Portfolio((MinimumNorm(), Milp())).identity
    with pytest.raises(InputError, match="at least one"):
        Portfolio(())
