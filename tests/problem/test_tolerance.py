"""Tolerances: absolute ones are numbers as ever, relative ones per cent of the upper end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import InputError
from radii.problem import Percent, Radius, Status
from radii.problem.tolerance import closing_gap, share_of, tolerance_of, written


@pytest.mark.parametrize(
    ("said", "meant", "kept"),
    [
        (0.002, 0.002, 0.002),
        ("1/1020", 1 / 1020, 1 / 1020),
        ("5%", Percent(5), "5%"),
        (" 0.1 % ", Percent(0.1), "0.1%"),
        (Percent(12.5), Percent(12.5), "12.5%"),
    ],
)
def test_what_is_said_is_what_is_kept(said, meant, kept):
    assert tolerance_of(said) == meant
    assert written(meant) == kept


@given(st.floats(0, 100, exclude_min=True, exclude_max=True))
def test_per_cent_come_back_to_the_last_digit(percent):
    assert tolerance_of(str(Percent(percent))) == Percent(percent)


@pytest.mark.parametrize("said", ["0%", "-5%", "100%", "150 %", "nan%", "%", "5 percent", "5%%", "", 0, -1, None])
def test_anything_else_is_refused_in_one_line(said):
    with pytest.raises(
        InputError, match=r"^search tolerance: expected a number above 0, or per cent .*, got "
    ) as caught:
        tolerance_of(said, "search tolerance")
    assert "\n" not in str(caught.value)


def test_a_relative_tolerance_does_not_call_half_of_a_small_radius_closed():
    assert Radius(0.0005, 0.0012, tolerance=1 / 1020).status is Status.CLOSED
    assert Radius(0.0005, 0.0012, tolerance=Percent(5)).status is Status.OPEN
    assert Radius(0.00115, 0.0012, tolerance=Percent(5)).status is Status.CLOSED
    assert Radius(0.19, 0.2, tolerance=Percent(5)).status is Status.CLOSED
    assert Radius(0.18, 0.2, tolerance=Percent(5)).status is Status.OPEN
    assert Radius(None, 0.2, tolerance=Percent(5)).status is Status.OPEN


def test_gaps_and_shares():
    assert closing_gap(0.002, 0.5) == 0.002
    assert closing_gap(Percent(5), 0.5) == pytest.approx(0.025)
    assert share_of("2%") == share_of(0.02) == 0.02
