"""Confidence limits for one share or one mean: exact, Chernoff, Hoeffding, Bernstein, finite population.

Exact limits of a share are those of Clopper and Pearson (1934), Chernoff's come from the Kullback–Leibler divergence
(Chernoff 1952), Hoeffding's from Hoeffding (1963), Bernstein's from Maurer and Pontil (2009).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from radii._check import choice, number, whole
from radii.errors import InputError
from radii.stats._arrays import FloatArray, column, level
from radii.stats.betting import mean_lower, mean_upper

SHARE_METHODS = ("clopper-pearson", "chernoff", "hoeffding", "bernstein")
MEAN_METHODS = ("betting", "hoeffding", "bernstein")


def share_lower(
    successes: Any, n: int, confidence: float = 0.95, method: str = "clopper-pearson", population: int | None = None
) -> FloatArray:
    """The one-sided lower confidence limit of a share after `successes` out of `n` independent draws.

    With `population` the draws are without replacement from that many inputs and the limit is for their share.
    """
    alpha, count = level(confidence), _counts(successes, n)
    if population is not None:
        return _hypergeometric_lower(count, n, whole(population, "population", low=n), alpha)
    name = choice(method, "method", SHARE_METHODS)
    mean = count / n
    if name == "clopper-pearson":
        exact = scipy.special.betaincinv(np.maximum(count, 1), n - count + 1, alpha)
        return np.asarray(np.where(count == 0, 0.0, exact), dtype=np.float64)
    if name == "hoeffding":
        return np.asarray(np.clip(mean - np.sqrt(np.log(1 / alpha) / (2 * n)), 0.0, 1.0))
    if name == "bernstein":
        spread = mean * (1 - mean) * n / max(n - 1, 1)
        return np.clip(mean - _bernstein_width(spread, n, alpha), 0.0, 1.0)
    return _chernoff_lower(mean, n, alpha)


def share_upper(
    successes: Any, n: int, confidence: float = 0.95, method: str = "clopper-pearson", population: int | None = None
) -> FloatArray:
    """The one-sided upper confidence limit of a share, the mirror image of `share_lower`."""
    failures = n - _counts(successes, n)
    return 1.0 - share_lower(failures, n, confidence, method, population)


def share_interval(
    successes: Any, n: int, confidence: float = 0.95, method: str = "clopper-pearson", population: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """The two-sided interval of a share: each side gets half of the error probability."""
    side = 1.0 - level(confidence) / 2
    return (
        share_lower(successes, n, side, method, population),
        share_upper(successes, n, side, method, population),
    )


def mean_interval(
    low: Any,
    high: Any = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
    method: str = "betting",
) -> tuple[float, float]:
    """The two-sided interval for the mean of a bounded quantity known up to [low, high] for each draw.

    This is D(ḡ) of quantitative global robustness: Hoeffding is the paper's Theorem 2, `bernstein` the empirical
    Bernstein bound of Maurer and Pontil (2009), `betting` the narrowest of the three (see `radii.stats.betting`).
    """
    a, b = number(bounds[0], "bounds"), number(bounds[1], "bounds")
    first = column(low, "low")
    last = first if high is None else column(high, "high", first.size)
    if first.size < 2 or not b > a:
        raise InputError("mean_interval: expected at least two values and bounds (A, B) with A < B")
    inside = np.all((first >= a) & (last <= b) & (first <= last))
    if not inside:
        raise InputError(f"mean_interval: expected A ≤ low ≤ high ≤ B for every value, with A={a:g} and B={b:g}")
    side, name, span = level(confidence) / 2, choice(method, "method", MEAN_METHODS), b - a
    if name == "betting":
        low_share, high_share = (np.clip((values - a) / span, 0.0, 1.0) for values in (first, last))
        return a + span * mean_lower(low_share, side), a + span * mean_upper(high_share, side)
    margins = []
    for values in (first, last):
        if name == "hoeffding":
            margins.append(span * float(np.sqrt(np.log(1 / side) / (2 * values.size))))
        else:
            spread = np.var(values / span, ddof=1)
            margins.append(span * float(_bernstein_width(spread, values.size, side)))
    return max(a, float(first.mean()) - margins[0]), min(b, float(last.mean()) + margins[1])


def _bernstein_width(variance: Any, n: int, alpha: float) -> FloatArray:
    logs = np.log(2 / alpha)
    return np.asarray(np.sqrt(2 * variance * logs / n) + 7 * logs / (3 * max(n - 1, 1)))


def _chernoff_lower(mean: FloatArray, n: int, alpha: float) -> FloatArray:
    """The smallest p with KL(mean, p) ≤ ln(1/α)/n, by bisection from below (so the result is never too high)."""
    budget = np.log(1 / alpha) / n
    low, high = np.zeros_like(mean), mean.copy()
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore"):
            divergence = scipy.special.rel_entr(mean, middle) + scipy.special.rel_entr(1 - mean, 1 - middle)
        far = divergence > budget
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return low


def _hypergeometric_lower(count: FloatArray, n: int, population: int, alpha: float) -> FloatArray:
    """The smallest share K/N under which at least `count` successes are more likely than α."""
    low = np.asarray(count - 1)  # known impossible or refuted
    high = np.asarray(population - (n - count))  # the largest possible number of successes
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        refuted = (middle < count) | (
            scipy.stats.hypergeom.sf(count - 1, population, np.maximum(middle, 0), n) <= alpha
        )
        split = high - low > 1
        low = np.where(split & refuted, middle, low)
        high = np.where(split & ~refuted, middle, high)
    return np.clip(high / population, 0.0, 1.0)


def _counts(successes: Any, n: int) -> FloatArray:
    whole(n, "n", low=1)
    array = np.asarray(successes, dtype=np.float64)
    if not np.all((array >= 0) & (array <= n) & (array == np.rint(array))):
        raise InputError(f"successes: expected whole numbers from 0 to n={n}, got {successes!r}")
    return array
