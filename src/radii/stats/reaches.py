"""The distribution of reaches over a set of inputs: how far outputs move, or how low a label falls, in balls of one ε.

For radii large is good and the lower end is proven. For a reach it depends on the quantity: of a greatest value (an
output change, a slope, a probability change) small is good and the upper end is proven, of a least value (the label's
output or margin) large is good and the lower end is proven. Everything here speaks of the *good side* of a threshold γ:
reach ≤ γ for greatest values, reach ≥ γ for least ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from radii._check import number
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, column, definition, integers
from radii.stats.quantiles import finite
from radii.stats.reach_guarantee import ReachGuarantee, reach_guarantee, thresholds
from radii.stats.sample import COSTS, Sample

if TYPE_CHECKING:
    from radii.stats.reach_comparison import ReachComparison

STATUSES = ("closed", "open", "unsolved")


class ReachShare(NamedTuple):
    """The share of inputs on the good side of γ: at least `proven`, at most `not_refuted` (floats, or arrays)."""

    proven: Any
    not_refuted: Any


@dataclass(frozen=True)
class MeanReach:
    """The mean reach of this sample: between `lower` and `upper`; None where an end of some input is absent."""

    lower: float | None
    upper: float | None


@dataclass(frozen=True, eq=False)
class ReachDistribution(Sample):
    """Reaches of n inputs as intervals; build it with `ReachDistribution.from_arrays`.

    `lower` and `upper` hold NaN for an absent end. `least` says that the least value in the ball was asked for.
    `bounds` are limits that no value of the quantity leaves, such as (0, 1) for probabilities; None where there are
    none. `correct` says which inputs the network classifies correctly; all inputs count unless asked otherwise.
    """

    columns = ("lower", "upper", "label", "correct", "status", *COSTS)

    least: bool = False
    epsilon: float | None = None
    quantity: str = "reach"
    unit: str = "output"
    norm: str = "linf"
    bounds: tuple[float, float] | None = None

    @classmethod
    def from_arrays(cls, lower: Any, upper: Any = None, label: Any = None, correct: Any = None, **details: Any) -> Self:
        """A distribution from plain arrays, one value per input; NaN or None marks an absent end.

        Further keywords: `least`, `epsilon`, `quantity` (its name), `unit`, `norm`, `bounds`, `ids`, `contents`,
        `cpu_seconds`, `wall_seconds`, `status`, `keys`, `name` and `class_names`.

        >>> dist = ReachDistribution.from_arrays(lower=[0.1, 0.3, 0.2], upper=[0.2, 0.3, None], epsilon=0.01)
        >>> dist.share(0.25)
        ReachShare(proven=0.3333333333333333, not_refuted=0.6666666666666666)
        """
        low, high = _ends(lower, upper)
        n = low.size
        status = details.pop("status", None)
        known = cls._checked(n, correct, details)
        return cls(
            lower=low,
            upper=high,
            label=np.full(n, -1) if label is None else integers(label, "label", n, -1),
            status=_derived(low, high) if status is None else np.asarray(status, dtype=np.str_),
            **known,
        )

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        at = "" if self.epsilon is None else f", ε={self.epsilon:g}"
        return f"ReachDistribution({name}{self.quantity}{at}, n={len(self)})"

    @property
    def proven(self) -> FloatArray:
        """The proven end of every input, NaN where it is absent."""
        return self.lower if self.least else self.upper

    @property
    def witnessed(self) -> FloatArray:
        """The end that a replayed input shows, NaN where it is absent."""
        return self.upper if self.least else self.lower

    @property
    def title(self) -> str:
        """The quantity with its extremum and ε, for axes and tables."""
        at = "" if self.epsilon is None else f" at ε = {self.epsilon:g} ({self.norm})"
        return f"{'least' if self.least else 'largest'} {self.quantity}{at}"

    @property
    def good(self) -> str:
        """The sign of the good side: reach ≤ γ, or ≥ γ for least values."""
        return "≥" if self.least else "≤"

    def ends(self, among: str = "all") -> Ends:
        """What is known, turned so that large is good: the low end is proven, the high end witnessed.

        A reach equal to γ is on the good side, so the high end is the next float up: `Ends.not_broken` is strict.
        """
        sign = 1.0 if self.least else -1.0
        low = np.where(np.isnan(self.proven), -np.inf, sign * self.proven)
        high = np.where(np.isnan(self.witnessed), np.inf, np.nextafter(sign * self.witnessed, np.inf))
        return self._among(Ends(low, high), among)

    def share(self, gamma: Any, among: str = "all") -> ReachShare:
        """The share of inputs with reach ≤ γ (≥ γ for least values), as an interval; arrays for an array of γ."""
        points = thresholds(gamma)
        turned, known = points if self.least else -points, self.ends(among)
        low, high = known.proven(turned), known.not_broken(turned)
        return ReachShare(low, high) if points.ndim else ReachShare(float(low), float(high))

    def mean(self, among: str = "all", bounds: tuple[float, float] | None = None) -> MeanReach:
        """The mean reach as an interval; an absent end is the quantity's own limit, where it has one."""
        low, high = self.filled(among, bounds)
        return MeanReach(finite(low.mean()), finite(high.mean()))

    def filled(self, among: str = "all", bounds: tuple[float, float] | None = None) -> tuple[FloatArray, FloatArray]:
        """Both ends with absent ones at the quantity's own limits, infinite where it has none."""
        least, most = bounds or self.bounds or (-np.inf, np.inf)
        rows = np.ones(len(self), np.bool_) if definition(among) == "all" else self.correct
        low, high = self.lower[rows], self.upper[rows]
        return np.where(np.isnan(low), least, low), np.where(np.isnan(high), most, high)

    def quantile(self, q: Any, among: str = "all") -> tuple[float | None, float | None]:
        """The q-quantile of the reaches of this sample as an interval; None where the data put no limit on it."""
        share = number(q, "q", low=0.0, high=1.0)
        rank = min(max(int(np.ceil(len(self.filled(among)[0]) * share)) - 1, 0), len(self.filled(among)[0]) - 1)
        low, high = (float(np.sort(values)[rank]) for values in self.filled(among))
        return finite(low), finite(high)

    def guarantee(
        self,
        confidence: float = 0.95,
        among: str = "all",
        population: int | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> ReachGuarantee:
        """A band for unseen inputs, for all γ at once, and limits of the mean where the quantity has `bounds`."""
        self.one_row_each("guarantee")
        chosen = self if definition(among) == "all" else self.select(self.correct)
        limits = bounds or self.bounds
        return reach_guarantee(
            chosen.ends(),
            confidence,
            population,
            values=None if limits is None else (*chosen.filled("all", limits), limits),
            least=self.least,
            title=self.title,
            among=definition(among),
            repeated=chosen.repeated,
        )

    def compare(self, other: ReachDistribution, **options: Any) -> ReachComparison:
        """What the data say about the reaches of two networks: a test and who surely leads where."""
        from radii.stats.reach_comparison import compare

        return compare(self, other, **options)

    def summary(self) -> dict[str, Any]:
        """Counts, the mean and the extremes as plain values; None where the data do not say."""
        counts = {name: int(np.sum(self.status == name)) for name in STATUSES}
        gaps = (self.upper - self.lower)[~np.isnan(self.upper - self.lower)]
        mean = self.mean()
        worst = self.witnessed[~np.isnan(self.witnessed)]
        ends = {
            "mean_lower": mean.lower,
            "mean_upper": mean.upper,
            "mean_gap": float(gaps.mean()) if gaps.size else None,
        }
        extreme = (worst.min() if self.least else worst.max()) if worst.size else np.nan
        cost = None if self.cpu_seconds is None else float(np.nansum(self.cpu_seconds))
        return {"n": len(self), **counts, **ends, "worst_witnessed": finite(extreme), "cpu_seconds": cost}

    def _facts(self) -> dict[str, Any]:
        return {"name": self.name, "quantity": self.quantity, "norm": self.norm, "epsilon": self.epsilon}


def _ends(lower: Any, upper: Any) -> tuple[FloatArray, FloatArray]:
    low = column(lower, "lower")
    if low.size == 0:
        raise InputError("lower: expected at least one instance, got none")
    high = column(upper, "upper", low.size) if upper is not None else np.full(low.size, np.nan)
    for name, array in (("lower", low), ("upper", high)):
        if np.isinf(array).any():
            raise InputError(f"{name}: expected finite reaches (NaN if absent), got an infinite one")
    crossed = low > high
    if crossed.any():
        row = int(np.flatnonzero(crossed)[0])
        raise InputError(f"lower: expected at most upper, got {low[row]:g} > {high[row]:g} at row {row}")
    return low, high


def _derived(low: FloatArray, high: FloatArray) -> npt.NDArray[np.str_]:
    """The status of each reach from its ends alone: only equal ends are known to be closed."""
    conditions = [np.isnan(low) & np.isnan(high), low == high]
    return np.select(conditions, ["unsolved", "closed"], default="open")
