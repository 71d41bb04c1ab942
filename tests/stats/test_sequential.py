"""Planned and sequential guarantees: known sample sizes, coverage at every stopping time, stopping when narrow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from radii.errors import InputError
from radii.stats.confidence_intervals import share_interval, share_lower
from radii.stats.dkw import dkw_half_width
from radii.stats.sample_sizes import expected_lower, sample_size, zero_failure_size
from radii.stats.sequential import Watch, looks, running_lower, running_upper


def test_the_papers_sample_size() -> None:
    """Section 4.1 of the statistical-guarantees paper: 5 % tolerance with "just above 700" samples."""
    plan = sample_size(0.05, 0.95)
    assert plan.n == 738
    assert 2 * math.exp(-2 * 0.05**2 * plan.n) <= 0.05 < 2 * math.exp(-2 * 0.05**2 * (plan.n - 1))
    assert sample_size(0.5, 0.95, span=10).n == plan.n


def test_plans_are_sufficient_and_nearly_minimal() -> None:
    exact = sample_size(0.05, method="clopper-pearson").n
    assert exact < 738
    low, high = share_interval(np.arange(exact + 1), exact)
    assert np.max(high - low) / 2 <= 0.05 + 1e-3
    low, high = share_interval(np.arange(exact - 20), exact - 21)
    assert np.max(high - low) / 2 > 0.05
    assert sample_size(0.05, method="clopper-pearson", share=0.99).n < exact / 3
    finite = sample_size(0.05, method="dkw", population=1000).n
    assert finite < sample_size(0.05, method="dkw").n
    assert dkw_half_width(finite, population=1000) <= 0.05
    assert sample_size(0.01, method="dkw", population=500).n <= 500


def test_zero_failures_show_a_share() -> None:
    n = zero_failure_size(0.97)
    assert share_lower(n, n) >= 0.97 > share_lower(n - 1, n - 1)
    assert expected_lower(100, 1.0) == pytest.approx(0.970, abs=5e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_size(0),
        lambda: sample_size(0.6),
        lambda: sample_size(0.1, method="guess"),
        lambda: zero_failure_size(1),
        lambda: looks(0),
        lambda: Watch(eps=-1, width=0.1),
        lambda: Watch(eps=0.1, width=0),
        lambda: Watch(eps=0.1, width=0.1).count([1], [0]),
        lambda: running_lower([3], [2]),
    ],
)
def test_bad_plans_are_refused(call: object) -> None:
    with pytest.raises(InputError):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("share", [0.1, 0.7, 0.97])
def test_the_confidence_sequence_holds_at_all_times(share: float) -> None:
    rng = np.random.default_rng(int(100 * share))
    runs, longest = 400, 1500
    wins = np.cumsum(rng.random((runs, longest)) < share, axis=1)
    times = np.unique(np.geomspace(1, longest, 40).astype(int))
    low = running_lower(wins[:, times - 1], times, 0.975)
    high = running_upper(wins[:, times - 1], times, 0.975)
    missed = np.any((low > share) | (high < share), axis=1)
    assert missed.mean() <= 0.055
    wide = np.mean(high[:, -1] - low[:, -1])
    fixed = share_interval(round(share * longest), longest)
    assert wide <= 2.2 * float(fixed[1] - fixed[0])  # the price of looking at any time


def test_it_stops_at_the_asked_width_and_covers_the_truth() -> None:
    """Open answers: 10 % of the inputs are neither proven nor broken."""
    rng = np.random.default_rng(0)
    runs, hits, used = 80, 0, []
    for _ in range(runs):
        watch = Watch(eps=0.05, width=0.3)
        while not watch.done and watch.draws < 2000:
            truth = rng.lognormal(np.log(0.08), 0.5, 25)
            gap = rng.random(25) < 0.1
            watch = watch.add(np.where(gap, 0.01, truth * 0.99), np.where(gap, np.nan, truth * 1.01))
        assert watch.done
        used.append(watch.draws)
        hits += watch.low <= 0.8264 <= watch.high  # P(lognormal > 0.05)
    assert hits >= 0.945 * runs
    assert np.median(used) < 400


def test_adding_one_by_one_or_at_once_is_the_same() -> None:
    rng = np.random.default_rng(3)
    proven = rng.random(50) < 0.8
    alive = proven | (rng.random(50) < 0.5)
    whole = Watch(eps=0.1, width=0.1).count(proven, alive)
    steps = Watch(eps=0.1, width=0.1)
    for p, q in zip(proven, alive):
        steps = steps.count([p], [q])
    assert (steps.low, steps.high) == pytest.approx((whole.low, whole.high))
    assert "any stopping time" in whole.sentence()


def test_too_many_open_answers_are_hopeless() -> None:
    watch = Watch(eps=0.1, width=0.2).count([0] * 50, [1] * 50)
    assert watch.hopeless
    assert not watch.done


def test_a_schedule_of_looks_spends_no_more_than_the_error() -> None:
    plan = looks(0.05)
    spent = sum(2 * math.exp(-2 * look.n * look.half_width**2) for look in plan)
    assert spent <= 0.05
    assert plan[-1].half_width <= 0.05 < plan[-2].half_width
    assert plan[-1].n < 2.5 * sample_size(0.05, method="dkw").n
