"""Turnbull's estimator against a brute-force maximum-likelihood estimate and against lifelines."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import optimize

from radii.stats import Distribution
from radii.stats._arrays import Ends, radius_ends
from radii.stats.turnbull import innermost, turnbull


def brute_force(low: np.ndarray, high: np.ndarray) -> float:
    """The greatest log-likelihood over all distributions on the cells between all ends, by a general optimiser."""
    edges = np.unique(np.concatenate([low, high]))
    inside = ((low[:, None] <= edges[:-1]) & (edges[1:] <= high[:, None])).astype(float)

    def loss(weight: np.ndarray) -> float:
        return -float(np.sum(np.log(np.maximum(inside @ weight, 1e-300))))

    def slope(weight: np.ndarray) -> np.ndarray:
        return -inside.T @ (1 / np.maximum(inside @ weight, 1e-300))

    k = edges.size - 1
    best = -np.inf
    for seed in range(3):
        start = np.random.default_rng(seed).dirichlet(np.ones(k) * 5)
        found = optimize.minimize(
            loss, start, jac=slope, method="SLSQP", bounds=[(0, 1)] * k, options={"maxiter": 2000, "ftol": 1e-13},
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones_like(w)},
        )  # fmt: skip
        if abs(found.x.sum() - 1) < 1e-8:
            best = max(best, -float(found.fun))
    return best


@pytest.mark.parametrize("seed", range(100))
def test_turnbull_reaches_the_brute_force_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    low = rng.integers(0, 6, n) / 10.0
    high = low + rng.integers(1, 5, n) / 10.0
    if seed % 3 == 0:
        high = np.where(rng.random(n) < 0.3, 5.0, high)  # a right end far out stands for an absent one
    found = turnbull(radius_ends(low, high))
    assert found.converged
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.log_likelihood == pytest.approx(brute_force(low, high), abs=2e-6)


def test_turnbull_agrees_with_lifelines_where_that_is_right() -> None:
    lifelines = pytest.importorskip("lifelines")
    rng = np.random.default_rng(4)
    truth = rng.lognormal(-3, 0.5, 60)
    gap = rng.uniform(0.001, 0.03, 60)
    low = np.maximum(truth - gap * rng.random(60), 0.0005)
    high = low + gap
    ours = turnbull(radius_ends(low, high))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lifelines' own deprecations are not under test
        theirs = lifelines.KaplanMeierFitter().fit_interval_censoring(low, high, tol=1e-10)
        table = theirs.survival_function_
    points = (ours.left[1:] + ours.right[:-1]) / 2  # between the cells the estimate is unique
    sure, possible = ours.at(points)
    assert sure == pytest.approx(possible)
    index = np.searchsorted(table.index.to_numpy(), points, side="right") - 1
    assert table["NPMLE_estimate_lower"].to_numpy()[index] == pytest.approx(sure, abs=2e-3)


def test_without_gaps_it_is_the_empirical_curve() -> None:
    radii = np.array([0.1, 0.2, 0.2, 0.4])
    sure, possible = turnbull(radius_ends(radii)).at([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5])
    assert sure == pytest.approx([1, 1, 0.75, 0.75, 0.25, 0.25, 0])
    assert possible == pytest.approx(sure)


def test_the_estimate_lies_between_the_envelopes() -> None:
    rng = np.random.default_rng(0)
    lower = rng.uniform(0, 0.1, 200)
    upper = np.where(rng.random(200) < 0.3, np.nan, lower + rng.uniform(0.001, 0.1, 200))
    dist = Distribution.from_arrays(lower=lower, upper=upper, correct=rng.random(200) < 0.9)
    eps = np.linspace(0, 0.25, 60)
    known, (sure, possible) = dist.robust_accuracy(eps), dist.turnbull().at(eps)
    assert np.all(known.proven <= possible + 1e-9)
    assert np.all(sure <= known.not_broken + 1e-9)


def test_innermost_intervals_hold_no_other_left_end() -> None:
    left, right = innermost(Ends(np.array([0.0, 0.1, 0.3]), np.array([0.2, 0.4, 0.5])))
    assert left.tolist() == [0.1, 0.3]
    assert right.tolist() == [0.2, 0.4]


def test_many_ends_are_widened_and_stay_true() -> None:
    rng = np.random.default_rng(2)
    truth = rng.lognormal(-3, 0.5, 3000)
    found = turnbull(radius_ends(truth - 0.001 * rng.random(3000), truth + 0.001), most_ends=300)
    sure, possible = found.at([0.03, 0.05, 0.1])
    exact = np.mean(truth[:, None] > [0.03, 0.05, 0.1], axis=0)
    assert np.all(np.abs((sure + possible) / 2 - exact) < 0.02)
