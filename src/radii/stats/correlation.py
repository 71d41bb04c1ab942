"""Do networks find the same inputs hard? Rank correlations with intervals, and the most and least consistent inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import scipy

from radii._check import whole
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, level
from radii.stats.comparison import shared_rows, unique_ids
from radii.stats.spearman_range import spearman_range

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution

_NEARLY = 1 - 1e-12  # a perfect correlation has no finite z


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of two networks' radii on the inputs that both classify correctly.

    [`lower`, `upper`] holds the coefficient of the true radii of these inputs wherever they lie in their intervals, and
    [`low`, `high`] is the confidence interval for unseen inputs, of the true radii as well. Two single figures go with
    them: `value` takes the middle of every interval, `lower_ends` the lower ends, as the paper does. All are None, with
    a reason, where fewer than four shared inputs or radii that cannot be told apart allow none.
    """

    a: str
    b: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    lower_ends: float | None
    reason: str = ""
    lower: float | None = None
    upper: float | None = None


def correlations(dists: Mapping[str, Distribution], confidence: float = 0.95) -> tuple[Correlation, ...]:
    """Spearman's correlation of every pair of networks on the inputs that both classify correctly."""
    found = []
    for (a, first), (b, second) in combinations(dists.items(), 2):
        rows_a, rows_b = shared_rows(first, second)
        both = first.correct[rows_a] & second.correct[rows_b]
        ends = first.ends().take(rows_a[both]), second.ends().take(rows_b[both])
        found.append(_correlate(str(a), str(b), *ends, level(confidence)))
    return tuple(found)


def _correlate(a: str, b: str, first: Ends, second: Ends, alpha: float) -> Correlation:
    x, y = middle(first), middle(second)
    n = x.size
    if n < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        reason = (
            "fewer than four inputs that both classify correctly" if n < 4 else "the radii of a network are constant"
        )
        return Correlation(a, b, n, None, None, None, None, reason)
    value = float(scipy.stats.spearmanr(x, y).statistic)
    least, most = spearman_range(first, second)
    least, most = min(least, value), max(most, value)  # middles tie, and ties have a scale of their own
    wide = _reach(x, y, value, alpha)
    low, high = _limits(least, n, alpha, wide)[0], _limits(most, n, alpha, wide)[1]
    ends = first.radii()[0], second.radii()[0]
    constant = np.ptp(ends[0]) == 0 or np.ptp(ends[1]) == 0
    paper = None if constant else float(scipy.stats.spearmanr(*ends).statistic)
    return Correlation(a, b, n, value, low, high, paper, lower=least, upper=most)


def rank_correlation(x: FloatArray, y: FloatArray, confidence: float = 0.95) -> tuple[float, float, float] | None:
    """Spearman's correlation of two columns with its confidence interval; None below four rows or for a constant.

    A perfect order of few rows is weak evidence: its interval is that of an order with two neighbours exchanged.
    """
    n = len(x)
    if n < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    value, alpha = float(scipy.stats.spearmanr(x, y).statistic), level(confidence)
    most = 1 - 12 / (n * (n * n - 1))
    near = min(max(value, -most), most)
    low, high = _limits(near, n, alpha, 0.0 if near != value else _reach(x, y, value, alpha))
    return value, min(low, value), max(high, value)


def _limits(value: float, n: int, alpha: float, wide: float) -> tuple[float, float]:
    """Both limits of a coefficient on Fisher's z scale: the wider of `wide` and of Bonett and Wright (2000).

    Their variance is that of radii whose ranks depend on each other as those of normal variables do.
    """
    normal = float(scipy.stats.norm.isf(alpha / 2)) * np.sqrt((1 + value**2 / 2) / (n - 3))
    z = np.arctanh(np.clip(value, -_NEARLY, _NEARLY))
    return float(np.tanh(z - max(normal, wide))), float(np.tanh(z + max(normal, wide)))


def _reach(x: FloatArray, y: FloatArray, value: float, alpha: float) -> float:
    """How far a rank correlation may be from the true one on Fisher's z scale, from the influence of every input.

    It assumes no shape of dependence: networks may agree on fragile inputs and differ on robust ones. The degrees of
    freedom are Satterthwaite's: a few influential inputs make the error itself uncertain.
    """
    n = x.size
    r, s = scipy.stats.rankdata(x) - (n + 1) / 2, scipy.stats.rankdata(y) - (n + 1) / 2
    own, other = float(r @ r), float(s @ s)
    mixed = r * s + (_beyond(x, s) + _beyond(y, r)) / 2
    ties = (r * r + _beyond(x, r)) / own + (s * s + _beyond(y, s)) / other
    influence = n * (mixed / np.sqrt(own * other) - value / 2 * ties)
    squares = (influence - influence.mean()) ** 2
    variance, peaks = float(squares.mean()), float((squares**2).mean())
    freedom = min(max(2 * n * variance**2 / max(peaks - variance**2, 1e-300), 2.0), n - 2.0)
    error = np.sqrt(variance * n / (n - 1) / (n - 3)) / (1 - min(abs(value), _NEARLY) ** 2)
    return float(scipy.stats.t.isf(alpha / 2, freedom) * error)


def _beyond(x: FloatArray, weight: FloatArray) -> FloatArray:
    """For every input the weights of those with a larger x, less the weights of those with a smaller one."""
    order = np.argsort(x)
    sums = np.concatenate([[0.0], np.cumsum(weight[order])])
    left, right = (np.searchsorted(x[order], x, side=side) for side in ("left", "right"))
    return np.asarray(sums[-1] - sums[right] - sums[left])


def middle(ends: Ends) -> FloatArray:
    """The middle of every interval; an absent upper end counts as just beyond the largest finite end."""
    low, high = ends.radii()
    top = max(float(high[np.isfinite(high)].max(initial=0.0)), float(low.max(initial=0.0)))
    return (low + np.where(np.isfinite(high), high, top)) / 2


@dataclass(frozen=True)
class Consistency:
    """How alike the networks rank one input: its mean rank share (0 = most fragile, 1 = most robust) and spread."""

    id: str
    mean_rank: float
    spread: float


def consistency(dists: Mapping[str, Distribution], count: int = 10) -> tuple[tuple[Consistency, ...], ...]:
    """The `count` inputs that the networks rank most alike, and the `count` they rank least alike."""
    limit = whole(count, "count", low=1)
    if len(dists) < 2:
        raise InputError(f"consistency: expected at least two networks, got {len(dists)}")
    keys = [unique_ids(dist, str(name)) for name, dist in dists.items()]
    common = keys[0]
    for key in keys[1:]:
        common = np.intersect1d(common, key, assume_unique=True)
    if common.size == 0:
        raise InputError("consistency: expected inputs that all networks share, got none in common")
    ranks = []
    for dist, key in zip(dists.values(), keys):
        rows = np.argsort(key)[np.searchsorted(np.sort(key), common)]
        ranks.append((scipy.stats.rankdata(middle(dist.ends().take(rows))) - 0.5) / common.size)
    table = np.array(ranks)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    order = np.lexsort((mean, spread))

    def pick(chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[Consistency, ...]:
        return tuple(Consistency(str(common[i]), float(mean[i]), float(spread[i])) for i in chosen)

    return pick(order[:limit]), pick(order[::-1][:limit])
