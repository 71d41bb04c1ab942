"""Rounding in the checker: what float64 can have lost, charged where it is lost.

A sum of n products, in any order, is off by at most γ_n = n·u / (1 − n·u) times the same sum of absolute values
(Higham 2002, section 3.1). Charges are computed in float64 too; `UP` covers that.
"""

from __future__ import annotations

import math

U = 2.0**-53
UP = 1.0 + 2.0**-20
TINY = 1e-280  # more than all underflow together can cost


def gamma(terms: int, unit: float = U) -> float:
    """γ of a sum of so many products and a few operations more; infinite where the sum is too long to say."""
    lost = (terms + 8) * unit
    if lost >= 0.5:
        return math.inf
    return lost / (1.0 - lost) * UP
