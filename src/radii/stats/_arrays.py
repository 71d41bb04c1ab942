"""Validated, normalised arrays: the one edge at which the statistics check what they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from radii._check import choice, number
from radii.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Among = Literal["all", "correct"]

ANY_TARGET = -1
DEFINITIONS = {
    "all": "robust accuracy over all inputs (a misclassified input has radius 0 and counts)",
    "correct": "robust accuracy among correctly classified inputs (misclassified inputs left out)",
}


@dataclass(frozen=True)
class Ends:
    """What is known of n radii, without absent values: proven at every ε ≤ `low`, broken at every ε ≥ `high`.

    `low` is -inf for a misclassified input and 0 where nothing was proven; `high` is +inf where no witness is
    known. Where both ends are equal (an exact radius) `high` is the next float up, so that low < high always.
    """

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return int(self.low.size)

    def proven(self, eps: FloatArray) -> FloatArray:
        """The share of inputs proven robust at each ε."""
        return np.asarray((len(self) - np.searchsorted(np.sort(self.low), eps, side="left")) / len(self))

    def not_broken(self, eps: FloatArray) -> FloatArray:
        """The share of inputs without a witness at each ε."""
        return np.asarray((len(self) - np.searchsorted(np.sort(self.high), eps, side="right")) / len(self))

    def radii(self) -> tuple[FloatArray, FloatArray]:
        """Both ends as radii: equal for an exact radius, 0 for a misclassified input, +inf for an absent upper end."""
        wrong = np.isneginf(self.low)
        low = np.where(wrong, 0.0, self.low)
        exact = self.high <= np.nextafter(low, np.inf)
        return low, np.where(wrong | exact, low, self.high)

    def take(self, rows: npt.NDArray[Any]) -> Ends:
        """The ends of the chosen rows (a mask or indices)."""
        return Ends(self.low[rows], self.high[rows])


def column(values: Any, name: str, size: int | None = None) -> FloatArray:
    """A one-dimensional float array of the asked size; None inside becomes NaN."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected numbers (NaN for an absent end), got {_brief(values)}") from None
    if array.ndim != 1:
        raise InputError(f"{name}: expected one value per instance, got an array of shape {array.shape}")
    if size is not None and array.size != size:
        raise InputError(f"{name}: expected {size} values, one per instance, got {array.size}")
    return array


def integers(values: Any, name: str, size: int, absent: int | None = None) -> IntArray:
    """A one-dimensional int64 array of the asked size; NaN or None become `absent` where that is allowed."""
    array = column(values, name, size)
    missing = np.isnan(array)
    if missing.any() and absent is None:
        raise InputError(f"{name}: expected a whole number for every instance, got none at row {_first(missing)}")
    whole = np.where(missing, float(absent or 0), array)
    if not np.all(np.isfinite(whole)) or not np.array_equal(whole, np.rint(whole)):
        raise InputError(f"{name}: expected whole numbers, got {_brief(values)}")
    return whole.astype(np.int64)


def booleans(values: Any, name: str, size: int) -> BoolArray:
    """A boolean array of the asked size, from booleans or from 0 and 1."""
    array = column(values, name, size)
    if not np.all((array == 0) | (array == 1)):
        raise InputError(f"{name}: expected true or false for every instance, got {_brief(values)}")
    return array.astype(np.bool_)


def interval_columns(lower: Any, upper: Any) -> tuple[FloatArray, FloatArray]:
    """Both ends, checked: finite lower ends, upper ends where an infinite one counts as absent, lower ≤ upper."""
    low = column(lower, "lower")
    if low.size == 0:
        raise InputError("lower: expected at least one instance, got none")
    high = column(upper, "upper", low.size) if upper is not None else np.full(low.size, np.nan)
    high = np.where(np.isposinf(high), np.nan, high)
    for name, array in (("lower", low), ("upper", high)):
        bad = np.isinf(array) | (array < 0)
        if bad.any():
            row = _first(bad)
            raise InputError(
                f"{name}: expected a finite radius of at least 0 (NaN if absent), got {array[row]} at row {row}"
            )
    crossed = low > high
    if crossed.any():
        row = _first(crossed)
        raise InputError(
            f"lower: expected at most upper, got {low[row]:g} > {high[row]:g} at row {row} "
            f"({int(crossed.sum())} such rows): a proof and a witness contradict each other; leave those rows out"
        )
    return low, high


def ends_of(lower: FloatArray, upper: FloatArray, correct: BoolArray | None = None) -> Ends:
    """The `Ends` of checked columns."""
    low = np.where(np.isnan(lower), 0.0, lower)
    high = np.where(np.isnan(upper), np.inf, upper)
    high = np.where(high <= low, np.nextafter(low, np.inf), high)
    if correct is not None:
        low = np.where(correct, low, -np.inf)
        high = np.where(correct, high, 0.0)
    return Ends(low, high)


def radius_ends(lower: Any, upper: Any = None) -> Ends:
    """The `Ends` of any two columns of radii; one column alone means exact radii."""
    low, high = interval_columns(lower, lower if upper is None else upper)
    return ends_of(low, high)


def eps_array(eps: Any) -> FloatArray:
    """An array of ε values, each finite and at least 0."""
    if isinstance(eps, str):
        return np.asarray(number(eps, "epsilon", low=0.0))
    try:
        array = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"epsilon: expected numbers of at least 0, got {_brief(eps)}") from None
    if not np.all(np.isfinite(array)) or np.any(array < 0):
        raise InputError(f"epsilon: expected finite numbers of at least 0, got {_brief(eps)}")
    return array


def largest_end(*sets: Ends) -> float:
    """The largest finite end of any of the sets: where the curves stop being informative (1 if there is none)."""
    values = np.concatenate([np.concatenate(ends.radii()) for ends in sets])
    top = float(values[np.isfinite(values)].max(initial=0.0))
    return top if top > 0 else 1.0


def level(confidence: Any) -> float:
    """The error probability 1 - confidence of a confidence strictly between 0 and 1."""
    value = number(confidence, "confidence", low=0.0, high=1.0, strict=True)
    if value >= 1.0:
        raise InputError(f"confidence: expected a number below 1 (such as 0.95), got {confidence!r}")
    return 1.0 - value


def definition(among: Any) -> Among:
    """One of the two definitions of robust accuracy, by its name."""
    return "all" if choice(among, "among", DEFINITIONS) == "all" else "correct"


def _first(mask: BoolArray) -> int:
    return int(np.flatnonzero(mask)[0])


def _brief(values: Any) -> str:
    text = repr(values).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."
