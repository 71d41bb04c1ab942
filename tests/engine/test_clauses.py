"""Clauses of several rows: weights of rows found by the search prove what exact arithmetic allows, and nothing else."""

from __future__ import annotations

import itertools
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bounds.test_bounds_rounding import above, grown, nasty

import radii
from radii.decide import Budget
from radii.engine.condensed import objectives
from radii.engine.maxima import maxima
from radii.engine.native import Native
from radii.engine.output_rows import OutputRows, spec_rows
from radii.engine.subproblem import Problem
from radii.engine.tree import Tree
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Clause, Instance, Norm, OutputSpec, Query, Rows, Status
from radii.testing.exact import exact_breach

NORMS = ("linf", "l2", "l1")
MOST = Budget(seconds=20)


def least_greatest(curve: Any, rows: Any, shift: Any) -> Fraction:
    """The exact least value of the greatest row on a curve of one input, in rational arithmetic."""

    def values(y: list[Fraction]) -> list[Fraction]:
        return [
            sum((Fraction(float(a)) * b for a, b in zip(row, y)), -Fraction(float(s))) for row, s in zip(rows, shift)
        ]

    best = min(max(values(y)) for _, y in curve)
    for (_, y0), (_, y1) in pairwise(curve):
        begin, end = values(y0), values(y1)
        for (a, b), (c, d) in itertools.combinations(zip(begin, end), 2):
            if (a - c) * (b - d) < 0:  # two rows cross inside the piece
                part = (a - c) / ((a - c) - (b - d))
                best = min(best, max(p + part * (q - p) for p, q in zip(begin, end)))
    return best


@given(st.integers(0, 10**6), st.sampled_from([(1, 4, 3), (1, 4, 3, 4)]), st.floats(1e-6, 1.0), st.integers(2, 4))
@settings(max_examples=25)
def test_a_clause_is_never_refuted_on_a_tie(seed: int, widths: tuple[int, ...], epsilon: float, count: int) -> None:
    """The rows are shifted so that their exact least greatest value is 0 or a hair below: the clause stays open."""
    curves, root, net = grown(nasty(seed, widths), 0.5, epsilon)
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.integers(-2, 3, (count, widths[-1])).astype(np.float64))
    size = max(float(abs(v)) for _, y in curves[-1] for v in y)
    shift = torch.from_numpy(size * rng.normal(size=count))
    truth = least_greatest(curves[-1], rows.tolist(), shift.tolist())
    shift = torch.tensor([above(Fraction(float(s)) + truth) for s in shift], dtype=torch.float64)
    assert least_greatest(curves[-1], rows.tolist(), shift.tolist()) <= 0
    problem = Problem.of(net, objectives(root, net, rows, shift), members=torch.arange(count)[None])
    tree = Tree(problem, epsilon).started()
    for _ in range(30):
        assert not tree.done
        if not tree.step():
            break
    assert not tree.done


@given(st.integers(0, 10**6), st.integers(2, 5))
@settings(max_examples=15)
def test_a_clause_is_refuted_a_little_below(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in ((1, 5), (5, 4), (4, 3))]
    curves, root, net = grown(layers, 0.5, 0.5)
    rows, shift = torch.from_numpy(rng.normal(size=(count, 3))), torch.from_numpy(rng.normal(size=count))
    truth = float(least_greatest(curves[-1], rows.tolist(), shift.tolist()))
    shift = shift + truth - 1e-4 * (1 + abs(truth))
    tree = Tree(Problem.of(net, objectives(root, net, rows, shift), members=torch.arange(count)[None]), 0.5).started()
    for _ in range(60):
        if tree.done or not tree.step():
            break
    assert tree.done


def network(seed: int, inputs: int, outputs: int, end: torch.nn.Module | None = None) -> Classifier:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(inputs, 6), torch.nn.ReLU(), torch.nn.Linear(6, 5), torch.nn.LeakyReLU(0.1)]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(5, outputs), *([] if end is None else [end]))
    for weight in module.parameters():
        weight.data = torch.randn(weight.shape) * (0.8 if weight.dim() > 1 else 0.4)
    return radii.load_classifier(module, input_shape=(inputs,))


