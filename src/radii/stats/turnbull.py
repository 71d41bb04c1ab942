"""Turnbull's estimator of the curve from interval-censored radii: an estimate, never a guarantee.

Time-outs are not independent of the radius, so the estimate may be biased in either direction; the proven and
not-broken envelopes are what is known. Turnbull (1976), self-consistency by EM, finished by the exact
Kuhn–Tucker check of Gentleman and Geyer (1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import number
from radii.stats._arrays import Ends, FloatArray, IntArray, eps_array


@dataclass(frozen=True)
class Turnbull:
    """Mass `weight[j]` somewhere in [left[j], right[j]); where inside an interval it lies is not identified."""

    left: FloatArray
    right: FloatArray
    weight: FloatArray
    log_likelihood: float
    converged: bool

    def at(self, eps: Any) -> tuple[FloatArray, FloatArray]:
        """The estimated share robust at each ε: least and greatest over where the mass may lie in its interval."""
        points = eps_array(eps)[..., None]
        sure = np.sum(self.weight * (self.left >= points), axis=-1)
        possible = np.sum(self.weight * (self.right > points), axis=-1)
        return np.clip(sure, 0.0, 1.0), np.clip(possible, 0.0, 1.0)


def turnbull(ends: Ends, tolerance: float | None = None, most_ends: int = 2_000) -> Turnbull:
    """The nonparametric maximum-likelihood curve of radii known to lie in [low, high).

    With more than `most_ends` different ends the intervals are first widened to that many quantiles of the ends
    (still true, and far below the sampling error of so many inputs). `tolerance` bounds the excess of the gradient:
    the log-likelihood is within tolerance × inputs of its maximum.
    """
    ends = _widen(ends, most_ends)
    left, right = innermost(ends)
    pairs, counts = np.unique(np.stack([ends.low, ends.high]), axis=1, return_counts=True)
    first = np.searchsorted(left, pairs[0], side="left")
    last = np.searchsorted(right, pairs[1], side="right")  # cells first..last-1 lie inside the interval
    automatic = 1e-9 if left.size <= 200 else 1e-6
    limit = automatic if tolerance is None else number(tolerance, "tolerance", low=0.0, strict=True)
    weight, converged = _maximise(first, last, counts.astype(np.float64), left.size, limit)
    covered = _sums(weight, first, last)
    keep = weight > 0
    return Turnbull(left[keep], right[keep], weight[keep], float(np.sum(counts * np.log(covered))), converged)


def innermost(ends: Ends) -> tuple[FloatArray, FloatArray]:
    """The intervals that can carry mass: from a left end to the next right end with no left end between."""
    values = np.concatenate([ends.low, ends.high])
    is_left = np.concatenate([np.ones(len(ends), np.bool_), np.zeros(len(ends), np.bool_)])
    order = np.lexsort((is_left, values))  # at equal values a right end (open) comes before a left end (closed)
    values, is_left = values[order], is_left[order]
    starts = np.flatnonzero(is_left[:-1] & ~is_left[1:])
    return values[starts], values[starts + 1]


def _widen(ends: Ends, most: int) -> Ends:
    values = np.concatenate([ends.low, ends.high])
    finite = values[np.isfinite(values)]
    if np.unique(finite).size <= most:
        return ends
    edges = np.quantile(finite, np.linspace(0, 1, most), method="lower")
    edges = np.unique(np.concatenate([[-np.inf], edges, [np.inf]]))
    low = edges[np.searchsorted(edges, ends.low, side="right") - 1]
    high = edges[np.searchsorted(edges, ends.high, side="left")]
    return Ends(low, high)


def _sums(weight: FloatArray, first: IntArray, last: IntArray) -> FloatArray:
    total = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(total[last] - total[first])


def _gradient(weight: FloatArray, first: IntArray, last: IntArray, counts: FloatArray) -> FloatArray:
    """Σ over the intervals that contain cell j of count / P(interval), divided by the number of intervals."""
    share = counts / np.maximum(_sums(weight, first, last), 1e-300)
    steps = np.zeros(weight.size + 1)
    np.add.at(steps, first, share)
    np.add.at(steps, last, -share)
    return np.asarray(np.cumsum(steps)[:-1] / counts.sum())


def _maximise(
    first: IntArray, last: IntArray, counts: FloatArray, cells: int, limit: float, steps: int = 5_000
) -> tuple[FloatArray, bool]:
    """EM with squared extrapolation until the Kuhn–Tucker conditions hold: no gradient above 1."""
    weight = np.full(cells, 1.0 / cells)

    def improve(current: FloatArray) -> FloatArray:
        updated = current * _gradient(current, first, last, counts)
        return np.asarray(updated / updated.sum())

    def likelihood(current: FloatArray) -> float:
        return float(np.sum(counts * np.log(np.maximum(_sums(current, first, last), 1e-300))))

    for _ in range(steps):
        gradient = _gradient(weight, first, last, counts)
        if gradient.max() <= 1 + limit:
            return np.where(weight < 1e-14, 0.0, weight), True
        one = improve(weight)
        two = improve(one)
        change, bend = one - weight, two - 2 * one + weight
        size = float(np.sqrt(np.sum(bend**2)))
        stride = -float(np.sqrt(np.sum(change**2))) / size if size > 0 else -1.0
        jump = np.maximum(weight - 2 * min(stride, -1.0) * change + min(stride, -1.0) ** 2 * bend, 0.0)
        weight = two
        if jump.sum() > 0:
            jump = improve(0.999 * jump / jump.sum() + 0.001 * two)
            weight = jump if likelihood(jump) > likelihood(two) else two
    return np.where(weight < 1e-14, 0.0, weight), False
