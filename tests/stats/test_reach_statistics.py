"""Distributions of reaches: envelopes hold the truth, both orientations, absent ends, guarantees by their formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radii.errors import InputError
from radii.report.reach_distribution import ReachDistribution

VALUES = st.floats(-50, 50, allow_nan=False).map(lambda value: round(value, 3))
GAPS = st.sampled_from([0.0, 0.0, 0.25, 3.0])
SAMPLES = st.lists(st.tuples(VALUES, GAPS, GAPS, st.booleans(), st.booleans()), min_size=1, max_size=25)


def built(sample: list[Any], least: bool, **more: Any) -> tuple[np.ndarray[Any, Any], ReachDistribution]:
    """True reaches, and a distribution of intervals around them, some ends absent."""
    truth = np.array([one[0] for one in sample])
    low = [None if no_low else value - gap for value, gap, _, no_low, _ in sample]
    high = [None if no_high else value + gap for value, _, gap, _, no_high in sample]
    return truth, ReachDistribution.from_arrays(lower=low, upper=high, least=least, epsilon=0.1, **more)


@given(SAMPLES, VALUES, st.booleans())
def test_shares_and_bands_hold_the_truth(sample: list[Any], gamma: float, least: bool) -> None:
    truth, dist = built(sample, least)
    good = float(np.mean(truth >= gamma if least else truth <= gamma))
    proven, not_refuted = dist.share(gamma)
    assert proven <= good <= not_refuted
    low, high = dist.guarantee(0.9).at(gamma)
    width = math.sqrt(math.log(2 / 0.1) / (2 * len(truth)))
    assert low == pytest.approx(max(0.0, proven - width))
    assert high == pytest.approx(min(1.0, not_refuted + width))
    one = dist.guarantee(0.9).at_one(gamma, "hoeffding")
    assert one[0] == pytest.approx(low)
    assert one[1] == pytest.approx(high)


@given(SAMPLES, st.booleans())
def test_means_and_quantiles_hold_the_truth(sample: list[Any], least: bool) -> None:
    truth, dist = built(sample, least)
    mean = dist.mean()
    assert mean.lower is None or mean.lower <= truth.mean() + 1e-9
    assert mean.upper is None or mean.upper >= truth.mean() - 1e-9
    for q in (0.0, 0.5, 1.0):
        low, high = dist.quantile(q)
        exact = float(np.sort(truth)[min(max(math.ceil(q * len(truth)) - 1, 0), len(truth) - 1)])
        assert low is None or low <= exact
        assert high is None or high >= exact
    if len(truth) > 1:
        low, high = dist.guarantee(0.9, bounds=(-60.0, 60.0)).mean()
        known = dist.filled(bounds=(-60.0, 60.0))
        width = 120 * math.sqrt(math.log(2 / 0.1) / (2 * len(truth)))
        assert low == pytest.approx(max(-60.0, known[0].mean() - width))
        assert high == pytest.approx(min(60.0, known[1].mean() + width))


@given(SAMPLES, SAMPLES, st.booleans())
def test_leads_are_sure(first: list[Any], second: list[Any], least: bool) -> None:
    (a_truth, a), (b_truth, b) = built(first, least), built(second, least)
    found = a.compare(b, permutations=99)
    for part in found.leads:
        if not part.leader:
            continue
        middle = (part.start + part.stop) / 2
        shares = [np.mean(t >= middle if least else t <= middle) for t in (a_truth, b_truth)]
        ahead = shares[0] - shares[1] if part.leader == "a" else shares[1] - shares[0]
        assert ahead > -1e-12, (part, shares)
    assert found.cliffs_delta.low <= (found.cliffs_delta.high or 1.0)


def test_a_reach_equal_to_the_threshold_is_on_the_good_side() -> None:
    for least in (False, True):
        dist = ReachDistribution.from_arrays(lower=[0.5], upper=[0.5], least=least)
        assert dist.share(0.5) == (1.0, 1.0)
        assert dist.share(0.5 + (1e-9 if least else -1e-9)) == (0.0, 0.0)


def test_the_mean_of_unseen_inputs_is_that_of_the_paper() -> None:
    """Theorem 2 with A = 0 and B = 1: P(abs(mean − D) > e) ≤ 2 exp(−2 e² n)."""
    values = np.linspace(0.1, 0.4, 50)
    dist = ReachDistribution.from_arrays(lower=values, upper=values, unit="probability", bounds=(0.0, 1.0))
    low, high = dist.guarantee(0.95).mean()
    error = (high - low) / 2
    assert 2 * math.exp(-2 * error**2 * 50) == pytest.approx(0.05)
    assert (low + high) / 2 == pytest.approx(values.mean())
    narrow = dist.guarantee(0.95).mean("betting")
    assert low < narrow[0] < values.mean() < narrow[1] < high


def test_bands_cover_the_curve_of_unseen_inputs() -> None:
    """200 samples of 30 inputs, some ends absent: the band misses the true curve in at most 5 % of them."""
    rng, missed, points = np.random.default_rng(0), 0, np.linspace(0, 4, 81)
    true = 1 - np.exp(-points)
    for _ in range(200):
        reach = rng.exponential(size=30)
        gone = rng.random(30) < 0.1
        dist = ReachDistribution.from_arrays(lower=reach * 0.95, upper=np.where(gone, np.nan, reach * 1.05))
        low, high = dist.guarantee(0.95).at(points)
        missed += bool(np.any(low > true + 1e-12) or np.any(high < true - 1e-12))
    assert missed <= 10


def test_classes_frames_and_refusals() -> None:
    dist = ReachDistribution.from_arrays(
        lower=[0.1, 0.2, 0.3], upper=[0.2, None, 0.3], label=[0, 1, 1], correct=[1, 0, 1], epsilon=0.1, quantity="slope"
    )
    assert {key: len(part) for key, part in dist.by_class().items()} == {0: 1, 1: 2}
    assert list(dist.status) == ["open", "open", "closed"]
    assert list(dist.to_frame()["epsilon"]) == [0.1, 0.1, 0.1]
    assert dist.share(0.3, among="correct") == (1.0, 1.0)
    assert dist.title == "largest slope at ε = 0.1 (linf)"
    assert "slope" in dist.plot(confidence=0.9).get_xlabel()
    assert dist._repr_html_()
    assert dist.guarantee(0.9)._repr_html_()
    with pytest.raises(InputError, match="cannot leave an interval"):
        dist.guarantee(0.95).mean()
    with pytest.raises(InputError, match="at most upper, got 2 > 1 at row 0"):
        ReachDistribution.from_arrays(lower=[2], upper=[1])
    with pytest.raises(InputError, match="one quantity at one ε"):
        dist.compare(ReachDistribution.from_arrays(lower=[1], epsilon=0.2))
    with pytest.raises(InputError, match="expected finite numbers"):
        dist.share(math.inf)
