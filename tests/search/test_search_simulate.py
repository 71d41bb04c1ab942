"""The simulator: deterministic, true to its trials, and of the shape of the paper's Table 1."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import InputError
from radii.problem import Reason, Verdict
from radii.search import Grid, Iterative, KBinary
from radii.search.simulate import Difficulty, Play, Summary, Trial, compare, play, play_direct

GRID = Grid.steps(0.001, 0.4, 0.002)
seconds = st.lists(st.floats(0.1, 99.0), min_size=12, max_size=12)


@given(seconds, st.integers(0, 12), st.integers(1, 6), st.floats(1.0, 120.0), st.sets(st.integers(0, 11)))
def test_a_play_ends_at_the_truth_that_fits_the_limit(
    times: list[float], turn: int, k: int, limit: float, lost: set[int]
) -> None:
    grid = Grid(tuple((i + 1) / 100 for i in range(12)))
    trial = Trial(grid, turn, times, dict.fromkeys(lost, Reason.MEMORY))
    told = play(trial, KBinary(grid, k), limit)
    answered = [p for p in range(12) if times[p] < limit and p not in lost]
    assert told.low == max((p for p in answered if p < turn), default=-1)
    assert told.high == min((p for p in answered if p >= turn), default=12)
    assert told.wall_seconds <= told.cpu_seconds * (1 + 1e-12) <= k * told.wall_seconds * (1 + 1e-9)
    assert told.timeouts + told.memory_errors + told.cancelled <= told.queries <= 12


def test_cancelled_queries_cost_what_they_used() -> None:
    grid = Grid((0.1, 0.2))
    trial = Trial(grid, 2, [10.0, 4.0])
    told = play(trial, KBinary(grid, 2), 100.0)
    assert told == Play(1, 2, 2, 0, 0, 1, 8.0, 4.0, False)


def test_the_same_seed_gives_the_same_table() -> None:
    searches = {"k2": partial(KBinary, k=2), "scan": Iterative}
    one, two = (compare(Difficulty(memory=0.02).trials(GRID, 40, 7), searches, 3600.0) for _ in range(2))
    assert one == two
    assert one != compare(Difficulty(memory=0.02).trials(GRID, 40, 8), searches, 3600.0)


def test_the_shape_of_table_1() -> None:
    trials = Difficulty().trials(GRID, 200, 1)
    table = compare(trials, {str(k): partial(KBinary, k=k) for k in (1, 2, 4, 8)}, 3600.0)
    rows = [table[k] for k in ("1", "2", "4", "8")]
    walls, cpus, queries, cancelled = (
        [getattr(row, name) for row in rows]
        for name in ("wall_seconds", "cpu_seconds", "queries_mean", "cancelled_share")
    )
    assert walls == sorted(walls, reverse=True)
    assert cpus == sorted(cpus)
    assert queries == sorted(queries)
    assert cancelled == sorted(cancelled)
    assert len({row.closed_share for row in rows}) == 1  # every k finds the same intervals
    assert table["direct"].cpu_seconds < table["1"].cpu_seconds / 2


def test_missing_answers_cost_queries() -> None:
    plain, lossy = (
        compare(Difficulty(memory=share).trials(GRID, 100, 3), {"k": partial(KBinary, k=1)}, 3600.0)["k"]
        for share in (0.0, 0.39)
    )
    assert lossy.queries_mean > plain.queries_mean + 2
    assert lossy.memory_errors > 2


def test_direct_is_anytime() -> None:
    grid = Grid((0.1, 0.2, 0.3, 0.4))
    trial = Trial(grid, 3, [1.0, 5.0, 50.0, 2.0])
    assert play_direct(trial, 100.0) == Play(2, 3, 1, 0, 0, 0, 50.0, 50.0, False)
    assert play_direct(trial, 10.0) == Play(1, 3, 1, 1, 0, 0, 10.0, 10.0, False)


def test_recorded_answers() -> None:
    grid = Grid((0.1, 0.2, 0.3, 0.4, 0.5))
    trial = Trial.recorded(grid, {0: (Verdict.ROBUST, 1.0), 2: (Verdict.ROBUST, 100.0), 4: (Verdict.BROKEN, 4.0)})
    np.testing.assert_allclose(trial.seconds, [1.0, 10.0, 100.0, 20.0, 4.0])
    assert trial.answer(1, 1000.0)[0] is Verdict.ROBUST
    assert trial.answer(3, 1000.0)[:2] == (Verdict.UNKNOWN, Reason.INCOMPLETE)
    assert trial.answer(2, 50.0) == (Verdict.UNKNOWN, Reason.TIME, 50.0)
    told = play(trial, KBinary(grid, 1), 1000.0)
    assert (told.low, told.high, told.critical_termination) == (2, 4, True)


def test_misuse_is_refused() -> None:
    grid = Grid((0.1, 0.2))
    with pytest.raises(InputError, match="at least one recorded"):
        Trial.recorded(grid, {})
    with pytest.raises(InputError, match="monotone"):
        Trial.recorded(grid, {0: (Verdict.BROKEN, 1.0), 1: (Verdict.ROBUST, 1.0)})
    with pytest.raises(InputError, match="at least one trial"):
        compare([], {}, 1.0)
    with pytest.raises(InputError, match="at least one play"):
        Summary.of([])
    with pytest.raises(InputError, match="limit"):
        play(Trial(grid, 1, [1.0, 1.0]), KBinary(grid, 1), 0.0)
