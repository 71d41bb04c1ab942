"""Effect sizes on interval data: Cliff's delta (1993), Wasserstein distance, areas; wherever the radii lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import number
from radii.stats._arrays import Ends, FloatArray


@dataclass(frozen=True)
class Effect:
    """An effect size that lies in [low, high] whatever the gaps hide; None where there is no limit."""

    low: float
    high: float | None


def cliffs_delta(a: Ends, b: Ends) -> Effect:
    """P(radius of A > radius of B) − P(<) over all pairs of inputs: 1 if every A beats every B (Cliff 1993)."""
    (a_low, a_high), (b_low, b_high) = a.radii(), b.radii()
    return Effect(_delta(a_low, b_high), _delta(a_high, b_low))


def _delta(x: FloatArray, y: FloatArray) -> float:
    ordered = np.sort(y)
    wins = np.searchsorted(ordered, x, side="left").sum()
    losses = (y.size - np.searchsorted(ordered, x, side="right")).sum()
    return float((wins - losses) / (x.size * y.size))


def wasserstein(a: Ends, b: Ends, limit: Any) -> Effect:
    """The area between the two curves from ε = 0 to `limit`, in units of ε: how far apart the radii are."""
    stop = number(limit, "limit", low=0.0, strict=True)
    grid, a_low, a_high = _curve(a, b, stop)
    _, b_low, b_high = _curve(b, a, stop)
    widths = np.diff(grid)
    least = np.maximum(np.maximum(a_low - b_high, b_low - a_high), 0.0)
    most = np.maximum(a_high - b_low, b_high - a_low)
    return Effect(float(np.sum(least * widths)), float(np.sum(most * widths)))


def area_difference(a: Ends, b: Ends, limit: Any) -> Effect:
    """The area under A's curve minus that under B's, from 0 to `limit`: the mean difference of capped radii."""
    stop = number(limit, "limit", low=0.0, strict=True)
    (a_low, a_high), (b_low, b_high) = ([np.minimum(v, stop).mean() for v in ends.radii()] for ends in (a, b))
    return Effect(float(a_low - b_high), float(a_high - b_low))


def _curve(a: Ends, b: Ends, stop: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The common cells of both curves up to `stop` and A's proven and not-broken share inside each cell."""
    values = np.concatenate([*a.radii(), *b.radii(), [0.0, stop]])
    grid = np.unique(np.clip(values, 0.0, stop))
    middle = (grid[1:] + grid[:-1]) / 2
    return grid, a.proven(middle), a.not_broken(middle)
