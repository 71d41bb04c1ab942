"""The distribution of reaches over a set of inputs: how far outputs move, or how low a label falls, in balls of one ε.

For radii large is good and the lower end is proven. For a reach it depends on the quantity: of a greatest value (an
output change, a slope, a probability change) small is good and the upper end is proven, of a least value (the label's
output or margin) large is good and the lower end is proven. Everything here speaks of the *good side* of a threshold γ:
reach ≤ γ for greatest values, reach ≥ γ for least ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from radii._check import number
from radii.errors import InputError
from radii.stats._arrays import BoolArray, Ends, FloatArray, IntArray, booleans, column, definition, integers
from radii.stats.quantiles import finite
from radii.stats.reach_guarantee import ReachGuarantee, reach_guarantee

if TYPE_CHECKING:
    import pandas as pd

    from radii.stats.reach_comparison import ReachComparison

STATUSES = ("closed", "open", "unsolved")
_NUMBERS = ("lower", "upper", "label", "correct", "status", "cpu_seconds", "wall_seconds")
_ROWS = (*_NUMBERS, "ids", "contents", "keys")


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
class ReachDistribution:
    """Reaches of n inputs as intervals; build it with `ReachDistribution.from_arrays`.

    `lower` and `upper` hold NaN for an absent end. `least` says that the least value in the ball was asked for.
    `bounds` are limits that no value of the quantity leaves, such as (0, 1) for probabilities; None where there are
    none. `correct` says which inputs the network classifies correctly; all inputs count unless asked otherwise.
    """

    lower: FloatArray
    upper: FloatArray
    label: IntArray
    correct: BoolArray
    status: npt.NDArray[np.str_]
    least: bool = False
    epsilon: float | None = None
    quantity: str = "reach"
    unit: str = "output"
    norm: str = "linf"
    bounds: tuple[float, float] | None = None
    ids: npt.NDArray[np.str_] | None = None
    contents: npt.NDArray[np.str_] | None = None
    cpu_seconds: FloatArray | None = None
    wall_seconds: FloatArray | None = None
    keys: npt.NDArray[np.str_] | None = None
    name: str = ""
    class_names: tuple[str, ...] = ()

    @classmethod
    def from_arrays(cls, lower: Any, upper: Any = None, label: Any = None, correct: Any = None, **details: Any) -> Self:
        """A distribution from plain arrays, one value per input; NaN or None marks an absent end.

        Further keywords: `least`, `epsilon`, `quantity` (its name), `unit`, `norm`, `bounds`, `ids`, `contents`,
        `cpu_seconds`, `wall_seconds`, `status`, `keys`, `name` and `class_names`.

        >>> dist = ReachDistribution.from_arrays(lower=[0.1, 0.3, 0.2], upper=[0.2, 0.3, None], epsilon=0.01)
        >>> dist.share(0.25)
        ReachShare(proven=0.3333333333333333, not_refuted=0.6666666666666666)
        """
        known = {one.name for one in fields(cls)} - {"lower", "upper", "label", "correct"}
        if unknown := set(details) - known:
            raise InputError(f"from_arrays: expected only {', '.join(sorted(known))}, got {sorted(unknown)}")
        low, high = _ends(lower, upper)
        n = low.size
        for key in ("cpu_seconds", "wall_seconds"):
            if details.get(key) is not None:
                details[key] = column(details[key], key, n)
        for key in ("ids", "contents", "keys"):
            if details.get(key) is not None:
                details[key] = np.asarray(details[key]).astype(np.str_)
        details["class_names"] = tuple(map(str, details.pop("class_names", None) or ()))
        status = details.pop("status", None)
        return cls(
            lower=low,
            upper=high,
            label=np.full(n, -1) if label is None else integers(label, "label", n, -1),
            correct=np.ones(n, np.bool_) if correct is None else booleans(correct, "correct", n),
            status=_derived(low, high) if status is None else np.asarray(status, dtype=np.str_),
            **details,
        )

    def __len__(self) -> int:
        return int(self.lower.size)

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
        both = Ends(low, high)
        if definition(among) == "all":
            return both
        if not self.correct.any():
            raise InputError("among='correct': expected a correctly classified input, got none; use among='all'")
        return both.take(self.correct)

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
        known = chosen.contents
        limits = bounds or self.bounds
        return reach_guarantee(
            chosen.ends(),
            None if limits is None else (*chosen.filled("all", limits), limits),
            confidence,
            least=self.least,
            title=self.title,
            among=definition(among),
            population=population,
            repeated=0 if known is None else len(known) - int(np.unique(known).size),
        )

    def select(self, rows: npt.ArrayLike) -> Self:
        """The distribution of some rows (a mask or indices)."""
        index = np.arange(len(self))[np.asarray(rows)]
        if index.size == 0:
            raise InputError(f"select: expected at least one of the {len(self)} instances, got none")
        picked: dict[str, Any] = {key: getattr(self, key) for key in _ROWS if getattr(self, key) is not None}
        return replace(self, **{key: values[index] for key, values in picked.items()})

    def by_class(self) -> dict[int, Self]:
        """The distribution of each class of the inputs, by label."""
        if np.all(self.label < 0):
            raise InputError("by_class: expected a label for every instance, got none; give label=... to from_arrays")
        return {int(key): self.select(self.label == key) for key in np.unique(self.label)}

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

    def to_frame(self) -> pd.DataFrame:
        """One row per input, as a pandas frame (NaN marks an absent end)."""
        import pandas as pd

        columns = {key: getattr(self, key) for key in _ROWS if getattr(self, key) is not None}
        told = {"name": self.name, "quantity": self.quantity, "norm": self.norm, "epsilon": self.epsilon}
        return pd.DataFrame({**told, **columns}, index=range(len(self)))

    def one_row_each(self, purpose: str) -> None:
        """Raises where an input is there twice: counted again it says nothing new."""
        if self.ids is not None and np.unique(self.ids).size < len(self):
            names, counts = np.unique(self.ids, return_counts=True)
            raise InputError(f"{purpose}: expected every input once, got {names[counts.argmax()]} {counts.max()} times")


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
