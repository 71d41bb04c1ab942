"""Decimals without exponents: the exact value of a float as VNN-LIB can say it, and back."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

from radii.errors import InputError

# Enough digits for the exact sum of any two floats in [2^-1074, 2^1024).
_DIGITS = 3000


def exact(value: float) -> str:
    """The value of the float, digit for digit; it reads back to the same float32 or float64.

    >>> exact(0.1)
    '0.1000000000000000055511151231257827021181583404541015625'
    >>> exact(-3.0)
    '-3.0'
    """
    if not math.isfinite(value):
        raise InputError(f"decimal: expected a finite number, got {value!r}; VNN-LIB cannot say it")
    return plain(Decimal(value))


def exact_sum(a: float, b: float) -> str:
    """a + b without rounding."""
    with localcontext() as context:
        context.prec = _DIGITS
        return plain(Decimal(a) + Decimal(b))


def plain(value: Decimal) -> str:
    """The decimal in positional notation with a digit on both sides of the point, as the 2.x grammar wants floats."""
    text = format(value, "f")
    if "." not in text:
        text += ".0"
    return text.lstrip("-") if not value else text
