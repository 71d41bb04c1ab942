"""Which family do the radii follow? Likelihood on the intervals, parametric bootstrap, AIC and BIC.

Plain KS against a fitted family is invalid (the fit makes the distance too small) and grids, ties and gaps make it
worse. Here the same fit is repeated on samples simulated from the fitted family and censored like the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from radii._check import choice, number, whole
from radii.stats._arrays import Ends, FloatArray
from radii.stats.fits import (
    FAMILIES,
    Family,
    Patterns,
    cells,
    fit,
    grid_edges,
    log_likelihood,
    patterns,
    quantile_edges,
    starting_point,
)

_PARTS = 256  # where a fitted curve is compared with data that lie on no grid


@dataclass(frozen=True)
class Fit:
    """One fitted family: parameters, information criteria, and a Monte-Carlo test of its fit.

    `distance` is the largest distance between the fitted curve and the envelope of the data (0 inside it).
    """

    family: str
    parameters: dict[str, float]
    log_likelihood: float
    aic: float
    bic: float
    distance: float
    p_value: float

    def verdict(self, alpha: float = 0.05) -> str:
        """`rejected`, or `not rejected` (which does not show that the radii follow the family)."""
        return "rejected" if self.p_value <= number(alpha, "alpha", low=0.0, high=1.0) else "not rejected"


@dataclass(frozen=True)
class Goodness:
    """Fits from the best (lowest AIC) to the worst, or none and the reason why there can be none."""

    fits: tuple[Fit, ...]
    n: int
    uninformative: int
    replicates: int
    reason: str = ""

    def best(self) -> Fit | None:
        """The family with the lowest AIC."""
        return self.fits[0] if self.fits else None


def goodness(ends: Ends, families: Iterable[str] = tuple(FAMILIES), replicates: int = 499, seed: int = 0) -> Goodness:
    """Fit and test families on radii known as intervals (use correctly classified inputs: `ends("correct")`).

    The bootstrap draws samples of the same size from the fit, on the data's own grid if it has one, without gaps:
    gaps can only bring the data nearer to a curve, so whatever caused them they make the test more careful.
    """
    names = [choice(name, "family", FAMILIES) for name in families]
    runs = whole(replicates, "replicates", low=19)
    known = (ends.low > 0) | np.isfinite(ends.high)
    informative = ends.take(known)
    missing = len(ends) - len(informative)
    data = patterns(informative) if len(informative) else None
    reason = _unusable(informative, data)
    if reason or data is None:
        return Goodness((), len(ends), missing, runs, reason)
    rng = np.random.default_rng(seed)
    fits = [_assess(FAMILIES[name], informative, data, runs, rng) for name in names]
    return Goodness(tuple(sorted(fits, key=lambda one: one.aic)), len(ends), missing, runs)


def _unusable(ends: Ends, data: Patterns | None) -> str:
    """Why no family can be fitted, or an empty text."""
    if data is None:
        return "no radius has a known end"
    if len(ends) < 3:
        return f"{len(ends)} radii are too few to fit two parameters"
    low, high = ends.radii()
    if np.any((low == 0) & (high <= np.nextafter(0.0, 1.0))):
        return "a radius is exactly 0: give only correctly classified inputs"
    if low.max() < high.min():
        return "all intervals share a point: identical radii explain them, no shape can be fitted"
    return ""


def _assess(family: Family, ends: Ends, data: Patterns, runs: int, rng: np.random.Generator) -> Fit:
    n = len(ends)
    theta = fit(family, data, starting_point(family, ends))
    value = float(log_likelihood(family, data, theta)[0])
    grid = grid_edges(ends)
    edges = quantile_edges(family, theta[0], _PARTS) if grid is None else grid
    curve = family.cdf(edges[None, :], theta[:, :1], theta[:, 1:])
    curve[:, 0], curve[:, -1] = 0.0, 1.0
    observed = float(_outside(curve, *_envelope(ends, edges))[0])
    chances = np.maximum(np.diff(curve[0]), 0.0)
    samples = cells(edges, rng.multinomial(n, chances / chances.sum(), size=runs))
    refits = fit(family, samples, theta[0])
    again = family.cdf(edges[None, :], refits[:, :1], refits[:, 1:])
    again[:, 0], again[:, -1] = 0.0, 1.0
    steps = np.concatenate([np.zeros((runs, 1)), np.cumsum(samples.count, axis=1) / n], axis=1)
    reached = int(np.sum(_outside(again, steps, steps) >= observed - 1e-9))
    return Fit(
        family.name,
        family.plain(float(theta[0, 0]), float(theta[0, 1])),
        value,
        4.0 - 2.0 * value,
        2.0 * float(np.log(n)) - 2.0 * value,
        observed,
        (1 + reached) / (1 + runs),
    )


def _envelope(ends: Ends, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The share of radii surely below each edge, and possibly below it (a hair of slack for ends on a grid)."""
    low, high = (np.sort(values) for values in ends.radii())
    hair = 1e-9 * edges
    hair[-1] = 0.0
    surely = np.searchsorted(high, edges + hair, side="right") / len(ends)
    possibly = np.searchsorted(low, edges - hair, side="left") / len(ends)
    return surely, np.maximum(possibly, surely)


def _outside(curve: FloatArray, surely: FloatArray, possibly: FloatArray) -> FloatArray:
    """How far each curve leaves its envelope at the edges, 0 if it stays inside."""
    return np.asarray(np.maximum(np.maximum(surely - curve, curve - possibly), 0.0).max(axis=1))