def asked(seed: int, net: Classifier, x: Any) -> Rows:
    """Some clauses of up to four rows that hold at x itself."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, net.classes))
    bounds = rows @ net(x).astype(np.float64) + rng.uniform(-0.8, 0.4, 5)
    bounds[0] = rows[0] @ net(x).astype(np.float64) - 0.3
    clauses = tuple((0, *rng.choice(np.arange(1, 5), k, replace=False).tolist()) for k in rng.integers(1, 4, 3))
    return Rows(tuple(map(tuple, rows.tolist())), tuple(bounds.tolist()), clauses)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(4))
def test_radii_of_clauses_are_exact(seed: int, norm: str) -> None:
    inputs = 1 + seed % 3
    net = network(seed, inputs, 3)
    x = np.random.default_rng(seed).uniform(0.1, 0.9, inputs).astype(np.float32)
    question = asked(seed, net, x)
    truth = exact_breach(net, x, question.violations(3, 0), norm).distance
    found = radii.radius(net, x, 0, property=question, norm=norm, tolerance=1e-4, seconds=20)
    if np.isinf(truth):
        assert found.upper is None
        assert found.lower is not None
        assert found.lower >= Norm.of(norm).size(np.maximum(x, 1 - x)) - 1e-6
        return
    assert found.status is Status.CLOSED
    assert found.lower <= truth + 1e-7 <= found.upper + 2e-7
    points = np.random.default_rng(1).uniform(-1, 1, (20_000, inputs))
    length = np.linalg.norm(points, ord=Norm.of(norm).order, axis=1, keepdims=True)
    points = x + points / length * found.lower * np.random.default_rng(2).random((len(points), 1)) ** (1 / inputs)
    values = net.reference(np.clip(points, 0, 1).astype(np.float32))
    spec = question.violations(3, 0)
    slack = 1e-5  # what the clip to float32 moves the points
    for clause in spec.clauses:
        assert not (values @ clause.coefficients.T <= clause.bounds - slack).all(1).any()


@pytest.mark.parametrize("end", [torch.nn.ReLU(), torch.nn.Hardtanh(-0.5, 0.5), torch.nn.Tanh()])
def test_clauses_over_cut_and_curved_outputs(end: torch.nn.Module) -> None:
    net = network(3, 2, 3, end)
    x = np.array([0.4, 0.6], dtype=np.float32)
    out = net(x).astype(np.float64)
    spec = Rows(((1.0, 0.0, 0.0), (0.0, -1.0, 0.0)), (out[0] - 0.05, -out[1] - 0.05), ((0, 1),))
    found = radii.radius(net, x, 0, property=spec, tolerance=1e-3, seconds=20)
    side = np.linspace(0, 1, 301)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2).astype(np.float32)
    values, far = net.reference(grid), np.abs(grid - x).max(1)
    broken = (values[:, 0] <= out[0] - 0.05) & (values[:, 1] >= out[1] + 0.05)
    nearest = far[broken].min() if broken.any() else np.inf
    assert (found.lower or 0.0) <= nearest + 1e-6
    assert found.lower > 0
    assert found.upper is None or found.upper <= nearest + 0.01


def test_decisions_of_clauses_agree_with_their_radius() -> None:
    net = network(1, 2, 3)
    x = np.array([0.3, 0.5], dtype=np.float32)
    question = asked(1, net, x)
    radius = exact_breach(net, x, question.violations(3, 0)).distance
    queries = [Query(Instance(x, 0), share * radius, question, Norm.of("linf")) for share in (0.9, 1.1)]
    answers: list[Answer] = Native(effort="fast").decide(net, queries, MOST)
    assert [answer.verdict.value for answer in answers] == ["robust", "broken"]


def test_a_joint_radius_is_no_smaller_than_either() -> None:
    """Two networks side by side, one clause for every pair of target classes: they are fooled together."""
    a, b = (torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)) for _ in range(2))

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = a, b

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.a(x), self.b(x)], 1)

    torch.manual_seed(6)
    for weight in (*a.parameters(), *b.parameters()):
        weight.data = torch.randn(weight.shape)
    merged = radii.load_classifier(Both(), input_shape=(3,))
    single = [radii.load_classifier(one, input_shape=(3,)) for one in (a, b)]
    rng = np.random.default_rng(0)
    same = (x for x in rng.random((500, 3), np.float32) if single[0](x).argmax() == single[1](x).argmax())
    x = next(same)
    label = int(single[0](x).argmax())
    others = [t for t in range(3) if t != label]
    unit = np.eye(6)
    rows = [tuple(unit[3 * m + label] - unit[3 * m + t]) for m in range(2) for t in others]
    joint = Rows(tuple(rows), None, tuple(itertools.product(range(2), range(2, 4))))
    found = radii.radius(merged, x, label, property=joint, tolerance=1e-4, seconds=20)
    alone = [exact_breach(net, x, radii.Classification().violations(3, label)).distance for net in single]
    truth = exact_breach(merged, x, joint.violations(6, label)).distance
    assert truth >= max(alone) - 1e-7
    assert found.lower <= truth + 1e-7
    assert found.upper is None or found.upper >= truth - 1e-7
    assert found.status is Status.CLOSED or np.isinf(truth)


def test_rows_that_clauses_share_are_kept_once() -> None:
    net = network(0, 2, 3)
    unit = np.eye(3)
    clauses = tuple(Clause(unit[[i, j]], np.zeros(2)) for i, j in itertools.combinations(range(3), 2))
    found = spec_rows(net, OutputSpec((*clauses, Clause(unit[:1], np.zeros(1)))))
    assert found.rows.shape == (3, 3)
    assert found.clauses == 4
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 2)))
    values = found.greatest(found.graph(x) @ found.rows.T - found.shift)
    torch.testing.assert_close(values, maxima(found).graph(x))
    assert isinstance(found, OutputRows)


@pytest.mark.parametrize("clauses", [((0, 2),), ((),), (), ((-1,),), 3])
def test_clauses_of_rows_that_are_not_there(clauses: Any) -> None:
    with pytest.raises(InputError, match="clauses"):
        Rows(((1.0, 0.0), (0.0, 1.0)), None, clauses)


def test_clauses_have_no_reach() -> None:
    with pytest.raises(InputError, match="reach"):
        Rows(((1.0, 0.0), (0.0, 1.0)), None, ((0, 1),)).quantity(2, 0)
