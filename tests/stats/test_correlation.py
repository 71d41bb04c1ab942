"""Rank correlation of radii known as intervals: the range against every compatible order, limits, degenerate data."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from radii.stats import Distribution
from radii.stats._arrays import Ends
from radii.stats.correlation import Correlation, correlations
from radii.stats.spearman_range import order, spearman_range

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def intervals(low: FloatArray, high: FloatArray) -> Ends:
    return Ends(low, np.where(high <= low, np.nextafter(low, np.inf), high))


def random_ends(rng: np.random.Generator, n: int, narrow: float) -> Ends:
    """Ends on a small grid, so that exact ties, touching, nested and unbounded intervals all occur."""
    low = rng.integers(0, 6, n).astype(float)
    high = low + rng.integers(0, 4, n) * (rng.random(n) > narrow)
    return intervals(low, np.where(rng.random(n) < 0.1, np.inf, high))


def every_rank(ends: Ends) -> list[FloatArray]:
    """Centred ranks of every order of the true radii that the intervals allow (equal exact radii share a rank)."""
    low, high = ends.radii()
    n, exact = low.size, low == high
    sure = (high[:, None] <= low) & ~((high <= low[:, None]) & exact[:, None] & exact)
    found = {}
    for chosen in permutations(range(n)):
        rank = np.empty(n)
        rank[list(chosen)] = np.arange(n) - (n - 1) / 2
        if np.any(sure & (rank[:, None] > rank)):
            continue
        groups = [np.flatnonzero(exact & (low == value)) for value in np.unique(low[exact])]
        if all(np.ptp(rank[group]) == group.size - 1 for group in groups):
            for group in groups:
                rank[group] = rank[group].mean()
            found[rank.tobytes()] = rank
    return list(found.values())


@pytest.mark.parametrize("narrow", [0.0, 0.4, 0.8])
def test_the_range_encloses_every_order_that_the_intervals_allow(narrow: float) -> None:
    rng = np.random.default_rng(int(10 * narrow))
    compared, slack = 0, []
    for _ in range(40):
        a, b = random_ends(rng, 5, narrow), random_ends(rng, 5, narrow)
        x, y = np.array(every_rank(a)), np.array(every_rank(b))
        for ends, ranks in ((a, x), (b, y)):
            told = order(ends)
            assert np.allclose(np.sum(ranks**2, axis=1), told.squares)
            assert np.all(np.abs(ranks - told.centre) <= told.reach + 1e-9)
        if order(a).squares == 0 or order(b).squares == 0:
            continue
        values = x @ y.T / np.sqrt(order(a).squares * order(b).squares)
        low, high = spearman_range(a, b)
        assert low <= values.min() + 1e-9
        assert high >= values.max() - 1e-9
        slack.append(values.min() - low + high - values.max())
        compared += 1
    assert compared > 25
    assert np.mean(slack) < 0.3  # of a width of 2: it encloses, and is not just [-1, 1]


def test_unknown_pairs_are_counted_as_by_a_double_loop() -> None:
    rng = np.random.default_rng(3)
    ends, weight = random_ends(rng, 700, 0.5), rng.normal(size=700)  # more than one chunk
    low, high = ends.radii()
    before = high[:, None] <= low
    unknown = ~(before | before.T)
    expected = float(np.sum(np.abs(weight[:, None] - weight) * unknown)) / 2
    assert order(ends).unknown(weight) == pytest.approx(expected)


def pair(a: Ends, b: Ends, **more: float) -> Correlation:
    def dist(ends: Ends) -> Distribution:
        low, high = ends.radii()
        return Distribution.from_arrays(lower=low, upper=np.where(np.isfinite(high), high, np.nan), ids=range(low.size))

    return correlations({"a": dist(a), "b": dist(b)}, **more)[0]


def test_true_radii_anywhere_in_their_intervals_are_inside_the_range() -> None:
    rng = np.random.default_rng(4)
    shared = rng.normal(0, 0.4, 150)
    true = [np.exp(-3 + shared + rng.normal(0, 0.3, 150)) for _ in range(2)]
    low = [np.floor(x / 0.01) * 0.01 for x in true]
    high = [np.where(rng.random(150) < 0.1, 1.0, x + 0.01) for x in low]
    found = pair(*(intervals(a, b) for a, b in zip(low, high)))
    assert found.low is not None
    assert found.high is not None
    assert found.lower is not None
    assert found.upper is not None
    assert -1 < found.low < found.lower < found.upper < found.high < 1
    places = [true, low, high, [low[0], high[1]], [high[0], low[1]]]
    for sign in (1, -1):  # an adversary who sorts one network's radii inside their intervals along the other's
        share = stats.rankdata(sign * true[1]) / 150
        places.append([low[0] + share * (high[0] - low[0]), true[1]])
    for x, y in places:
        assert found.lower <= stats.spearmanr(x, y).statistic <= found.upper


def test_exact_radii_have_no_range_and_narrow_intervals_a_narrow_one() -> None:
    rng = np.random.default_rng(5)
    shared = rng.normal(size=100)
    x, y = (np.exp(shared + rng.normal(size=100)) for _ in range(2))
    exact = pair(intervals(x, x), intervals(y, y))
    assert exact.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert exact.lower == pytest.approx(exact.value)
    assert exact.upper == pytest.approx(exact.value)
    fine = pair(intervals(x, x * 1.01), intervals(y, y * 1.01))
    assert None not in (exact.low, exact.high, fine.low, fine.high)
    assert fine.high - fine.low < 1.15 * (exact.high - exact.low)  # type: ignore[operator]
    wide = pair(intervals(x, np.full(100, np.inf)), intervals(y, y))
    assert (wide.low, wide.high) == (pytest.approx(-1, abs=0.2), pytest.approx(1, abs=0.2))


def test_the_limits_are_those_of_bonett_and_wright_or_of_the_jackknife() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=300)
    for spread, wider in ((np.ones(300), False), (np.exp(x), True)):  # alike everywhere, and for small radii only
        y = x + spread * rng.normal(size=300)
        value = float(stats.spearmanr(x, y).statistic)
        found = pair(intervals(np.exp(x), np.exp(x)), intervals(y - y.min(), y - y.min()))
        assert found.low is not None
        reach = np.arctanh(value) - np.arctanh(found.low)
        normal = 1.959964 * np.sqrt((1 + value**2 / 2) / 297)
        left_out = [stats.spearmanr(np.delete(x, i), np.delete(y, i)).statistic for i in range(300)]
        jackknife = 1.968 * np.std(left_out) * np.sqrt(299) / (1 - value**2)
        assert max(normal, 0.99 * jackknife) < reach < 1.05 * max(normal, jackknife)
        assert bool(jackknife > 1.15 * normal) is wider


def test_a_perfect_correlation_stays_perfect() -> None:
    x = np.arange(1.0, 21.0)
    found = pair(intervals(x, x), intervals(x**2, x**2))
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(1.0, abs=1e-6)
