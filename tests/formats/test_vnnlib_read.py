"""Reading VNN-LIB: what a file asks, in both versions, and a place for every complaint."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from radii.errors import FormatError
from radii.formats.vnnlib_read import parse_vnnlib, read_vnnlib
from shared import DATA, needs_data

HEAD1 = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n(declare-const Y_1 Real)\n"
BOX1 = "(assert (>= X_0 -1))\n(assert (<= X_0 0.5))\n(assert (>= X_1 0))\n(assert (<= X_1 2e-1))\n"
HEAD2 = """(vnnlib-version <2.0>)
(declare-network net
  (declare-input X float32 [1,2])
  (declare-output Y float32 [1,2])
)
"""


def test_a_plain_1_0_file() -> None:
    problem = parse_vnnlib("; a comment\n" + HEAD1 + BOX1 + "(assert (<= Y_0 Y_1)) ; and another")
    (query,) = problem.queries
    np.testing.assert_array_equal(query.lower, [-1.0, 0.0])
    np.testing.assert_array_equal(query.upper, [0.5, 0.2])
    (clause,) = query.spec.clauses
    np.testing.assert_array_equal(clause.coefficients, [[1.0, -1.0]])
    np.testing.assert_array_equal(clause.bounds, [0.0])
    assert (problem.version, problem.input.shape, problem.output.size) == ("1.0", (2,), 2)


def test_a_plain_2_0_file() -> None:
    problem = parse_vnnlib(
        HEAD2
        + "(assert (and (>= X[0,0] 0.1) (<= X[0,0] 0.25)))\n(assert (== X[0, 1] -3.0))\n"
        + "(assert (or (and (>= Y[0,0] Y[0,1]) (<= (+ (* 2.0 Y[0,0]) 1.0) 3.5)) (<= (- Y [0,0] Y[0,1]) 0.00001)))"
    )
    (query,) = problem.queries
    np.testing.assert_array_equal(query.lower, [0.1, -3.0])
    np.testing.assert_array_equal(query.upper, [0.25, -3.0])
    first, second = query.spec.clauses
    np.testing.assert_array_equal(first.coefficients, [[-1.0, 1.0], [2.0, 0.0]])
    np.testing.assert_array_equal(first.bounds, [0.0, 2.5])
    np.testing.assert_array_equal(second.coefficients, [[1.0, -1.0]])
    np.testing.assert_array_equal(second.bounds, [0.00001])
    assert (problem.version, problem.network, problem.input.dtype) == ("2.0", "net", "float32")


def test_a_scalar_output_in_2_0() -> None:
    text = HEAD2.replace("Y float32 [1,2]", "Y Real []") + "(assert (<= X[0,0] 1.0))(assert (>= Y 2.0))"
    (query,) = parse_vnnlib(text).queries
    np.testing.assert_array_equal(query.spec.clauses[0].bounds, [-2.0])


def test_disjunctions_over_inputs_give_one_query_a_box() -> None:
    text = HEAD1 + "(assert (or (and (<= X_0 1) (>= X_0 0) (<= Y_0 0)) (and (>= X_0 2) (<= X_0 3) (>= Y_0 9))))"
    text += "(assert (>= X_1 0))(assert (<= X_1 1))(assert (<= Y_1 5))"
    one, two = parse_vnnlib(text).queries
    np.testing.assert_array_equal(one.lower, [0, 0])
    np.testing.assert_array_equal(two.upper, [3, 1])
    np.testing.assert_array_equal(one.spec.clauses[0].coefficients, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(two.spec.clauses[0].bounds, [5, -9])


def test_disjunctions_multiply_out_and_share_their_box() -> None:
    text = HEAD1 + BOX1 + "(assert (or (<= Y_0 0) (>= Y_0 1)))(assert (or (<= Y_1 0) (>= Y_1 1)))"
    (query,) = parse_vnnlib(text).queries
    assert len(query.spec.clauses) == 4
    for y, violated in [((-1, -1), True), ((-1, 0.5), False), ((2, 2), True), ((0.5, 2), False)]:
        assert query.spec.violated(np.array(y)) is violated


def test_empty_boxes_are_left_out() -> None:
    text = HEAD1 + "(assert (or (and (<= X_0 0) (>= X_0 1)) (and (<= X_0 1) (>= X_0 0))))(assert (<= Y_0 0))"
    assert len(parse_vnnlib(text).queries) == 1
    assert parse_vnnlib(HEAD1 + "(assert (<= X_0 0))(assert (>= X_0 1))(assert (<= Y_0 0))").queries == ()
    assert parse_vnnlib(HEAD1 + "(assert (< X_0 0))(assert (>= X_0 0))(assert (<= Y_0 0))").queries == ()


def test_without_outputs_every_input_of_the_box_will_do() -> None:
    (query,) = parse_vnnlib(HEAD1 + BOX1).queries
    assert query.spec.violated(np.array([123.0, -5.0]))


def test_strict_inequalities_have_the_last_word_on_a_witness() -> None:
    problem = parse_vnnlib(HEAD1 + BOX1 + "(assert (< Y_0 1))(assert (> X_1 0))")
    (query,) = problem.queries
    assert query.spec.violated(np.array([1.0, 0.0]))  # the closed relaxation
    assert not problem.satisfied([0, 0.1], [1.0, 0.0])
    assert problem.satisfied([0, 0.1], [0.5, 0.0])
    assert not problem.satisfied([0, 0.0], [0.5, 0.0])
    assert not problem.satisfied([9, 0.1], [0.5, 0.0])


def test_not_equal_is_two_strict_cases() -> None:
    problem = parse_vnnlib(HEAD2 + "(assert (<= X[0,0] 1.0))(assert (!= Y[0,0] 2.0))")
    assert not problem.satisfied([0, 0], [2.0, 0])
    assert problem.satisfied([0, 0], [2.5, 0])
    assert problem.satisfied([0, 0], [1.5, 0])


def test_the_order_of_equal_bounds_does_not_matter_for_strictness() -> None:
    for first, second in [("<", "<="), ("<=", "<")]:
        text = HEAD1 + BOX1 + f"(assert ({first} X_0 0.25))(assert ({second} X_0 0.25))(assert (<= Y_0 1))"
        problem = parse_vnnlib(text)
        assert not problem.satisfied([0.25, 0], [0, 0])
        assert problem.satisfied([0.2, 0], [0, 0])


def test_nested_arithmetic_is_exact() -> None:
    text = HEAD1 + BOX1 + "(assert (<= (+ (* 3 (- Y_0 (/ Y_1 4))) (- 0.1) 0.3) (* Y_0 2)))"
    (query,) = parse_vnnlib(text).queries
    np.testing.assert_array_equal(query.spec.clauses[0].coefficients, [[1.0, -0.75]])
    np.testing.assert_array_equal(query.spec.clauses[0].bounds, [-0.2])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_gzip_and_line_ends(tmp_path: Path, newline: str) -> None:
    text = (HEAD1 + BOX1 + "(assert (<= Y_0 Y_1))").replace("\n", newline)
    path = tmp_path / "q.vnnlib.gz"
    path.write_bytes(gzip.compress(text.encode()))
    np.testing.assert_array_equal(read_vnnlib(path).queries[0].upper, [0.5, 0.2])


def test_pieces_of_any_size_give_the_same_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "; head\n" + HEAD1 + BOX1 + "(assert (or (and (<= Y_0 Y_1) ; why\n (<= Y_0 3.25)) (>= Y_1 7.5)))\n; end"
    whole = parse_vnnlib(text).queries[0]
    for size in (1, 2, 7, 40):
        monkeypatch.setattr("radii.formats.sexpr._PIECE", size)
        (query,) = parse_vnnlib(text).queries
        np.testing.assert_array_equal(query.lower, whole.lower)
        for a, b in zip(query.spec.clauses, whole.spec.clauses, strict=True):
            np.testing.assert_array_equal(a.coefficients, b.coefficients)
            np.testing.assert_array_equal(a.bounds, b.bounds)
        with pytest.raises(FormatError) as error:
            parse_vnnlib(text + "\n(assert (<= Z 1))")
        assert (error.value.line, error.value.column) == (text.count("\n") + 2, 13)


@pytest.mark.parametrize(
    ("text", "says", "line", "column"),
    [
        (HEAD1 + "(assert (<= X_0 1)", "never closed", 5, 1),
        (HEAD1 + "(assert (<= X_7 1))", "declared variable, got 'X_7'", 5, 13),
        (HEAD1 + "(assert (<= X_0 1.0.0))", "number, got '1.0.0'", 5, 17),
        (HEAD1 + "(assert (<= X_0 1e999))", "finite", 5, 17),
        (HEAD1 + "(assert (<= X_0 1 2))", "two sides", 5, 9),
        (HEAD1 + "(assert (=> X_0 1))", "got '=>'", 5, 9),
        (HEAD1 + "(assert\n  (<= (* Y_0 Y_1) 1))", "not linear", 6, 7),
        (HEAD1 + "(assert (<= X_0 Y_1))", "mixes inputs and outputs", 5, 9),
        (HEAD1 + "(assert (<= (+ X_0 X_1) 1))", "not a box", 5, 9),
        (HEAD1 + "(assert (not (<= X_0 1)))", "without 'not'", 5, 9),
        (HEAD1 + "(assert)", "one condition", 5, 1),
        (HEAD1 + "assert", r"expected '\('", 5, 1),
        (HEAD1 + "(assert (<= X_0 1)))", r"expected '\('", 5, 20),
        (HEAD1 + "(assert (<= X_0 ]1))", "unexpected character", 5, 17),
        (HEAD1 + "(declare-const Z Real)", "declare-const X_0 Real", 5, 1),
        (HEAD1 + "(define x 1)", "got 'define'", 5, 1),
        (HEAD1 + "(assert (<= X_0 1))(declare-const X_2 Real)", "before the first assert", 5, 20),
        ("(declare-const X_0 Real)\n(assert (<= X_0 1))", "Y_0", 2, 1),
        ("(declare-const X_1 Real)(declare-const Y_0 Real)\n(assert (<= X_1 1))", "X_0 to be declared", 2, 1),
        ("(vnnlib-version <3.0>)", "1.0 or 2.x, got 3.0", 1, 1),
        ("(vnnlib-version 2.0)", "vnnlib-version <2.0>", 1, 1),
        (HEAD2 + "(assert (<= X[0,2] 1.0))", r"got 'X\[0,2\]'", 6, 13),
        (HEAD2 + "(assert (<= X[0] 1.0))", r"got 'X\[0\]'", 6, 13),
        (HEAD2.replace("float32", "int8"), "element type", 3, 3),
        (HEAD2.replace("[1,2]", "[1,-2]"), "shape", 3, 28),
        (HEAD2.replace("(declare-output", "(declare-hidden"), "hidden nodes", 4, 3),
        (HEAD2 + HEAD2.split("\n", 1)[1], "one network", 6, 1),
        (HEAD2.replace("(declare-output Y", "(declare-input Z"), "one declare-input, got 2", 2, 1),
    ],
)
def test_complaints_name_the_place(text: str, says: str, line: int, column: int) -> None:
    with pytest.raises(FormatError, match=says) as error:
        parse_vnnlib(text)
    assert (error.value.line, error.value.column) == (line, column)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    empty, binary, torn = tmp_path / "empty", tmp_path / "binary", tmp_path / "torn.gz"
    empty.write_text("; nothing\n")
    binary.write_bytes(bytes(range(128, 256)))
    torn.write_bytes(gzip.compress(HEAD1.encode())[:-9])
    for path, says in [
        (tmp_path / "absent", "where nothing is"),
        (empty, "expected assertions"),
        (binary, "binary"),
        (torn, "damaged"),
        (tmp_path, "got a folder"),
    ]:
        with pytest.raises(FormatError, match=says):
            read_vnnlib(path)


def test_a_query_for_another_network_is_refused() -> None:
    problem = parse_vnnlib(HEAD1 + BOX1 + "(assert (<= Y_0 Y_1))")
    problem.check_network((1, 2), 2)
    with pytest.raises(FormatError, match=r"2 inputs .* got one with 784"):
        problem.check_network((1, 28, 28), 2)
    with pytest.raises(FormatError, match="2 outputs, got one with 10"):
        problem.check_network((2,), 10)
    square = parse_vnnlib(HEAD2.replace("X float32 [1,2]", "X float32 [1,28,28,3]") + "(assert (<= Y[0,0] 0.0))")
    square.check_network((2352,), 2)
    square.check_network((28, 28, 3), 2)
    with pytest.raises(FormatError, match="another order"):
        square.check_network((3, 28, 28), 2)


def test_too_many_cases_are_refused_before_memory_runs_out() -> None:
    two = "".join("(assert (or (<= Y_0 0) (>= Y_1 1)))" for _ in range(40))
    with pytest.raises(FormatError, match="cases"):
        parse_vnnlib(HEAD1 + BOX1 + two)
    nested = "(and " + "".join("(or (<= Y_0 0) (>= Y_1 1))" for _ in range(40)) + ")"
    with pytest.raises(FormatError, match="cases"):
        parse_vnnlib(HEAD1 + BOX1 + f"(assert {nested})")


def test_a_window_knows_its_lines() -> None:
    with pytest.raises(FormatError) as error:
        parse_vnnlib("\n" * 5 + "(assert " + "(and " * 600)
    assert error.value.line == 6


@needs_data
@pytest.mark.parametrize("folder", ["acasxu", "mnistfc", "oval21", "verivital"])
def test_every_published_file_is_read(folder: str) -> None:
    paths = sorted((DATA / "vnncomp2021" / folder / "vnnlib").glob("*.gz"))
    assert paths
    for path in paths:
        problem = read_vnnlib(path)
        (query,) = problem.queries
        assert np.isfinite(query.lower).all()
        assert np.isfinite(query.upper).all()
        assert query.spec.outputs == problem.output.size in (5, 10)
        if folder != "acasxu":
            assert len(query.spec.clauses) == 9
