"""Rounding that never claims more than is known: lower ends down, upper ends up."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def down(value: float, digits: int = 6) -> float:
    """The value with so many digits, not above it."""
    return _short(value, -1, digits)


def up(value: float, digits: int = 6) -> float:
    """The value with so many digits, not below it."""
    return _short(value, 1, digits)


def down32(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The values in 32 bits, none above its own; NaN stays."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float32)


def up32(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The values in 32 bits, none below its own; NaN stays."""
    return -down32(-values)


def _short(value: float, side: int, digits: int) -> float:
    short = float(f"{value:.{digits}g}")
    if value == 0 or (short - value) * side >= 0:
        return short
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return float(f"{short + side * unit:.{digits}g}")
