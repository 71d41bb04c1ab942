"""Cuts: linear functions bounded over a box intersected with a half-space g·x + c ≤ 0.

An adversarial point inside a node meets the node's own linear bound, g·x + c ≤ 0. Over box ∩ half-space a row w·x + k
has the lower bound  max over λ ≥ 0 of  min over the box of (w + λg)·x + k + λc : a concave piecewise-linear function of
one number. Any λ is sound; a few steps of Kelley's method find nearly the best one. The compiled kernel needs numba
(the `fast` extra); without it the same steps run in torch.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radii.bounds.rounding import UP, gamma, unit_of

STEPS = 7


def lowest_under_cut(
    w: Tensor, k: Tensor, g: Tensor, c: Tensor, middle: Tensor, half: Tensor, wanted: Tensor | None = None
) -> Tensor:
    """Lower bounds of w·x + k over |x − middle| ≤ half with g·x + c ≤ 0.

    w is (nodes, rows, d), or (1, rows, d) when all nodes share the rows; k is (nodes, rows); g is (nodes, d); c is
    (nodes,); middle and half are (d,). All of one precision, whose rounding is charged. An empty intersection may
    give any value, +inf included. Rows that are not `wanted` (nodes, rows) cost nothing and get −inf.
    """
    wanted = torch.ones_like(k, dtype=torch.bool) if wanted is None else wanted
    kernel = _kernel() if w.device.type == "cpu" else None
    if kernel is None:
        return _torch(w, k, g, c, middle, half).masked_fill(~wanted, -torch.inf)
    out = np.empty(tuple(k.shape), dtype=k.numpy().dtype)
    kernel(
        w.contiguous().numpy(),
        k.contiguous().numpy(),
        g.contiguous().numpy(),
        c.contiguous().numpy(),
        middle.numpy(),
        half.numpy(),
        wanted.contiguous().numpy(),
        2.0 * gamma(w.shape[-1] + 4, unit_of(w.dtype)) * UP,
        STEPS,
        out,
    )
    return torch.from_numpy(out)


def _torch(w: Tensor, k: Tensor, g: Tensor, c: Tensor, middle: Tensor, half: Tensor) -> Tensor:
    size = (w.abs() * half).sum(-1)
    start = (w * middle).sum(-1) + k
    inner = (g * middle).sum(-1) + c
    reach = (g.abs() * half).sum(-1)
    low = torch.zeros_like(k)
    high = torch.full_like(k, torch.inf)
    best = start - size
    best_at = low.clone()
    at = (size / reach.clamp_min(1e-30)[:, None]).expand_as(k)
    for _ in range(2 * STEPS):
        mixed = w + at[..., None] * g[:, None]
        value = start + at * inner[:, None] - (mixed.abs() * half).sum(-1)
        slope = inner[:, None] - (torch.sign(mixed) * (g * half)[:, None]).sum(-1)
        better = value > best
        best, best_at = torch.where(better, value, best), torch.where(better, at, best_at)
        rising = slope > 0
        low, high = torch.where(rising, at, low), torch.where(rising, high, at)
        at = torch.where(high.isinf(), 4.0 * at, 0.5 * (low + high))
    total = (w.abs() * (middle.abs() + half)).sum(-1) + k.abs()
    total = total + best_at * ((g.abs() * (middle.abs() + half)).sum(-1) + c.abs())[:, None]
    return best - 2.0 * gamma(w.shape[-1] + 4, unit_of(w.dtype)) * UP * total


@cache
def _kernel() -> Callable[..., None] | None:
    if importlib.util.find_spec("numba") is None:
        return None
    import numba

    # Sums may be reordered (the charged γ holds for any order); NaN and infinity keep their meaning.
    flags = {"reassoc", "contract", "nsz", "arcp"}
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] = numba.njit(cache=True, fastmath=flags, nogil=True)

    @compiled
    def pieces(ws: Any, gs: Any, at: Any) -> Any:
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
                        spread, turn = pieces(ws, gs, at)
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

    return run
