"""Quantiles and means of radii that are known only as intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from radii._check import number
from radii.stats._arrays import Ends, FloatArray, level


@dataclass(frozen=True)
class Quantile:
    """A quantile of the radii: between `lower` and `upper` in this sample, [`low`, `high`] for unseen inputs.

    `upper` and `high` are None where the data put no upper limit on it; `low` is 0 where they put no lower one.
    """

    q: float
    lower: float
    upper: float | None
    low: float
    high: float | None
    confidence: float


def quantile(ends: Ends, q: Any, confidence: float = 0.95) -> Quantile:
    """The q-quantile with its interval from order statistics (valid for any distribution, ties included)."""
    share = number(q, "q", low=0.0, high=1.0)
    alpha, n = level(confidence), len(ends)
    lower, upper = (np.sort(values) for values in ends.radii())
    rank = min(max(int(np.ceil(n * share)) - 1, 0), n - 1)
    below = int(scipy.stats.binom.ppf(alpha / 2, n, share)) - 1  # 0-based order statistic that is safely low
    above = int(scipy.stats.binom.ppf(1 - alpha / 2, n, share))
    low = float(lower[below]) if below >= 0 else 0.0
    high = finite(upper[above]) if above < n else None
    return Quantile(share, float(lower[rank]), finite(upper[rank]), low, high, 1.0 - alpha)


@dataclass(frozen=True)
class Mean:
    """The mean radius: at least `lower` and, where every input has a witness, at most `upper`."""

    lower: float
    upper: float | None


def mean_radius(ends: Ends) -> Mean:
    """The mean of the radii of this sample as an interval."""
    lower, upper = ends.radii()
    return Mean(float(lower.mean()), finite(upper.mean()))


def finite(value: Any) -> float | None:
    """The value, or None where it is infinite (an absent end)."""
    return float(value) if np.isfinite(value) else None


def area(ends: Ends, limit: Any) -> tuple[float, float]:
    """The area under the robust-accuracy curve from 0 to `limit`, divided by `limit`: a share in [0, 1]."""
    stop = number(limit, "limit", low=0.0, strict=True)
    lower, upper = ends.radii()
    return _capped(lower, stop), _capped(upper, stop)


def _capped(values: FloatArray, stop: float) -> float:
    return float(np.minimum(values, stop).mean() / stop)
