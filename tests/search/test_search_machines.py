"""Every search ends at the truth of the answered positions, for any k, any order of answers and any missing ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import Contradiction, InputError
from radii.problem import Reason, Verdict
from radii.search import Grid, GridSearch, Iterative, KBinary

MISSING = (Reason.TIME, Reason.MEMORY, Reason.ERROR, Reason.UNSUPPORTED, Reason.INCOMPLETE)


def grid_of(n: int) -> Grid:
    return Grid(tuple((i + 1) / 1000 for i in range(n)))


def run(search: GridSearch, turn: int, missing: dict[int, Reason], pick: st.DataObject | None = None) -> list[int]:
    """Play a search to its end against a monotone truth (broken from `turn` on); gives the positions cancelled."""
    cancelled: list[int] = []
    flight: list[int] = []
    while True:
        new = search.ask()
        assert len(set(new)) == len(new)
        assert not set(new) & set(flight)
        flight += new
        assert len(flight) <= search.k
        assert set(flight) == search.running
        if not flight:
            return cancelled
        at = pick.draw(st.integers(0, len(flight) - 1)) if pick else 0
        position = flight.pop(at)
        if position in missing:
            gone = search.tell(position, Verdict.UNKNOWN, missing[position])
        else:
            gone = search.tell(position, Verdict.BROKEN if position >= turn else Verdict.ROBUST)
        for p in gone:
            flight.remove(p)
        cancelled += gone


def searches(grid: Grid, k: int) -> list[GridSearch]:
    return [KBinary(grid, k), Iterative(grid, k), Iterative(grid, k, descending=True)]


@given(st.data(), st.integers(1, 40), st.integers(1, 20), st.integers(0, 2))
def test_the_end_is_the_linear_truth(data: st.DataObject, n: int, k: int, kind: int) -> None:
    turn = data.draw(st.integers(0, n))
    missing = data.draw(st.dictionaries(st.integers(0, n - 1), st.sampled_from(MISSING)))
    search = searches(grid_of(n), k)[kind]
    cancelled = run(search, turn, missing, data)
    proven = [p for p in range(turn) if p not in missing]
    broken = [p for p in range(turn, n) if p not in missing]
    assert search.lower == (search.grid[max(proven)] if proven else None)
    assert search.upper == (search.grid[min(broken)] if broken else None)
    assert search.done
    between = bool(proven and broken) and any(max(proven) < p < min(broken) for p in missing)
    assert search.critical_termination == between
    assert search.unsolved == (not proven and not broken)
    assert search.counts.cancelled == len(cancelled)
    assert search.counts.queries <= n


@given(st.integers(1, 2000), st.data())
def test_k_1_is_binary_search(n: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(0, n))
    search = KBinary(grid_of(n), 1)
    run(search, turn, {})
    assert search.counts.queries <= n.bit_length()


@pytest.mark.parametrize("k", [1, 2, 3, 4, 8, 16, 199, 200, 500])
def test_first_questions_split_evenly(k: int) -> None:
    asked = KBinary(grid_of(200), k).ask()
    assert len(asked) == min(k, 200)
    parts = [b - a for a, b in pairwise([-1, *asked, 200])]
    assert max(parts) - min(parts) <= 1


def test_a_proof_cancels_what_lies_below_and_a_witness_what_lies_above() -> None:
    search = KBinary(grid_of(8), 2)
    assert search.ask() == [2, 5]
    assert search.tell(5, Verdict.ROBUST) == [2]
    assert (search.counts.queries, search.counts.cancelled) == (2, 1)
    assert search.ask() == [6, 7]
    assert search.tell(6, Verdict.BROKEN) == [7]
    assert search.done
    assert (search.lower, search.upper) == (0.006, 0.007)


def test_a_freed_slot_takes_the_middle_of_the_widest_part_left() -> None:
    search = KBinary(grid_of(8), 2)
    search.ask()
    assert search.tell(2, Verdict.ROBUST) == []
    assert search.ask() == [3]  # (2, 5) and (5, 8) are equally wide; the lower one first
    assert search.running == {3, 5}


def test_missing_answers_are_gone_around() -> None:
    search = KBinary(grid_of(99), 1)
    assert search.ask() == [49]
    search.tell(49, Verdict.UNKNOWN, Reason.TIME)
    assert search.ask() == [48]
    search.tell(48, Verdict.ROBUST)
    assert search.ask() == [74]
    assert search.missing == {49}


def test_counts_by_reason() -> None:
    search = Iterative(grid_of(6))
    for reason in (Reason.TIME, Reason.TIME, Reason.MEMORY, Reason.ERROR, Reason.CANCELLED):
        search.tell(search.ask()[0], Verdict.UNKNOWN, reason)
    counts = search.counts
    assert (counts.queries, counts.timeouts, counts.memory_errors) == (5, 2, 1)
    assert (counts.failed, counts.cancelled) == (1, 1)
    assert search.unsolved
    assert search.lower is None
    assert search.upper is None


def test_iterative_scans_in_order_and_stops_at_the_turn() -> None:
    up, down = Iterative(grid_of(10)), Iterative(grid_of(10), descending=True)
    run(up, 3, {})
    run(down, 3, {})
    assert up.counts.queries == 4
    assert down.counts.queries == 8
    assert (up.low, up.high) == (down.low, down.high) == (2, 3)


def test_a_contradiction_is_an_alarm_even_when_it_comes_late() -> None:
    search = KBinary(grid_of(8), 2)
    assert search.ask() == [2, 5]
    assert search.tell(5, Verdict.ROBUST) == [2]
    with pytest.raises(Contradiction, match=r"robust at ε = 0.006 but broken at ε = 0.003"):
        search.tell(2, Verdict.BROKEN)
    other = KBinary(grid_of(8), 2)
    other.ask()
    other.tell(2, Verdict.BROKEN)
    with pytest.raises(Contradiction, match=r"robust at ε = 0.006 but broken at ε = 0.003"):
        other.tell(5, Verdict.ROBUST)


def test_late_answers_that_agree_change_nothing() -> None:
    search = KBinary(grid_of(8), 2)
    search.ask()
    search.tell(5, Verdict.ROBUST)
    search.tell(2, Verdict.ROBUST)
    search.ask()
    assert search.tell(2, Verdict.UNKNOWN, Reason.CANCELLED) == []
    assert (search.low, search.missing, search.counts.cancelled) == (5, set(), 1)


def test_misuse_is_refused() -> None:
    search = KBinary(grid_of(8), 2)
    with pytest.raises(InputError, match="was asked"):
        search.tell(3, Verdict.ROBUST)
    with pytest.raises(InputError, match="k: expected"):
        KBinary(grid_of(8), 0)
