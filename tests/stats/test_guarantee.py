"""Guarantees: known constants, coverage of every interval and band by simulation, sentences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from radii.errors import InputError
from radii.stats import Distribution
from radii.stats._arrays import Ends, ends_of, radius_ends
from radii.stats.betting import mean_above
from radii.stats.confidence_intervals import mean_interval, share_interval, share_lower, share_upper
from radii.stats.dkw import dkw_half_width, smirnov_tail
from radii.stats.guarantee import class_claims, class_guarantees, guarantee
from radii.stats.quantiles import quantile

RUNS = 4000


def test_the_textbook_constants() -> None:
    assert dkw_half_width(100) == pytest.approx(0.136, abs=5e-4)
    assert dkw_half_width(1000) == pytest.approx(0.043, abs=5e-4)
    assert share_lower(100, 100) == pytest.approx(0.970, abs=5e-4)
    assert share_lower(100, 100, method="hoeffding") == pytest.approx(0.878, abs=5e-4)


def test_clopper_pearson_agrees_with_scipy() -> None:
    for k, n in [(0, 7), (3, 20), (20, 20), (57, 100)]:
        ours = share_interval(k, n, 0.95)
        theirs = stats.binomtest(k, n).proportion_ci(0.95, "exact")
        assert ours == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("method", ["clopper-pearson", "chernoff", "hoeffding", "bernstein"])
@pytest.mark.parametrize("n", [1, 2, 20, 300])
def test_share_intervals_cover_exactly_for_every_share(method: str, n: int) -> None:
    """Coverage summed over the binomial, not sampled."""
    counts = np.arange(n + 1)
    low, high = share_interval(counts, n, 0.95, method)
    for p in np.linspace(0.001, 0.999, 101):
        mass = stats.binom.pmf(counts, n, p)
        assert mass[(low <= p) & (p <= high)].sum() >= 0.95 - 1e-9
    assert share_lower(0, n, 0.95, method) == 0.0
    assert share_upper(n, n, 0.95, method) == 1.0


def test_finite_population_limits_cover_and_are_narrower() -> None:
    n, size = 40, 100
    counts = np.arange(n + 1)
    for good in range(0, size + 1, 5):
        possible = counts[stats.hypergeom.pmf(counts, size, good, n) > 0]
        low, high = share_interval(possible, n, 0.95, population=size)
        mass = stats.hypergeom.pmf(possible, size, good, n)
        share = good / size
        assert mass[(low <= share + 1e-12) & (share <= high + 1e-12)].sum() >= 0.95 - 1e-9
    narrow, wide = share_interval(20, n, population=size), share_interval(20, n)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert share_interval(20, n, population=n) == (0.5, 0.5)


@pytest.mark.parametrize("method", ["betting", "hoeffding", "bernstein"])
@pytest.mark.parametrize("n", [20, 200])
def test_mean_intervals_cover(method: str, n: int) -> None:
    rng = np.random.default_rng(n)
    truth = rng.beta(0.3, 3.0, (600, n))
    hits = 0
    for row in truth:
        low, high = mean_interval(row * 0.9, np.minimum(row * 1.1, 1.0), confidence=0.95, method=method)
        hits += low <= 0.3 / 3.3 <= high
    assert hits >= 0.945 * 600


def gridded(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Radii on a grid of 0.01 with many ties, a misclassified tenth, and some wide gaps."""
    truth = rng.lognormal(np.log(scale), 0.6, shape)
    low = np.floor(truth / 0.01) * 0.01
    high = low + 0.01
    wide = rng.random(shape) < 0.2
    low, high = np.where(wide, low * 0.5, low), np.where(wide, np.inf, high)
    wrong = rng.random(shape) < 0.1
    return np.where(wrong, -np.inf, low), np.where(wrong, 0.0, high)


