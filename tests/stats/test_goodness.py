"""Goodness of fit on intervals: fits agree with scipy, the level is kept, wrong families are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from radii.errors import InputError
from radii.stats._arrays import Ends, radius_ends
from radii.stats.goodness_of_fit import goodness

TRUTH = np.random.default_rng(0).lognormal(-3, 0.5, 150)


def on_grid(values: np.ndarray, step: float = 0.01) -> Ends:
    low = np.floor(values / step) * step
    return radius_ends(low, low + step)


def test_fits_of_exact_radii_agree_with_scipy() -> None:
    fits = {one.family: one.parameters for one in goodness(radius_ends(TRUTH), replicates=19).fits}
    logs = np.log(TRUTH)
    assert fits["lognormal"]["log_mean"] == pytest.approx(logs.mean(), rel=1e-3)
    assert fits["lognormal"]["log_std"] == pytest.approx(logs.std(), rel=1e-3)
    assert fits["normal"]["mean"] == pytest.approx(TRUTH.mean(), rel=1e-3)
    shape, _, scale = stats.gamma.fit(TRUTH, floc=0)
    assert (fits["gamma"]["shape"], fits["gamma"]["scale"]) == pytest.approx((shape, scale), rel=1e-2)
    shape, _, scale = stats.weibull_min.fit(TRUTH, floc=0)
    assert (fits["weibull"]["shape"], fits["weibull"]["scale"]) == pytest.approx((shape, scale), rel=1e-2)


def test_interval_fits_recover_the_parameters_through_random_gaps() -> None:
    """Each input was asked about its own random half of a grid, independently of its radius."""
    rng = np.random.default_rng(1)
    truth = rng.lognormal(-3, 0.5, 1000)
    grid = np.arange(1, 100) * 0.004
    asked = rng.random((1000, grid.size)) < 0.3
    low = np.where(asked & (grid <= truth[:, None]), grid, 0.0).max(axis=1)
    high = np.where(asked & (grid > truth[:, None]), grid, np.inf).min(axis=1)
    found = goodness(radius_ends(low, high), ["lognormal"], replicates=19)
    assert found.fits[0].parameters["log_mean"] == pytest.approx(-3, abs=0.05)
    assert found.fits[0].parameters["log_std"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("family", ["lognormal", "weibull", "normal"])
def test_the_level_is_kept_on_a_coarse_grid(n: int, family: str) -> None:
    rng = np.random.default_rng(n)
    draw = {
        "lognormal": lambda: rng.lognormal(-3, 0.5, n),
        "weibull": lambda: 0.06 * rng.weibull(2.0, n),
        "normal": lambda: np.abs(rng.normal(0.2, 0.03, n)),
    }[family]
    runs = 250
    rejected = sum(goodness(on_grid(draw()), [family], 99, k).fits[0].p_value <= 0.05 for k in range(runs))
    # 1 % above nominal, plus two standard errors of this simulation
    assert rejected / runs <= 0.06 + 2 * np.sqrt(0.05 * 0.95 / runs)


def test_gaps_only_make_the_test_more_careful() -> None:
    rng = np.random.default_rng(2)
    rejected = 0
    for k in range(150):
        truth = rng.lognormal(-3, 0.5, 60)
        low = np.floor(truth / 0.01) * 0.01
        high = np.where(rng.random(60) < 0.3, np.nan, low + 0.01)
        rejected += goodness(radius_ends(low, high), ["lognormal"], 99, k).fits[0].p_value <= 0.05
    assert rejected <= 0.06 * 150


def test_a_wrong_family_is_found_and_the_right_one_ranks_first() -> None:
    rng = np.random.default_rng(3)
    found = goodness(on_grid(rng.lognormal(-3, 0.7, 400), 0.002))
    assert found.best() is not None
    assert found.fits[0].family == "lognormal"
    assert found.fits[0].verdict() == "not rejected"
    assert {one.family for one in found.fits if one.verdict() == "rejected"} >= {"normal", "weibull"}
    assert [one.aic for one in found.fits] == sorted(one.aic for one in found.fits)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (Ends(np.zeros(5), np.full(5, np.inf)), "known end"),
        (radius_ends([0.1, 0.2]), "too few"),
        (radius_ends([0.1] * 6, [0.12] * 6), "share a point"),
        (radius_ends([0.0, 0.1, 0.2, 0.3]), "exactly 0"),
    ],
)
def test_what_cannot_be_fitted_is_said(ends: Ends, words: str) -> None:
    found = goodness(ends)
    assert found.fits == ()
    assert words in found.reason


def test_unknown_families_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'lognormal'"):
        goodness(radius_ends(TRUTH), ["log-normal"])
