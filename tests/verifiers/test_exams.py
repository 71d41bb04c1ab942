"""Every verifier passes the exam that is shipped for plug-in authors."""

from __future__ import annotations

import pytest

from radii.testing.verifier_exam import VerifierExam
from radii.verifiers.catalogue import make


class TestNative(VerifierExam):
    norms = ("linf", "l1", "l2")

    def make(self):
        return make({"name": "native", "effort": "fast"})


class TestMilp(VerifierExam):
    norms = ("linf", "l1")

    def make(self):
        return make("milp")


@pytest.mark.filterwarnings("ignore")
class TestScip(VerifierExam):
    norms = ("linf", "l1")

    def make(self):
        return make({"name": "milp", "solver": "scip"})


class TestSmt(VerifierExam):
    norms = ("linf", "l1")
    slow_norms = ("l2",)  # nlsat: see test_smt.py for what it can do
    kinds = ("linear", "dense")  # the others take minutes

    def make(self):
        return make("smt")


class TestMarabou(VerifierExam):
    norms = ("linf", "l1")
    exact = False

    def make(self):
        return make("marabou")


class TestAttack(VerifierExam):
    norms = ("linf", "l1", "l2")

    def make(self):
        return make("attack")


class TestBounds(VerifierExam):
    norms = ("linf", "l1", "l2")

    def make(self):
        return make("bounds")


class TestPortfolio(VerifierExam):
    norms = ("linf", "l1", "l2")

    def make(self):
        return make({"portfolio": ["attack", "bounds", {"name": "native", "effort": "fast"}]})