@pytest.mark.parametrize("n", [20, 100, 500])
def test_the_band_covers_the_whole_curve(n: int) -> None:
    rng = np.random.default_rng(n)
    low, high = gridded(rng, (RUNS, n))
    knots = np.arange(0, 60) * 0.01
    knots = np.unique(np.concatenate([knots, knots[1:] - 1e-9]))
    truth = 0.9 * stats.norm.sf(np.log(np.maximum(knots, 1e-300) / 0.05) / 0.6)
    width = dkw_half_width(n)
    missed = 0
    for a, b in zip(low, high):
        ends = Ends(a, b)
        missed += np.any(ends.proven(knots) - width > truth) or np.any(ends.not_broken(knots) + width < truth)
    assert missed <= 0.055 * RUNS
    sample = guarantee(Ends(low[0], high[0]))
    floor, ceiling = sample.at(knots)
    gap = Ends(low[0], high[0]).not_broken(knots) - Ends(low[0], high[0]).proven(knots)
    assert np.all(ceiling - floor <= gap + 2 * width + 1e-12)


def test_the_band_is_nearly_exact_without_gaps() -> None:
    """Not silly wide: with exact continuous radii it covers 95 %, not 99 %."""
    rng = np.random.default_rng(5)
    n = 200
    ranks = np.sort(rng.random((RUNS, n)), axis=1)
    steps = np.arange(n + 1) / n
    deviation = np.maximum(np.max(steps[1:] - ranks, axis=1), np.max(ranks - steps[:-1], axis=1))
    covered = np.mean(deviation <= dkw_half_width(n))
    assert 0.945 <= covered <= 0.975


def test_the_finite_population_band_is_exact_and_narrower() -> None:
    n, size = 50, 120
    width = dkw_half_width(n, population=size)
    assert width < dkw_half_width(n)
    rng = np.random.default_rng(1)
    ranks = np.sort(rng.permuted(np.tile(np.arange(1, size + 1), (20_000, 1)), axis=1)[:, :n], axis=1)
    above = np.max(np.arange(1, n + 1) / n - ranks / size, axis=1)
    assert np.mean(above > width + 1e-12) == pytest.approx(smirnov_tail(n, size, width), abs=0.004)
    assert smirnov_tail(n, size, width) <= 0.025
    assert dkw_half_width(50, population=50) == 0.0


def test_per_class_bands_hold_together() -> None:
    rng = np.random.default_rng(3)
    knots = np.linspace(0, 0.3, 40)
    truth = stats.norm.sf(np.log(np.maximum(knots, 1e-300) / 0.05) / 0.6)
    missed = 0
    for _ in range(400):
        parts = {c: radius_ends(rng.lognormal(np.log(0.05), 0.6, 30)) for c in range(10)}
        bands = class_guarantees(parts).values()
        missed += any(np.any((band.at(knots)[0] > truth) | (band.at(knots)[1] < truth)) for band in bands)
    assert missed <= 0.055 * 400


def test_one_epsilon_gets_the_narrower_exact_limits_and_a_sentence() -> None:
    dist = Distribution.from_arrays(lower=[0.05] * 100, upper=[0.06] * 100)
    promise = dist.guarantee()
    assert promise.at_one(0.02)[0] > promise.at(0.02)[0]
    text = promise.sentence(0.02)
    assert "between 86.4% and 100.0%" in text
    assert "n = 100" in text
    assert "independent draws" in text
    attack = dist.guarantee(evidence="attack only", population=1000).sentence(0.02, whole_curve=False)
    assert "at most" in attack
    assert "without replacement" in attack
    with pytest.raises(InputError, match="evidence"):
        dist.guarantee(evidence="hope")


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "high", None])
def test_a_confidence_must_be_a_share(confidence: object) -> None:
    with pytest.raises(InputError, match="confidence"):
        Distribution.from_arrays(lower=[0.1]).guarantee(confidence=confidence)  # type: ignore[arg-type]


def test_ends_of_checked_columns_treat_absent_as_unknown() -> None:
    ends = ends_of(np.array([np.nan, 0.1]), np.array([np.nan, np.nan]), np.array([True, False]))
    assert ends.low.tolist() == [0.0, -np.inf]
    assert ends.high.tolist() == [np.inf, 0.0]


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantile_intervals_cover(n: int, q: float) -> None:
    rng = np.random.default_rng(n)
    low, high = gridded(rng, (800, n))
    # of the true radii: a tenth is 0 (misclassified), the others are log-normal
    truth = 0.0 if q <= 0.1 else 0.05 * np.exp(0.6 * stats.norm.ppf((q - 0.1) / 0.9))
    hits = 0
    for a, b in zip(low, high):
        found = quantile(Ends(a, b), q)
        hits += found.low <= truth and (found.high is None or truth <= found.high)
    assert hits >= 0.945 * 800


