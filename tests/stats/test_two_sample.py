"""Two-sample, paired and plain tests: exactness, level on gridded tied interval data, and honest ranges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from radii.errors import InputError
from radii.stats._arrays import Ends, radius_ends
from radii.stats.effect_sizes import area_difference, cliffs_delta, wasserstein
from radii.stats.ks import TestResult, two_sample, two_sample_pairs
from radii.stats.multiple_testing import benjamini_hochberg, bonferroni_confidence, holm
from radii.stats.paired import mcnemar, paired, paired_pairs

LEVEL_RUNS = 1000


def grid_ends(truth: np.ndarray, rng: np.random.Generator, step: float = 0.01, gaps: float = 0.2) -> Ends:
    """Radii on a coarse grid (many ties), some with wide gaps or absent ends, a tenth misclassified."""
    low = np.floor(truth / step) * step
    high = low + step
    wide = rng.random(truth.shape) < gaps
    low, high = np.where(wide, low / 2, low), np.where(wide, np.inf, high)
    wrong = rng.random(truth.shape) < 0.1
    return Ends(np.where(wrong, -np.inf, low), np.where(wrong, 0.0, high))


@pytest.mark.parametrize(("n", "m"), [(20, 20), (20, 35), (60, 60)])
def test_the_two_sample_level_is_kept(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    alike = sound = 0
    for k in range(LEVEL_RUNS):
        a = grid_ends(rng.lognormal(-3, 0.5, n), rng)
        b = grid_ends(rng.lognormal(-3, 0.5, m), rng)
        result = two_sample(a, b, permutations=199, seed=k)
        alike += result.p_value <= 0.05
        sound += result.decision() == "different"
    assert alike <= 0.06 * LEVEL_RUNS
    assert sound <= 0.06 * LEVEL_RUNS


def test_the_sound_decision_keeps_its_level_when_only_the_gaps_differ() -> None:
    """Same radii, but one side was measured with many time-outs: the plain p-value would cry wolf."""
    rng = np.random.default_rng(1)
    alike = sound = 0
    for k in range(400):
        a = grid_ends(rng.lognormal(-3, 0.5, 60), rng, gaps=0.0)
        b = grid_ends(rng.lognormal(-3, 0.5, 60), rng, gaps=0.7)
        result = two_sample(a, b, permutations=199, seed=k)
        alike += result.p_value <= 0.05
        sound += result.decision() == "different"
    assert sound <= 0.06 * 400
    assert alike > 0.2 * 400


@pytest.mark.parametrize("n", [20, 80])
def test_the_paired_level_is_kept(n: int) -> None:
    rng = np.random.default_rng(n)
    alike = sound = 0
    for k in range(LEVEL_RUNS):
        base = rng.lognormal(-3, 0.5, n)
        a, b = (grid_ends(base * rng.lognormal(0, 0.3, n), rng) for _ in range(2))
        result = paired(a, b, permutations=199, seed=k)
        alike += result.p_value <= 0.05
        sound += result.decision() == "different"
    assert alike <= 0.06 * LEVEL_RUNS
    assert sound <= 0.06 * LEVEL_RUNS


def test_a_clear_difference_is_found_whatever_the_gaps_hide() -> None:
    rng = np.random.default_rng(0)
    a, b = (grid_ends(rng.lognormal(m, 0.4, 150), rng, gaps=0.0) for m in (-2.5, -3.2))
    assert two_sample(a, b, 999).decision() == "different"
    assert paired(a, b, permutations=999).decision() == "different"


def test_wide_gaps_make_a_decision_impossible_and_it_says_so() -> None:
    rng = np.random.default_rng(0)
    truth = rng.lognormal(-3, 0.4, 100)
    a = radius_ends(truth * 0.5, truth * 2.0)
    b = radius_ends(truth * 0.6, truth * 2.2)
    for result in (two_sample(a, b, 999), paired(a, b, permutations=999)):
        assert result.decision() == "undecided"
        assert "decision impossible" in result.statement()
        assert result.p_low <= result.p_value <= result.p_high


@pytest.mark.parametrize("seed", range(8))
def test_the_p_value_of_any_radii_inside_the_intervals_lies_in_the_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = [Ends(low := rng.uniform(0, 0.1, 15), low + rng.uniform(0.001, 0.02, 15)) for _ in range(2)]
    found = two_sample(*ends, permutations=999, seed=5), paired(*ends, limit=1.0, permutations=999, seed=5)
    for _ in range(20):
        exact = [radius_ends(rng.uniform(one.low, one.high)) for one in ends]
        true = two_sample(*exact, permutations=999, seed=5), paired(*exact, limit=1.0, permutations=999, seed=5)
        for whole, one in zip(found, true):
            assert whole.p_low <= one.p_high + 1e-12
            assert one.p_low <= whole.p_high + 1e-12
        assert found[1].p_low - 1e-12 <= true[1].p_value <= found[1].p_high + 1e-12


def test_without_ties_it_agrees_with_the_exact_test() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random(25), rng.random(30) + 0.25
    ours = two_sample(radius_ends(x), radius_ends(y), permutations=20_000)
    theirs = stats.ks_2samp(x, y, method="exact")
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.01)


def test_absent_upper_ends_do_not_drown_a_paired_difference() -> None:
    rng = np.random.default_rng(6)
    truth = rng.lognormal(-3, 0.5, 300)
    a, b = (radius_ends(truth * f, np.where(rng.random(300) < 0.05, np.nan, truth * f + 0.001)) for f in (1.0, 1.4))
    assert paired(a, b, permutations=999).decision() == "different"


def test_pairs_of_equal_size_share_shuffles_and_give_the_same_answers() -> None:
    rng = np.random.default_rng(9)
    sets = [grid_ends(rng.lognormal(-3 + 0.2 * k, 0.5, n), rng) for k, n in enumerate((30, 30, 30, 41))]
    pairs = [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)]
    together = two_sample_pairs(sets, pairs, 499, seed=7)
    assert together == [two_sample(sets[i], sets[j], 499, seed=7) for i, j in pairs]
    same = [(0, 1), (1, 2)]
    largest = max(float(e.radii()[1][np.isfinite(e.radii()[1])].max()) for e in sets[:3])
    many = paired_pairs(sets[:3], same, largest, 499, seed=7)
    assert many == [paired(sets[i], sets[j], largest, 499, seed=7) for i, j in same]


def test_mcnemar_bounds_what_open_answers_may_be() -> None:
    a = radius_ends([0.2] * 12 + [0.01] * 3, [0.3] * 12 + [0.02] * 3)
    b = radius_ends([0.01] * 12 + [0.2] * 3, [0.02] * 12 + [0.3] * 3)
    sure = mcnemar(a, b, 0.1)
    assert sure.p_low == sure.p_high == pytest.approx(stats.binomtest(12, 15).pvalue)
    hidden = mcnemar(a, radius_ends([0.01] * 15, [0.3] * 15), 0.1)
    assert hidden.decision() == "undecided"


def test_sets_of_different_inputs_are_refused_by_paired_tests() -> None:
    with pytest.raises(InputError, match="same inputs"):
        paired(radius_ends([0.1, 0.2]), radius_ends([0.1]))
    with pytest.raises(InputError, match="same inputs"):
        mcnemar(radius_ends([0.1, 0.2]), radius_ends([0.1]), 0.1)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.1], [0.1]),
        ([0.1] * 9, [0.1] * 9),
        ([0.0] * 5, [0.0] * 5),
    ],
)
def test_degenerate_sets_give_a_statement_and_no_nan(a: list[float], b: list[float]) -> None:
    for result in (two_sample(radius_ends(a), radius_ends(b), 99), paired(radius_ends(a), radius_ends(b))):
        assert result.decision() == "no difference shown"
        assert all(math.isfinite(v) for v in (result.statistic, result.p_value, result.p_low, result.p_high))
    everything_open = Ends(np.zeros(12), np.full(12, np.inf))
    assert two_sample(everything_open, everything_open, 199).decision() == "undecided"
    assert paired(everything_open, everything_open, permutations=199).decision() == "undecided"


def test_effect_sizes_agree_with_scipy_and_widen_with_gaps() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(40) * 0.1, rng.random(50) * 0.1 + 0.02
    a, b = radius_ends(x), radius_ends(y)
    area = wasserstein(a, b, 1.0)
    assert area.low == pytest.approx(stats.wasserstein_distance(x, y))
    assert area.high == pytest.approx(area.low)
    delta = cliffs_delta(a, b)
    brute = np.sign(x[:, None] - y).mean()
    assert delta.low == pytest.approx(brute)
    assert delta.high == pytest.approx(brute)
    assert area_difference(a, b, 1.0).low == pytest.approx(x.mean() - y.mean())
    wide = radius_ends(x * 0.8, x * 1.2)
    for effect in (cliffs_delta, lambda p, q: wasserstein(p, q, 1.0), lambda p, q: area_difference(p, q, 1.0)):
        exact, loose = effect(a, b), effect(wide, b)
        assert loose.low <= exact.low
        assert exact.high <= loose.high


def test_families_of_p_values() -> None:
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert bonferroni_confidence(0.95, 10) == pytest.approx(0.995)
    with pytest.raises(InputError, match="p_values"):
        holm([math.nan])
    with pytest.raises(InputError, match="p_values"):
        benjamini_hochberg([])


def test_a_decision_needs_a_level() -> None:
    result = TestResult("t", 0.1, 0.5, 0.4, 0.6, 99)
    with pytest.raises(InputError, match="alpha"):
        result.decision(2)
