"""Class fairness of robustness: worst class, disparity index and normalised Gini, each with an interval.

Every measure is computed over a box: one interval per class that holds whatever the gaps hide (the sample's box)
or, with confidence, for unseen inputs (Bonferroni over the classes). The range of the measure over that box is
exact, so it covers whenever the box does. Definitions, properties and failure modes: docs/fairness.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from radii._check import choice, number
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, eps_array, largest_end, level
from radii.stats.confidence_intervals import mean_interval
from radii.stats.multiple_testing import bonferroni_confidence

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution

MEASURES = ("mean radius", "area")


@dataclass(frozen=True)
class Measure:
    """A measure in [`lower`, `upper`] for this sample and in [`low`, `high`] for unseen inputs."""

    name: str
    lower: float
    upper: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class WorstClass:
    """The least robust recall over the classes at each ε, with the classes that may be the worst."""

    eps: FloatArray
    proven: FloatArray
    not_broken: FloatArray
    low: FloatArray
    high: FloatArray
    candidates: tuple[tuple[int, ...], ...]


def worst_class(dist: Distribution, eps: Any, confidence: float = 0.95) -> WorstClass:
    """The worst-class robust-recall curve; the limits hold for all ε and all classes at once."""
    points = np.atleast_1d(eps_array(eps))
    parts = dist.by_class()
    shares = np.array([part.robust_accuracy(points) for part in parts.values()])
    bands = np.array([band.at(points) for band in dist.class_guarantees(confidence).values()])
    labels = np.array(list(parts))
    may = shares[:, 0] <= shares[:, 1].min(axis=0)
    return WorstClass(
        points,
        shares[:, 0].min(axis=0),
        shares[:, 1].min(axis=0),
        bands[:, 0].min(axis=0),
        bands[:, 1].min(axis=0),
        tuple(tuple(labels[column].tolist()) for column in may.T),
    )


def disparity(dist: Distribution, eps: Any, confidence: float = 0.95) -> Measure:
    """The disparity index at ε: the largest minus the smallest robust recall of any two classes, in [0, 1]."""
    from radii.stats.classes import robust_recall

    rows = robust_recall(dist, eps, confidence)
    _several(len(rows))
    sample = spread_range(np.array([r.proven for r in rows]), np.array([r.not_broken for r in rows]))
    unseen = spread_range(np.array([r.low for r in rows]), np.array([r.high for r in rows]))
    return Measure("disparity index", *sample, *unseen, 1.0 - level(confidence))


def gini(
    dist: Distribution, of: str = "area", limit: float | None = None, confidence: float = 0.95, method: str = "t"
) -> Measure:
    """The normalised Gini coefficient over the classes: 0 if all are equally robust, 1 if one class has it all.

    `of="area"`: area under each class's robust recall from 0 to `limit` (all inputs count). `of="mean radius"`: mean
    radius of each class's correctly classified inputs, capped at `limit`. `limit` defaults to the largest finite end.
    `method="t"` uses Student intervals per class (approximate, covers in simulation); `"betting"` and the wider
    `"bernstein"` are guaranteed.
    """
    kind = choice(of, "of", MEASURES)
    each = bonferroni_confidence(confidence, _several(len(dist.by_class())))
    among = "all" if kind == "area" else "correct"
    parts = [part.ends(among) for part in dist.by_class().values()]
    cap = largest_end(*parts) if limit is None else number(limit, "limit", low=0.0, strict=True)
    boxes = np.array(
        [_class_box(part, cap, each, choice(method, "method", ("t", "betting", "bernstein"))) for part in parts]
    )
    sample, unseen = gini_range(boxes[:, 0], boxes[:, 1]), gini_range(boxes[:, 2], boxes[:, 3])
    return Measure(f"normalised Gini of {kind}", *sample, *unseen, 1.0 - level(confidence))


def _class_box(ends: Ends, cap: float, confidence: float, method: str) -> tuple[float, float, float, float]:
    """Least and greatest mean of the capped radii in the sample, and the limits of the mean for unseen inputs."""
    low, high = (np.minimum(values, cap) / cap for values in ends.radii())
    if len(ends) < 2:
        return float(low[0]), float(high[0]), 0.0, 1.0
    if method != "t":
        limits = mean_interval(low, high, (0.0, 1.0), confidence, method)
    else:
        factor = scipy.stats.t.isf(level(confidence) / 2, len(ends) - 1) / np.sqrt(len(ends))
        limits = (
            max(0.0, float(low.mean() - factor * low.std(ddof=1))),
            min(1.0, float(high.mean() + factor * high.std(ddof=1))),
        )
    return float(low.mean()), float(high.mean()), *limits


def spread_range(low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """The least and greatest max − min over a box."""
    least = max(0.0, float(low.max() - high.min()))
    gaps = high[:, None] - low[None, :]
    np.fill_diagonal(gaps, 0.0)
    return least, float(gaps.max(initial=0.0))


def normalised_gini(values: Any) -> float:
    """The Gini coefficient of at least two non-negative values, scaled so that its greatest value is 1."""
    x = np.sort(np.asarray(values, dtype=np.float64))
    k = _several(x.size)
    total = x.sum()
    if total <= 0:
        return 0.0
    ranks = 2 * np.arange(1, k + 1) - k - 1
    return float(np.clip(np.sum(ranks * x) / ((k - 1) * total), 0.0, 1.0))


def gini_range(low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """The exact least and greatest normalised Gini over a box of non-negative values."""
    return _gini_least(low, high), _gini_greatest(low, high)


def _gini_least(low: FloatArray, high: FloatArray) -> float:
    """All values as near to one level as the box allows; the best level is at an end of some interval."""
    candidates = [normalised_gini(np.clip(level_, low, high)) for level_ in np.unique(np.concatenate([low, high]))]
    return min(candidates)


def _gini_greatest(low: FloatArray, high: FloatArray) -> float:
    """Dinkelbach's iteration; for a fixed ratio the best vertex and order is an assignment of classes to ranks."""
    k, ratio = low.size, normalised_gini(high)
    for _ in range(100):
        weight = (2 * np.arange(1, k + 1) - k - 1) - ratio * (k - 1)
        value = weight * np.where(weight > 0, high[:, None], low[:, None])
        rows, ranks = scipy.optimize.linear_sum_assignment(value, maximize=True)
        corner = np.where(weight[ranks] > 0, high[rows], low[rows])
        better = normalised_gini(corner)
        if better <= ratio + 1e-12:
            break
        ratio = better
    return ratio


def _several(count: int) -> int:
    if count < 2:
        raise InputError(f"fairness: expected at least two classes, got {count}")
    return count
