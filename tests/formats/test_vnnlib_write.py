"""Writing VNN-LIB: what is written reads back the same, in both versions, and the official grammar accepts 2.x."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import vnnlib
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from radii.errors import InputError
from radii.formats import Layout, parse_vnnlib, problem_text, query_text, spec_text
from radii.formats.decimals import exact, exact_sum
from radii.problem import (
    L1,
    L2,
    Classification,
    Clause,
    Domain,
    Instance,
    Lipschitz,
    OutputSpec,
    Query,
    SpecQuery,
    Standard,
    StrongClassification,
)

finite64 = st.floats(allow_nan=False, allow_infinity=False)
pixels = arrays(np.float32, (1, 2, 2), elements=st.floats(0, 1, width=32))
LAYOUTS = [Layout(), Layout("2.0", input_shape=(1, 1, 2, 2), output_shape=(1, 3)), Layout("2.0", dtype="real")]
PROPERTIES = [Classification(), Classification(target=2), StrongClassification(0.52), Standard(0.1)]


@given(finite64)
def test_exact_decimals(value: float) -> None:
    text = exact(value)
    assert Fraction(text) == Fraction(value)
    assert "e" not in text.lower()
    assert "." in text
    assert float(text) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_exact_decimals_of_float32(value: float) -> None:
    assert np.float32(exact(value)) == np.float32(value)


@given(finite64, finite64)
def test_exact_sums(a: float, b: float) -> None:
    assert Fraction(exact_sum(a, b)) == Fraction(a) + Fraction(b)


def test_numbers_that_cannot_be_said() -> None:
    assert exact(-0.0) == "0.0"
    assert exact(1e-5).startswith("0.00001")
    with pytest.raises(InputError, match="finite"):
        exact(float("inf"))


def same_spec(a: OutputSpec, b: OutputSpec) -> None:
    assert len(a.clauses) == len(b.clauses)
    for one, two in zip(a.clauses, b.clauses, strict=True):
        np.testing.assert_array_equal(one.coefficients, two.coefficients)
        np.testing.assert_array_equal(one.bounds, two.bounds)


def referee(text: str) -> Any:
    """The official parser's view of a 2.x text: it must accept it."""
    return vnnlib.parse_query_string(text)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda p: p.kind)
@settings(max_examples=15)
@given(x=pixels, epsilon=st.floats(0, 0.5))
def test_queries_read_back_the_same(layout: Layout, prop: Any, x: Any, epsilon: float) -> None:
    query = Query(Instance(x, 1), epsilon, prop)
    reference = np.array([0.1, 2.7182818, -1.5], dtype=np.float32)
    text = query_text(query, 3, reference=reference, layout=layout)
    problem = parse_vnnlib(text)
    (back,) = problem.queries
    low, high = query.ball(Domain()).box()
    np.testing.assert_array_equal(back.lower, low.ravel())
    np.testing.assert_array_equal(back.upper, high.ravel())
    same_spec(back.spec, prop.violations(3, 1, reference))
    assert not any(problem.strictness)
    if layout.version == "2.0":
        assert len(referee(text).assertions) == 8 + (1 if len(back.spec.clauses) > 1 else len(back.spec.clauses))
        assert problem.input.shape == (layout.input_shape or (4,))


def test_the_ball_is_said_exactly() -> None:
    x = np.full((1, 1), 0.3, dtype=np.float32)
    text = query_text(Query(Instance(x, 0), 0.1), 2)
    line = next(line for line in text.splitlines() if line.startswith("(assert (>= X_0"))
    assert Fraction(line.split()[3].rstrip(")")) == Fraction(float(x[0, 0])) - Fraction(0.1)


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=15)
@given(st.data())
def test_general_specifications_read_back_the_same(layout: Layout, data: st.DataObject) -> None:
    number = st.floats(-1e6, 1e6)
    low = np.array(data.draw(st.lists(number, min_size=4, max_size=4)))
    high = low + np.array(data.draw(st.lists(st.floats(0, 10), min_size=4, max_size=4)))
    rows = st.integers(1, 3)
    clauses = []
    for _ in range(data.draw(st.integers(1, 4))):
        count = data.draw(rows)
        matrix = data.draw(arrays(np.float64, (count, 3), elements=number))
        clauses.append(Clause(matrix, data.draw(arrays(np.float64, count, elements=number))))
    query = SpecQuery(low, high, OutputSpec(tuple(clauses)))
    text = spec_text(query, layout=layout)
    (back,) = parse_vnnlib(text).queries
    np.testing.assert_array_equal(back.lower, low)
    np.testing.assert_array_equal(back.upper, high)
    same_spec(back.spec, query.spec)
    if layout.version == "2.0":
        referee(text)


def test_several_boxes_and_open_ends_read_back_the_same() -> None:
    text = """(vnnlib-version <2.0>)
    (declare-network f (declare-input X real [2]) (declare-output Y real [2]))
    (assert (or (and (<= X[0] 1.0) (<= Y[0] 0.5)) (and (>= X[0] 2.0) (>= Y[0] Y[1])) (and (<= X[0] 1.0) (<= Y[1] 0.0))))
    """
    problem = parse_vnnlib(text)
    again = problem_text(problem)
    referee(again)
    back = parse_vnnlib(again)
    assert len(back.queries) == len(problem.queries) == 2
    assert (back.network, back.input) == ("f", problem.input)
    for a, b in zip(problem.queries, back.queries, strict=True):
        np.testing.assert_array_equal(a.lower, b.lower)
        np.testing.assert_array_equal(a.upper, b.upper)
        same_spec(a.spec, b.spec)


@pytest.mark.parametrize("norm", [L1, L2])
def test_balls_that_are_not_boxes_are_refused(norm: Any) -> None:
    with pytest.raises(InputError, match="not such a box"):
        query_text(Query(Instance(np.zeros((1, 2, 2)), 0), 0.1, norm=norm), 3)


def test_what_the_language_cannot_say_is_refused() -> None:
    query = Query(Instance(np.zeros((1, 2, 2)), 0), 0.1)
    with pytest.raises(InputError, match="distance"):
        query_text(Query(query.instance, 0.1, Lipschitz(2.0)), 3)
    with pytest.raises(InputError, match="VNN-LIB version"):
        Layout("3.0")
    with pytest.raises(InputError, match="shape of 4 inputs"):
        query_text(query, 3, layout=Layout("2.0", input_shape=(1, 3)))
    strict = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (< Y_0 1))"
    with pytest.raises(InputError, match="strict"):
        problem_text(parse_vnnlib(strict))
    empty = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (> X_0 1))"
    with pytest.raises(InputError, match="no input can meet"):
        problem_text(parse_vnnlib(empty))


def test_the_reader_agrees_with_the_official_grammar_on_a_published_style() -> None:
    text = query_text(Query(Instance(np.full((1, 2, 2), 0.5), 0), "8/255"), 3, layout=LAYOUTS[1])
    official = referee(text)
    ours = parse_vnnlib(text).queries[0]
    seen: dict[tuple[int, bool], float] = {}
    for assertion in official.assertions[:8]:
        flat = int(np.ravel_multi_index(assertion.expr.lhs.indices, (1, 1, 2, 2)))
        seen[flat, isinstance(assertion.expr, vnnlib.LessEqual)] = assertion.expr.rhs.value
    assert [seen[i, False] for i in range(4)] == ours.lower.tolist()
    assert [seen[i, True] for i in range(4)] == ours.upper.tolist()