@pytest.mark.parametrize("n", [20, 200])
def test_limits_at_one_epsilon_cover_through_gaps(n: int) -> None:
    rng = np.random.default_rng(n + 1)
    low, high = gridded(rng, (800, n))
    truth = 0.9 * stats.norm.sf(np.log(0.04 / 0.05) / 0.6)
    limits = [guarantee(Ends(a, b)).at_one(0.04) for a, b in zip(low, high)]
    assert sum(a <= truth <= b for a, b in limits) >= 0.945 * 800


def test_betting_holds_for_skewed_values_where_student_does_not_and_is_narrower_than_bernstein() -> None:
    rng = np.random.default_rng(0)
    n, runs, cap = 20, 300, 0.2
    values = np.where(rng.random((runs, n)) < 0.1, 0.0, np.minimum(rng.lognormal(-4, 1, (runs, n)), cap) / cap)
    z = np.log(cap) + 4
    truth = 0.9 * (np.exp(-3.5) * stats.norm.cdf(z - 1) / cap + stats.norm.sf(z))
    margin = stats.t.isf(0.025, n - 1) * values.std(axis=1, ddof=1) / np.sqrt(n)
    assert np.mean(np.abs(values.mean(axis=1) - truth) <= margin) < 0.92
    limits = np.array([mean_interval(row) for row in values])
    assert np.mean((limits[:, 0] <= truth) & (truth <= limits[:, 1])) >= 0.945
    wide = np.mean(np.diff(limits, axis=1))
    assert wide < 0.6 * np.mean([np.diff(mean_interval(row, method="bernstein")) for row in values[:50]])
    assert wide < 3 * np.mean(2 * margin)


def test_betting_scales_with_its_bounds_and_ignores_the_order() -> None:
    values = np.random.default_rng(1).random(200)
    low, high = mean_interval(values)
    assert mean_interval(10 * values - 5, bounds=(-5.0, 5.0)) == pytest.approx((10 * low - 5, 10 * high - 5))
    assert mean_interval(np.sort(values)) == pytest.approx((low, high), abs=0.02)
    assert mean_above(values, low - 1e-6, 0.025)
    assert not mean_above(values, low + 1e-6, 0.025)


def test_claims_about_classes_use_holm() -> None:
    parts = {k: radius_ends([0.2] * good + [0.01] * (30 - good)) for k, good in enumerate((30, 29, 15))}
    found = class_claims(parts, 0.1, 0.8)
    assert [one.proven for one in found.values()] == [30, 29, 15]
    plain = [stats.binomtest(g, 30, 0.8, "greater").pvalue for g in (30, 29, 15)]
    assert [one.p_value for one in found.values()] == pytest.approx(
        [3 * plain[0], max(3 * plain[0], 2 * plain[1]), max(2 * plain[1], plain[2])]
    )
    assert [one.shown for one in found.values()] == [True, True, False]
    with pytest.raises(InputError, match="share"):
        class_claims(parts, 0.1, 1.5)
    with pytest.raises(InputError, match="class"):
        class_claims({}, 0.1, 0.5)


def test_an_input_that_is_counted_twice_is_refused() -> None:
    """Three copies of one input are one observation: the band would be narrower than the truth allows."""
    dist = Distribution.from_arrays(lower=[0.1, 0.1, 0.1, 0.2], ids=["a/0", "a/0", "a/0", "a/1"])
    with pytest.raises(InputError, match="expected every input once, got a/0 3 times"):
        dist.guarantee()
    assert dist.select([0, 3]).guarantee().n == 2


def test_inputs_that_repeat_others_are_told() -> None:
    """Equal values at different places may be honest draws; the sentence says how many there are."""
    dist = Distribution.from_arrays(lower=[0.1, 0.1, 0.2], correct=[1, 1, 0], contents=["x", "x", "x"])
    assert dist.guarantee().repeated == 2
    assert "although 2 of the 3 repeat another input" in dist.guarantee().sentence(0.1)
    assert dist.guarantee(among="correct").repeated == 1
    assert "repeat" not in dist.select([1]).guarantee().sentence(0.1)
