"""How good a distribution is: the measures of the JAIR paper's Tables 2, 3, 5 and 8–10, with nothing invented."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from radii.stats._arrays import BoolArray, FloatArray

STATUSES = ("closed", "open", "misclassified", "unsolved", "robust")
_SLACK = 1e-9  # a grid step such as 0.005 - 0.003 is not exactly 0.002 in binary


def derive_status(
    lower: FloatArray, upper: FloatArray, correct: BoolArray, tolerance: float
) -> np.ndarray[Any, np.dtype[np.str_]]:
    """The status of each radius from its ends: closed, open, misclassified, unsolved or robust."""
    no_low, no_high = np.isnan(lower), np.isnan(upper)
    closed = upper - np.where(no_low, 0.0, lower) <= tolerance + _SLACK
    conditions = [~correct, no_low & no_high, no_high, closed]
    return np.select(conditions, ["misclassified", "unsolved", "robust", "closed"], default="open")


@dataclass(frozen=True)
class Quality:
    """Counts and measures of one set of radii; None where the data do not say.

    `lowest` and `mean_lower` are over correctly classified inputs with a proven lower end, as in the paper;
    `mean_gap` is over inputs with both ends. Shares are in [0, 1] of the correctly classified inputs.
    """

    n: int
    correct: int
    accuracy: float
    closed: int
    open: int
    robust: int
    unsolved: int
    misclassified: int
    critical_share: float | None
    unsolved_share: float | None
    mean_gap: float | None
    largest_gap: float | None
    lowest: float | None
    mean_lower: float | None
    std_lower: float | None
    mean_upper: float | None
    cpu_seconds: float | None
    wall_seconds: float | None

    def as_dict(self) -> dict[str, Any]:
        """The measures by name."""
        return asdict(self)

    def table(self) -> list[tuple[str, str]]:
        """The measures as rows of text, "-" where the data do not say."""
        return [(f.name.replace("_", " "), _text(getattr(self, f.name))) for f in fields(self)]

    def __str__(self) -> str:
        """The table, one measure per line."""
        rows = self.table()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def quality(
    lower: FloatArray,
    upper: FloatArray,
    status: np.ndarray[Any, np.dtype[np.str_]],
    cpu_seconds: FloatArray | None = None,
    wall_seconds: FloatArray | None = None,
) -> Quality:
    """The quality measures of checked columns (NaN = absent).

    A critical termination is an instance whose search ended with a gap wider than its tolerance (`open`): some
    query between its ends was not answered. Tables 2 and 3 of the paper count it over correctly classified inputs.
    """
    counts = {name: int(np.sum(status == name)) for name in STATUSES}
    right = status != "misclassified"
    correct = int(right.sum())
    low = lower[right & ~np.isnan(lower)]
    high = upper[right & ~np.isnan(upper)]
    both = right & ~np.isnan(lower) & ~np.isnan(upper)
    gaps = upper[both] - lower[both]
    return Quality(
        n=int(status.size),
        correct=correct,
        accuracy=correct / status.size,
        critical_share=counts["open"] / correct if correct else None,
        unsolved_share=counts["unsolved"] / correct if correct else None,
        mean_gap=_mean(gaps),
        largest_gap=float(gaps.max()) if gaps.size else None,
        lowest=float(low.min()) if low.size else None,
        mean_lower=_mean(low),
        std_lower=float(low.std(ddof=1)) if low.size > 1 else None,
        mean_upper=_mean(high),
        cpu_seconds=_total(cpu_seconds),
        wall_seconds=_total(wall_seconds),
        **counts,
    )


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if values.size else None


def _total(values: FloatArray | None) -> float | None:
    if values is None or np.isnan(values).all():
        return None
    return float(np.nansum(values))


def _text(value: float | int | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
