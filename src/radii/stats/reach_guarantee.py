"""What reaches say of unseen inputs: a band for every γ at once, limits at one γ, and limits of the mean.

With g(x) = 1 where the reach of x is on the good side of γ and ḡ(x) the reach itself, `at` and `at_one` speak of R(g)
and `mean` of D(ḡ) of "Global Adversarial Robustness Guarantees for Neural Networks": Hoeffding's limits are its
Theorems 1 and 2. Reaches are known as intervals, so every limit starts from the end that can only err on its own side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import number
from radii._html import table
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, level
from radii.stats.band import Band
from radii.stats.confidence_intervals import mean_interval
from radii.stats.dkw import dkw_half_width

EVIDENCE = "proven ends rest on proofs, witnessed ends on replayed inputs"
DEFINITIONS = {"all": "all inputs count", "correct": "only correctly classified inputs count"}
Values = tuple[FloatArray, FloatArray, tuple[float, float]]


@dataclass(frozen=True)
class ReachGuarantee(Band):
    """A band for the share of unseen inputs on the good side of γ, for all γ at once, and limits of the mean reach.

    `ends` are turned so that large is good (see `ReachDistribution.ends`). `values` are the ends of every reach with
    the limits that the quantity cannot leave; None where it has no such limits, and then the mean has none either.
    """

    what = "reaches"
    definitions = DEFINITIONS

    values: Values | None = None
    least: bool = False
    title: str = "reach"

    def mean(self, method: str = "hoeffding") -> tuple[float, float]:
        """Limits of the mean reach of unseen inputs, D(ḡ); methods are hoeffding (Theorem 2), bernstein, betting."""
        if self.values is None:
            raise InputError(
                f"mean of {self.title}: expected a quantity that cannot leave an interval, such as a probability, got "
                "one without limits; give bounds=(A, B) that hold for every input, such as those of a clamped output"
            )
        if self.population is not None:
            raise InputError("mean: expected independent draws, got a finite population: its limits are not known here")
        low, high, bounds = self.values
        return mean_interval(low, high, bounds, self.confidence, method)

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The γ at which the band changes, with its lower and upper limits there."""
        sign = 1.0 if self.least else -1.0
        ends = np.concatenate([self.ends.low, np.nextafter(self.ends.high, -np.inf)])
        knots = np.unique(sign * ends[np.isfinite(ends)])
        return (knots, *self.at(knots))

    @property
    def _rests_on(self) -> str:
        return EVIDENCE

    def sentence(self, gamma: Any, *, whole_curve: bool = True, method: str = "clopper-pearson") -> str:
        """The sentence that may be quoted for one γ, with its assumptions."""
        point = float(np.asarray(gamma, dtype=np.float64).reshape(()))
        low, high = (float(v) for v in self.at(point)) if whole_curve else self.at_one(point, method)
        scope = "at every γ at once" if whole_curve else "at this γ alone"
        sign = "at least" if self.least else "at most"
        share, stays = f"between {low:.1%} and {high:.1%} of", f"have a {self.title} of {sign} {point:g}"
        return self._said(f"holding {scope}", share, "", stays, self.confidence)

    def mean_sentence(self, method: str = "hoeffding") -> str:
        """The sentence about the mean reach that may be quoted, with its assumptions."""
        low, high = self.mean(method)
        lies = f"of the {self.title} lies between {low:.6g} and {high:.6g}"
        return self._said(method, "the mean over", "", lies, self.confidence)

    def _points(self, threshold: Any) -> FloatArray:
        points = thresholds(threshold)
        return points if self.least else -points

    def _repr_html_(self) -> str:
        """The statement at a few γ and what it rests on, for notebooks."""
        knots, low, high = self.curve()
        shown = np.unique(np.linspace(0, max(knots.size, 1) - 1, 4).astype(int))[: knots.size]
        sign = "≥" if self.least else "≤"
        rows = [(f"{sign} {knots[k]:.4g}", f"{low[k]:.1%} to {high[k]:.1%}") for k in shown]
        told = (("confidence", self.confidence), ("inputs", self.n), ("among", self.among))
        return table(f"guarantee for unseen inputs: {self.title}", [*rows, *told])


def reach_guarantee(ends: Ends, confidence: float = 0.95, population: int | None = None, **told: Any) -> ReachGuarantee:
    """The band of one sample of reaches: one-sided DKW limits on the proven and on the not-refuted envelope."""
    width = dkw_half_width(len(ends), confidence, population)
    return ReachGuarantee(ends, 1.0 - level(confidence), width, population=population, **told)


def thresholds(gamma: Any) -> FloatArray:
    """An array of finite thresholds γ."""
    if isinstance(gamma, str):
        return np.asarray(number(gamma, "gamma"))
    try:
        array = np.asarray(gamma, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"gamma: expected numbers, got {gamma!r}") from None
    if not np.all(np.isfinite(array)):
        raise InputError(f"gamma: expected finite numbers, got {gamma!r}")
    return array
