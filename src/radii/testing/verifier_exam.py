"""The exam every verifier passes, as a class of tests: subclass `VerifierExam` and say how to make one.

    class TestMine(VerifierExam):
        def make(self):
            return MyVerifier()

The rules are those of `radii.testing.DECIDER_EXAM`, one test each. `norms` says which norms the verifier takes,
`slow_norms` those it takes but too slowly to be asked, `kinds` on which toys it is asked, `exact = False` excuses one
that may answer UNKNOWN where it could know.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache

from radii.decide import Decider, Measurer
from radii.testing._decider_cases import KINDS, Scope
from radii.testing.decider_exam import DECIDER_EXAM, MEASURER_EXAM, Rule


class VerifierExam(ABC):
    """The rules, each a test; those of `DECIDER_EXAM` and `MEASURER_EXAM` are added below."""

    norms: tuple[str, ...] = ("linf",)
    slow_norms: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS
    exact: bool = True

    @abstractmethod
    def make(self) -> Decider:
        """The verifier under examination."""

    @property
    def scope(self) -> Scope:
        """What the verifier is held to."""
        return Scope(self.norms, self.slow_norms, self.kinds, self.exact)

    def test_it_says_who_it_is(self) -> None:
        """Two of a kind have one identity."""
        assert isinstance(self.make(), Decider)
        assert self.make().identity == self.make().identity

    def test_it_can_be_sent_to_another_process(self) -> None:
        """Workers get it pickled."""
        verifier = self.make()
        assert pickle.loads(pickle.dumps(verifier)).identity == verifier.identity


@cache
def _made(exam: type[VerifierExam]) -> Decider:
    """One verifier for all rules of a class: those that look at the same answers ask it once."""
    return exam().make()


def _test(rule: Rule) -> Callable[[VerifierExam], None]:
    def test(self: VerifierExam) -> None:
        verifier = _made(type(self))
        if rule in DECIDER_EXAM or isinstance(verifier, Measurer):
            rule(verifier, self.scope)

    return test


for _rule in (*DECIDER_EXAM, *MEASURER_EXAM):
    setattr(VerifierExam, f"test_{_rule.__name__}", _test(_rule))
