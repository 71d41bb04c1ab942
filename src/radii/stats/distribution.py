"""The distribution of radii over a set of inputs: the object most users meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from radii._check import number
from radii.errors import InputError
from radii.stats._arrays import (
    ANY_TARGET,
    BoolArray,
    Ends,
    IntArray,
    ends_of,
    eps_array,
    integers,
    interval_columns,
)
from radii.stats.guarantee import Guarantee, class_guarantees, guarantee
from radii.stats.quality import STATUSES, Quality, derive_status, quality
from radii.stats.quantiles import Mean, Quantile, mean_radius, quantile
from radii.stats.sample import COSTS, Sample
from radii.stats.turnbull import Turnbull, turnbull

if TYPE_CHECKING:
    from radii.stats.comparison import Comparison


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
class Distribution(Sample):
    """Radii of n inputs as intervals; build it with `Distribution.from_arrays`.

    `lower` and `upper` hold NaN for an absent end; `label` and `target` hold -1 where there is none (a target of
    -1 means any other class). A misclassified input has radius 0 whatever its ends say. `keys` names the stored unit
    of each row, where there is one.
    """

    columns = ("lower", "upper", "label", "correct", "target", "status", *COSTS)

    target: IntArray = field(kw_only=True)

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
        low, high = interval_columns(lower, upper)
        n = low.size
        tolerance = number(details.pop("tolerance", 0.002), "tolerance", low=0.0)
        status = details.pop("status", None)
        known = cls._checked(n, correct, details, "target")
        right = known["correct"]
        return cls(
            lower=low,
            upper=high,
            label=np.full(n, -1) if label is None else integers(label, "label", n),
            target=np.full(n, ANY_TARGET) if target is None else integers(target, "target", n, ANY_TARGET),
            status=derive_status(low, high, right, tolerance) if status is None else _status(status, right),
            **known,
        )

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        return f"Distribution({name}n={len(self)}, correct={int(self.correct.sum())})"

    def ends(self, among: str = "all") -> Ends:
        """The known ends under one of the two definitions: "all" inputs, or only the "correct"ly classified."""
        return self._among(ends_of(self.lower, self.upper, self.correct), among)

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
        self.one_row_each("guarantee")
        counted = self if among == "all" else self.select(self.correct)
        return replace(guarantee(self.ends(among), confidence, among=among, **options), repeated=counted.repeated)

    def class_guarantees(self, confidence: float = 0.95, among: str = "all") -> dict[int, Guarantee]:
        """One band per class; all of them hold together with the asked confidence."""
        parts = {key: part.ends(among) for key, part in self.by_class().items()}
        return class_guarantees(parts, confidence, among=among)

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

    def one_row_each(self, purpose: str) -> None:
        """Raises where an input is there twice, or with several targets."""
        if np.unique(self.target).size > 1:
            raise InputError(
                f"{purpose}: expected one row per input, got rows for {np.unique(self.target).size} targets; "
                "use by_target() and take one"
            )
        super().one_row_each(purpose)


def _status(values: Sequence[str], correct: BoolArray) -> npt.NDArray[np.str_]:
    array = np.asarray(values, dtype=np.str_)
    unknown = sorted(set(array.tolist()) - set(STATUSES))
    if array.shape != correct.shape or unknown:
        raise InputError(f"status: expected {correct.size} of {', '.join(STATUSES)}, got {unknown or array.shape}")
    return np.where(correct, array, "misclassified")


def named(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """The same distributions, each carrying its key as its name."""
    return {key: replace(part, name=key) for key, part in distributions.items()}
