"""The distribution of radii over a set of inputs: the object most users meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from radii._check import number
from radii.errors import InputError
from radii.stats._arrays import (
    ANY_TARGET,
    BoolArray,
    Ends,
    FloatArray,
    IntArray,
    booleans,
    column,
    definition,
    ends_of,
    eps_array,
    integers,
    interval_columns,
)
from radii.stats.guarantee import Guarantee, class_guarantees, guarantee
from radii.stats.quality import STATUSES, Quality, derive_status, quality
from radii.stats.quantiles import Mean, Quantile, mean_radius, quantile
from radii.stats.turnbull import Turnbull, turnbull

if TYPE_CHECKING:
    import pandas as pd

    from radii.stats.comparison import Comparison

_ROWS = (
    "lower",
    "upper",
    "label",
    "correct",
    "target",
    "status",
    "cpu_seconds",
    "wall_seconds",
    "ids",
    "contents",
    "keys",
)


class RobustAccuracy(NamedTuple):
    """The share of inputs robust at ε: at least `proven`, at most `not_broken` (floats, or arrays for many ε)."""

    proven: Any
    not_broken: Any

    @property
    def low(self) -> Any:
        """The proven share."""
        return self.proven

    @property
    def high(self) -> Any:
        """The share without a witness."""
        return self.not_broken


@dataclass(frozen=True, eq=False)
class Distribution:
    """Radii of n inputs as intervals; build it with `Distribution.from_arrays`.

    `lower` and `upper` hold NaN for an absent end; `label` and `target` hold -1 where there is none (a target of
    -1 means any other class). A misclassified input has radius 0 whatever its ends say. `keys` names the stored unit
    of each row, where there is one.
    """

    lower: FloatArray
    upper: FloatArray
    label: IntArray
    correct: BoolArray
    target: IntArray
    status: npt.NDArray[np.str_]
    ids: npt.NDArray[np.str_] | None = None
    contents: npt.NDArray[np.str_] | None = None
    cpu_seconds: FloatArray | None = None
    wall_seconds: FloatArray | None = None
    keys: npt.NDArray[np.str_] | None = None
    name: str = ""
    class_names: tuple[str, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        lower: Any,
        upper: Any = None,
        label: Any = None,
        correct: Any = None,
        target: Any = None,
        **details: Any,
    ) -> Self:
        """A distribution from plain arrays, one value per input; NaN or None marks an absent end.

        Further keywords: `ids` (what pairs inputs between networks), `contents` (equal for equal inputs, such as
        fingerprints), `cpu_seconds`, `wall_seconds`, `status`, `name`, `class_names`, and `tolerance` (0.002): the
        widest gap that still counts as closed.

        >>> dist = Distribution.from_arrays(lower=[0.01, 0.03, None], upper=[0.02, None, None], correct=[1, 1, 0])
        >>> dist.robust_accuracy(0.025)
        RobustAccuracy(proven=0.3333333333333333, not_broken=0.3333333333333333)
        """
        known = {f.name for f in fields(cls)} - {"lower", "upper", "label", "correct", "target"} | {"tolerance"}
        if unknown := set(details) - known:
            raise InputError(f"from_arrays: expected only {', '.join(sorted(known))}, got {sorted(unknown)}")
        low, high = interval_columns(lower, upper)
        n = low.size
        right = np.ones(n, np.bool_) if correct is None else booleans(correct, "correct", n)
        tolerance = number(details.pop("tolerance", 0.002), "tolerance", low=0.0)
        status = details.pop("status", None)
        for key in ("cpu_seconds", "wall_seconds"):
            if details.get(key) is not None:
                details[key] = column(details[key], key, n)
        for key in ("ids", "contents", "keys"):
            if details.get(key) is not None:
                details[key] = _texts(details[key], key, n)
        details["class_names"] = tuple(map(str, details.pop("class_names", None) or ()))
        return cls(
            lower=low,
            upper=high,
            label=np.full(n, -1) if label is None else integers(label, "label", n),
            correct=right,
            target=np.full(n, ANY_TARGET) if target is None else integers(target, "target", n, ANY_TARGET),
            status=derive_status(low, high, right, tolerance) if status is None else _status(status, right),
            **details,
        )

    def __len__(self) -> int:
        return int(self.lower.size)

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Distribution({name}n={len(self)}, correct={int(self.correct.sum())})"

    def ends(self, among: str = "all") -> Ends:
        """The known ends under one of the two definitions: "all" inputs, or only the "correct"ly classified."""
        both = ends_of(self.lower, self.upper, self.correct)
        if definition(among) == "all":
            return both
        if not self.correct.any():
            raise InputError(
                f"among='correct': expected a correctly classified input, got {len(self)} misclassified ones; "
                "use among='all'"
            )
        return both.take(self.correct)

    def select(self, rows: npt.ArrayLike) -> Self:
        """The distribution of some rows (a mask or indices)."""
        index = np.arange(len(self))[np.asarray(rows)]
        if index.size == 0:
            raise InputError(f"select: expected at least one of the {len(self)} instances, got none")
        picked: dict[str, Any] = {key: getattr(self, key) for key in _ROWS if getattr(self, key) is not None}
        return replace(self, **{key: values[index] for key, values in picked.items()})

    def robust_accuracy(self, eps: Any, among: str = "all") -> RobustAccuracy:
        """The share of inputs robust at ε, as an interval [proven, not broken]; arrays for an array of ε.

        `among="all"` counts misclassified inputs as not robust, `among="correct"` leaves them out (the paper's).
        """
        points, known = eps_array(eps), self.ends(among)
        low, high = known.proven(points), known.not_broken(points)
        return RobustAccuracy(low, high) if points.ndim else RobustAccuracy(float(low), float(high))

    def guarantee(self, confidence: float = 0.95, among: str = "all", **options: Any) -> Guarantee:
        """A band for unseen inputs, for all ε at once; options are `population` and `evidence`.

        The inputs must be one row each: with one row per target class, select one target first.
        """
        self._one_row_each("guarantee")
        found = guarantee(self.ends(among), confidence, among=among, **options)
        counted = self if among == "all" else self.select(self.correct)
        known = counted.contents
        return found if known is None else replace(found, repeated=len(known) - np.unique(known).size)

    def class_guarantees(self, confidence: float = 0.95, among: str = "all") -> dict[int, Guarantee]:
        """One band per class; all of them hold together with the asked confidence."""
        parts = {key: part.ends(among) for key, part in self.by_class().items()}
        return class_guarantees(parts, confidence, among=among)

    def by_class(self) -> dict[int, Self]:
        """The distribution of each class of the inputs, by label."""
        if np.all(self.label < 0):
            raise InputError("by_class: expected a label for every instance, got none; give label=... to from_arrays")
        return {int(key): self.select(self.label == key) for key in np.unique(self.label)}

    def by_target(self) -> dict[int, Self]:
        """The distribution towards each target class (one-to-one); the key -1 holds rows without a target."""
        return {int(key): self.select(self.target == key) for key in np.unique(self.target)}

    def quantile(self, q: Any, confidence: float = 0.95, among: str = "all") -> Quantile:
        """The q-quantile of the radii with its intervals."""
        return quantile(self.ends(among), q, confidence)

    def mean(self, among: str = "all") -> Mean:
        """The mean radius as an interval."""
        return mean_radius(self.ends(among))

    def turnbull(self, among: str = "all") -> Turnbull:
        """Turnbull's estimate of the curve (an estimate only: time-outs depend on the radius)."""
        return turnbull(self.ends(among))

    def summary(self) -> Quality:
        """Counts, quality measures and means as one table."""
        return quality(self.lower, self.upper, self.status, self.cpu_seconds, self.wall_seconds)

    def compare(self, other: Distribution, **options: Any) -> Comparison:
        """What the data say about two networks: tests, effect sizes, dominance and crossings (see `comparison`)."""
        from radii.stats.comparison import compare

        return compare(self, other, **options)

    def to_frame(self) -> pd.DataFrame:
        """One row per input, as a pandas frame (NaN marks an absent end)."""
        import pandas as pd

        columns = {key: getattr(self, key) for key in _ROWS if getattr(self, key) is not None}
        return pd.DataFrame({"name": self.name, **columns}, index=range(len(self)))

    def _one_row_each(self, purpose: str) -> None:
        if np.unique(self.target).size > 1:
            raise InputError(
                f"{purpose}: expected one row per input, got rows for {np.unique(self.target).size} targets; "
                "use by_target() and take one"
            )
        if self.ids is not None and np.unique(self.ids).size < len(self):
            names, counts = np.unique(self.ids, return_counts=True)
            raise InputError(
                f"{purpose}: expected every input once, got {names[counts.argmax()]} {counts.max()} times; an input "
                "that is counted again says nothing new, so leave the others out"
            )


def _status(values: Sequence[str], correct: BoolArray) -> npt.NDArray[np.str_]:
    array = np.asarray(values, dtype=np.str_)
    unknown = sorted(set(array.tolist()) - set(STATUSES))
    if array.shape != correct.shape or unknown:
        raise InputError(f"status: expected {correct.size} of {', '.join(STATUSES)}, got {unknown or array.shape}")
    return np.where(correct, array, "misclassified")


def _texts(values: Any, name: str, n: int) -> npt.NDArray[np.str_]:
    array = np.asarray(values).astype(np.str_)
    if array.shape != (n,):
        raise InputError(f"{name}: expected {n} values, one per instance, got an array of shape {array.shape}")
    return array


def named(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """The same distributions, each carrying its key as its name."""
    return {key: replace(part, name=key) for key, part in distributions.items()}
