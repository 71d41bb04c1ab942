"""The cut's inner loop, compiled: importing this needs numba.

Functions of a module, not of another function: numba finds the latter in its cache in no later process, compiles them
again and keeps another copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

# Sums may be reordered (the charged γ holds for any order); NaN and infinity keep their meaning.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as machine code, kept for later processes where there is a place to keep it."""
    try:
        found: Callable[..., Any] = numba.njit(cache=True, fastmath=FLAGS, nogil=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        found = numba.njit(fastmath=FLAGS, nogil=True)(function)
    return found


@compiled
def _pieces(ws: Any, gs: Any, at: Any) -> Any:
    value = at - at
    slope = at - at
    for i in range(ws.shape[0]):
        mixed = ws[i] + at * gs[i]
        value += abs(mixed)
        slope += gs[i] if mixed > 0 else -gs[i]
    return value, slope


@compiled
def run(
    w: Any, k: Any, g: Any, c: Any, middle: Any, half: Any, wanted: Any, rounding: float, steps: int, out: Any
) -> None:
    # Numbers of the arrays' own precision throughout: mixed ones would halve the width of the vector units.
    number = w.dtype.type
    nodes, rows = k.shape
    d = g.shape[1]
    shared = w.shape[0] == 1
    gs, ws, far = np.empty(d, w.dtype), np.empty(d, w.dtype), np.abs(middle) + half
    for n in range(nodes):
        inner, outer, reach = c[n], abs(c[n]), number(0)
        for i in range(d):
            gs[i] = g[n, i] * half[i]
            inner += g[n, i] * middle[i]
            outer += abs(g[n, i]) * far[i]
            reach += abs(gs[i])
        for r in range(rows):
            if not wanted[n, r]:
                out[n, r] = -np.inf
                continue
            row = w[0, r] if shared else w[n, r]
            start, total, size, slope0 = k[n, r], abs(k[n, r]), number(0), number(0)
            for i in range(d):
                scaled = row[i] * half[i]
                ws[i] = scaled
                start += row[i] * middle[i]
                total += abs(row[i]) * far[i]
                size += abs(scaled)
                slope0 += gs[i] if scaled > 0 else -gs[i]
            best = start - size
            best_at = number(0)
            rise = inner - slope0
            if rise > 0 and reach > 0:
                # Kelley: keep the tangents at both ends of the bracket, go to where they meet.
                low, low_value, low_slope = number(0), best, rise
                high, high_value, high_slope = size / reach, number(0), number(0)
                have = False
                at = high
                for _ in range(steps):
                    spread, turn = _pieces(ws, gs, at)
                    value = start + at * inner - spread
                    slope = inner - turn
                    if value > best:
                        best, best_at = value, at
                    if slope > 0:
                        low, low_value, low_slope = at, value, slope
                        if not have:
                            at *= number(4)
                            continue
                    else:
                        high, high_value, high_slope = at, value, slope
                        have = True
                        if slope == 0:
                            break
                    denominator = low_slope - high_slope
                    if not denominator > 0:
                        break
                    meet = (high_value - low_value + low_slope * low - high_slope * high) / denominator
                    if not (meet > low and meet < high):
                        break
                    at = meet
            out[n, r] = best - rounding * (total + best_at * outer)
