"""The SMT verifier is exact: it tells a radius from its neighbours in the last place."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.verifiers.nets import Net, f32, mlp

from radii.decide import Budget
from radii.problem import L1, L2, LINF, Clause, Domain, Instance, OutputSpec, Query, Reason, SpecQuery, Verdict
from radii.verifiers.smt import Smt, number

pytest.importorskip("z3", reason="the extra `smt` is not installed")

BUDGET = Budget(seconds=20)


def line():
    net = Net((1,))
    net.add("Gemm", f32([[1.0], [-1.0]]), f32([0.0, 0.0]), transB=1)
    return net.build(2, Domain(-4, 4))


@pytest.mark.parametrize("norm", [LINF, L1, L2])
def test_one_unit_in_the_last_place_decides(norm):
    instance = Instance(f32([0.5]), 0)
    below = math.nextafter(0.5, 0.0)
    robust, broken = Smt().decide(line(), [Query(instance, below, norm=norm), Query(instance, 0.5, norm=norm)], BUDGET)
    assert robust.verdict is Verdict.ROBUST
    assert robust.proof.arithmetic == "real"
    assert broken.verdict is Verdict.BROKEN
    assert broken.witness.distance == 0.5


def test_l2_radius_of_a_linear_classifier():
    net = Net((3,))
    weight = f32([[1.0, 2.0, -1.0], [-0.5, 0.25, 1.0]])
    net.add("Gemm", weight, f32([0.1, 0.0]), transB=1)
    network, x = net.build(2, Domain(-9, 9)), f32([0.3, 0.4, 0.1])
    row = (weight[0] - weight[1]).astype(np.float64)
    truth = float((row @ x + 0.1) / np.linalg.norm(row))
    answers = Smt().decide(network, [Query(Instance(x, 0), truth * f, norm=L2) for f in (0.999, 1.001)], BUDGET)
    assert [a.verdict for a in answers] == [Verdict.ROBUST, Verdict.BROKEN]


def test_boxes_and_conjunctions():
    network = mlp(np.random.default_rng(1), [2, 5, 2])
    outputs = network(f32(np.random.default_rng(2).uniform(size=(500, 2))))
    reachable = Clause(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([-outputs[0, 0] + 0.01, outputs[0, 0] + 0.01]))
    never = Clause(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.0, -1.0]))  # y0 ≤ 0 and y0 ≥ 1
    box = (np.zeros(2), np.ones(2))
    assert Smt().decide_spec(network, SpecQuery(*box, OutputSpec((never,))), BUDGET).verdict is Verdict.ROBUST
    assert Smt().decide_spec(network, SpecQuery(*box, OutputSpec((never, reachable))), BUDGET).verdict is Verdict.BROKEN


def test_time_and_memory_limits_end_the_solver():
    rng = np.random.default_rng(5)
    network = mlp(rng, [12, 25, 25, 4])
    x = f32(rng.uniform(size=12))
    query = Query(Instance(x, int(network.predict(x))), 0.35)
    (late,) = Smt().decide(network, [query], Budget(seconds=0.7))
    assert (late.verdict, late.reason) == (Verdict.UNKNOWN, Reason.TIME)
    (full,) = Smt().decide(network, [query], Budget(seconds=30, memory=12 * 2**20))
    assert (full.verdict, full.reason) == (Verdict.UNKNOWN, Reason.MEMORY)


def test_numbers_are_exact():
    for value in (0.1, -1 / 3, 5e-324, 1e30, 0.0):
        text = number(value).replace("(- ", "-").replace("(/ ", "").replace(")", "").replace(".0", "")
        top, *bottom = text.split()
        assert Fraction(int(top), int(bottom[0]) if bottom else 1) == Fraction(value)
