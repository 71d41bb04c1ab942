"""Parametric families fitted to radii known as intervals, many samples at once.

Intervals are written on shared edges: a pattern (i, j) means "between edge i and edge j". The likelihood of a
pattern is F(edge j) − F(edge i), so a fit costs one look at F per edge, however many inputs there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from radii.stats._arrays import Ends, FloatArray, IntArray

_MOST_EDGES = 256
_FLOOR = 1e-300


@dataclass(frozen=True)
class Family:
    """A two-parameter family: its distribution function of unconstrained parameters, and their plain form."""

    name: str
    cdf: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
    start: Callable[[FloatArray], tuple[float, float]]
    plain: Callable[[float, float], dict[str, float]]


def _normal(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(scipy.special.ndtr((np.where(x <= 0, -np.inf, x) - a) / np.exp(b)))


def _lognormal(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(scipy.special.ndtr((np.log(x) - a) / np.exp(b)))


def _weibull(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(-np.expm1(-np.exp(np.exp(b) * (np.log(x) - a))))


def _gamma(x: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(scipy.special.gammainc(np.exp(a), x / np.exp(b)))


def _moments(x: FloatArray) -> tuple[float, float]:
    return float(x.mean()), float(max(x.std(), 1e-3 * x.mean(), 1e-12))


def _normal_start(x: FloatArray) -> tuple[float, float]:
    mean, spread = _moments(x)
    return mean, float(np.log(spread))


def _log_start(x: FloatArray) -> tuple[float, float]:
    logs = np.log(x)
    return float(logs.mean()), float(np.log(max(logs.std(), 1e-3)))


def _weibull_start(x: FloatArray) -> tuple[float, float]:
    mean, spread = _log_start(x)
    return mean + 0.5772 * float(np.exp(spread)) * 0.78, -spread - 0.25


def _gamma_start(x: FloatArray) -> tuple[float, float]:
    mean, spread = _moments(x)
    return float(2 * np.log(mean / spread)), float(np.log(spread**2 / mean))


FAMILIES = {
    "lognormal": Family("lognormal", _lognormal, _log_start, lambda a, b: {"log_mean": a, "log_std": float(np.exp(b))}),
    "normal": Family("normal", _normal, _normal_start, lambda a, b: {"mean": a, "std": float(np.exp(b))}),
    "weibull": Family(
        "weibull", _weibull, _weibull_start, lambda a, b: {"scale": float(np.exp(a)), "shape": float(np.exp(b))}
    ),
    "gamma": Family("gamma", _gamma, _gamma_start, lambda a, b: {"shape": float(np.exp(a)), "scale": float(np.exp(b))}),
}


@dataclass(frozen=True)
class Patterns:
    """Samples of intervals on shared edges, one row of `count` each: how many go from edge `first` to edge `last`."""

    edges: FloatArray
    first: IntArray
    last: IntArray
    count: FloatArray

    def rows(self, chosen: IntArray) -> Patterns:
        """The chosen samples."""
        return Patterns(self.edges, self.first, self.last, self.count[chosen])


def patterns(ends: Ends) -> Patterns:
    """One sample of patterns; beyond 256 edges the intervals are widened to quantile edges (still true statements)."""
    low, high = ends.radii()
    exact = high - low < 1e-4 * high  # too narrow for a difference of F to be accurate: widen it a little
    low, high = np.where(exact, low * (1 - 5e-5), low), np.where(exact, high * (1 + 5e-5), high)
    values = np.concatenate([low, high])
    edges = np.unique(np.append(values[np.isfinite(values)], [0.0, np.inf]))
    if edges.size > _MOST_EDGES:
        inner = np.quantile(values[np.isfinite(values)], np.linspace(0, 1, _MOST_EDGES - 1), method="lower")
        edges = np.unique(np.concatenate([inner, [0.0, edges[-2], np.inf]]))
    first = np.searchsorted(edges, low, side="right") - 1
    last = np.maximum(np.searchsorted(edges, high, side="left"), first + 1)
    pairs, count = np.unique(np.stack([first, last]), axis=1, return_counts=True)
    return Patterns(edges, pairs[0], pairs[1], count[None, :].astype(np.float64))


def cells(edges: FloatArray, count: IntArray) -> Patterns:
    """Samples without gaps: counts of the cells between neighbouring edges, one row each."""
    first = np.arange(edges.size - 1)
    return Patterns(edges, first, first + 1, count.astype(np.float64))


def log_likelihood(family: Family, data: Patterns, theta: FloatArray) -> FloatArray:
    """The log-likelihood of each sample at its row of parameters."""
    below = family.cdf(data.edges[None, :], theta[:, :1], theta[:, 1:])
    mass = np.maximum(below[:, data.last] - below[:, data.first], _FLOOR)
    return np.asarray(np.sum(data.count * np.log(mass), axis=1))


def fit(family: Family, data: Patterns, start: FloatArray, steps: int = 40) -> FloatArray:
    """Maximum-likelihood parameters of each sample: Newton with halved steps, from one common start."""
    theta = np.tile(start, (data.count.shape[0], 1))
    value = log_likelihood(family, data, theta)
    active = np.arange(theta.shape[0])
    for _ in range(steps):
        part, now = data.rows(active), theta[active]
        step = _newton_step(partial(log_likelihood, family, part), now, value[active])
        better, gained = _line_search(partial(log_likelihood, family, part), now, step, value[active])
        gain = gained - value[active]
        theta[active], value[active] = better, gained
        active = active[gain > 1e-8 * (1 + np.abs(gained))]
        if active.size == 0:
            break
    return theta


def _newton_step(f: Callable[[FloatArray], FloatArray], theta: FloatArray, value: FloatArray) -> FloatArray:
    """The Newton direction from central differences; an ascent direction where the curvature is not negative."""
    h = 1e-4
    e = np.eye(2) * h
    plus, minus = [f(theta + e[k]) for k in range(2)], [f(theta - e[k]) for k in range(2)]
    cross = (f(theta + e[0] + e[1]) - plus[0] - plus[1] + value) / h**2
    gradient = np.stack([(plus[k] - minus[k]) / (2 * h) for k in range(2)], axis=1)
    curve = [(plus[k] - 2 * value + minus[k]) / h**2 for k in range(2)]
    determinant = curve[0] * curve[1] - cross**2
    concave = (curve[0] < 0) & (determinant > 1e-8 * np.abs(curve[0] * curve[1]))
    safe = np.where(concave, determinant, 1.0)
    newton = -np.stack(
        [
            (curve[1] * gradient[:, 0] - cross * gradient[:, 1]) / safe,
            (curve[0] * gradient[:, 1] - cross * gradient[:, 0]) / safe,
        ],
        axis=1,
    )
    plain = gradient / np.maximum(np.abs(gradient).max(axis=1, keepdims=True), 1e-12) * 0.1
    step = np.where(concave[:, None], newton, plain)
    size = np.abs(step).max(axis=1, keepdims=True)
    return np.asarray(step / np.maximum(size, 1.0))


def _line_search(
    f: Callable[[FloatArray], FloatArray], theta: FloatArray, step: FloatArray, value: FloatArray
) -> tuple[FloatArray, FloatArray]:
    best, score = theta.copy(), value.copy()
    scale = np.ones((theta.shape[0], 1))
    for _ in range(8):
        trial = theta + scale * step
        found = f(trial)
        improved = found > score
        best[improved], score[improved] = trial[improved], found[improved]
        if np.all(score > value):
            break
        scale = np.where((score > value)[:, None], scale, scale / 2)
    return best, score


def quantile_edges(family: Family, theta: FloatArray, count: int) -> FloatArray:
    """0, the radii that cut the family into `count` equally likely parts (by bisection), and infinity."""
    goal = np.arange(1, count) / count
    low, high = np.full(goal.size, -60.0), np.full(goal.size, 60.0)  # of log radius
    for _ in range(80):
        middle = (low + high) / 2
        under = family.cdf(np.exp(middle), theta[:1], theta[1:]) < goal
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.unique(np.concatenate([[0.0], np.exp(high), [np.inf]]))


def grid_edges(ends: Ends) -> FloatArray | None:
    """0, every point of the grid that all ends lie on, and infinity; None if they lie on no grid."""
    low, high = ends.radii()
    values = np.unique(np.concatenate([low, high]))
    values = values[np.isfinite(values) & (values > 0)]
    if values.size < 3:
        return None
    gaps = np.diff(values)
    step = float(gaps[gaps > 1e-9 * values[-1]].min(initial=values[-1]))
    place = (values - values[0]) / step
    if values[-1] / step > 4 * _MOST_EDGES or np.abs(place - np.rint(place)).max() > 1e-3:
        return None
    below = int(values[0] / step + 1e-3)
    start = values[0] - below * step
    points = start + step * np.arange(below + int(np.rint(place[-1])) + 2)
    return np.concatenate([[0.0], points[points > 1e-3 * step], [np.inf]])


def starting_point(family: Family, ends: Ends) -> FloatArray:
    """Rough parameters from the middle of the intervals (an absent upper end counts as half as much again)."""
    low, high = ends.radii()
    middle = np.where(np.isfinite(high), (low + high) / 2, 1.5 * low)
    positive: Any = middle[middle > 0]
    return np.array(family.start(positive if positive.size else np.ones(1)))
