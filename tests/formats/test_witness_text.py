"""Counterexamples print exactly and read back, in both forms; torn ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from radii.errors import FormatError
from radii.formats import Tensor, assignment_text, pairs_text, read_witness

floats = arrays(np.float32, st.integers(1, 6), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))


@given(floats, floats)
def test_both_forms_read_back_the_same(x: np.ndarray, y: np.ndarray) -> None:
    tensors = [(Tensor("X", x.shape, "float32"), x), (Tensor("Y", y.shape, "float32"), y)]
    for text in (
        pairs_text(x, y),
        "sat\n" + pairs_text(x, y),
        assignment_text(tensors),
        "sat\n" + assignment_text(tensors),
    ):
        back = read_witness(text)
        np.testing.assert_array_equal(back["X"].astype(np.float32), x)
        np.testing.assert_array_equal(back["Y"].astype(np.float32), y)


def test_the_forms_themselves() -> None:
    assert pairs_text([0.5, -2], [1e-3]).splitlines()[:2] == ["((X_0 0.5)", " (X_1 -2.0)"]
    assert "e" not in pairs_text([1e-30], [1e30])
    text = assignment_text([(Tensor("X", (1, 2), "float32"), [[0.5, 0.25]]), (Tensor("Y", (), "Real"), 3.0)])
    assert text.splitlines() == ["X float32 [1,2]", "0.5", "0.25", "Y Real []", "3.0"]


def test_what_other_tools_print() -> None:
    abcrown = "sat\n((X_0 0.639928)\n(X_1 -4.4e-05)\n(Y_0 -0.02)\n(Y_1 .5)\n)"
    back = read_witness(abcrown)
    np.testing.assert_array_equal(back["X"], [0.639928, -4.4e-05])
    np.testing.assert_array_equal(back["Y"], [-0.02, 0.5])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "got none"),
        ("sat\n", "got none"),
        ("((X_0 0.5) (X_2 1))", "value for X_1"),
        ("((X_0 0.5) (X_0 1))", "got two"),
        ("((X_0 nan))", "expected"),
        ("((X_0 0.5) rubbish)", "rubbish"),
        ("X float32 [2]\n0.5", "2 values of X, got 1"),
        ("X float32 [2]\n0.5\nhello", "number, got 'hello'.*line 3"),
        ("sat\nX float32\n0.5", "NAME TYPE.*line 2"),
        ("Traceback (most recent call last)", "expected NAME TYPE"),
    ],
)
def test_torn_counterexamples_are_refused(text: str, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        read_witness(text)
