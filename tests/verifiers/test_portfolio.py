"""A cascade asks the dear members only what the cheap ones left open, within one budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from nets import f32, mlp

from radii.decide import Budget
from radii.errors import InputError
from radii.problem import Answer, Clause, Instance, OutputSpec, Query, Reason, SpecQuery, Verdict
from radii.verifiers.incomplete import AttackOnly, BoundsOnly
from radii.verifiers.milp import Milp
from radii.verifiers.portfolio import Portfolio


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
    cascade = Portfolio((AttackOnly(), BoundsOnly(), last))
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
    assert Portfolio((AttackOnly(), Milp())).decide_spec(network, spec, Budget(20)).verdict is Verdict.ROBUST
    nobody = Portfolio((AttackOnly(),)).decide_spec(network, spec, Budget(20))
    assert nobody.reason is Reason.UNSUPPORTED


def test_identity_lists_the_members_and_none_is_refused():
    assert "attack" in Portfolio((AttackOnly(), Milp())).identity
    assert "milp" in Portfolio((AttackOnly(), Milp())).identity
    with pytest.raises(InputError, match="at least one"):
        Portfolio(())
