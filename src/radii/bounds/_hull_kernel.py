"""The transport between neurons and inputs, and the bound that comes of it, compiled: importing this needs numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from radii.bounds._cut_kernel import compiled
from radii.bounds.rounding import TINY


@compiled
def scaled(weights: Any, sizes: Any, room: Any, top: Any, cost: Any, rest: Any, rounds: int, v: Any, fall: Any) -> None:
    """The slopes v∘w of one objective; rows of neurons that cost nothing are left alone."""
    number = weights.dtype.type
    one, zero = number(1), number(0)
    n, d = weights.shape
    for i in range(n):
        if cost[i] > zero:
            for h in range(d):
                v[i, h] = one if weights[i, h] * rest[h] > zero else zero
    for turn in range(rounds + 1):
        for h in range(d):
            # How much of each column may stay; of a first round all.
            fall[h] = room[h] / fall[h] if turn > 0 and fall[h] > room[h] else one
        keep = fall.copy()
        fall[:] = zero
        for i in range(n):
            if not cost[i] > zero:
                continue
            full, whole = zero, zero
            for h in range(d):
                v[i, h] *= keep[h]
                full += v[i, h] * sizes[i, h]
                whole += sizes[i, h]
            if turn < rounds:
                scale = top[i] / full if full > zero else zero
                for h in range(d):
                    v[i, h] = min(v[i, h] * scale, one)
                    fall[h] += cost[i] * v[i, h] * sizes[i, h]
            else:
                lift = (top[i] - full) / (whole - full) if whole > full else zero
                lift = min(max(lift, zero), one)
                for h in range(d):
                    v[i, h] = (v[i, h] + lift * (one - v[i, h])) * weights[i, h]


@compiled
def bounds(
    thin: Any, wide: Any, b: Any, slack: Any, down: Any, up: Any, top: Any, cost: Any, rounds: int,
    error: float, a: Any, c: Any,
) -> None:  # fmt: skip
    """Lowers a·x + c − cost·relu(z) to a linear function, in place: slopes in float32, what is proven in float64.

    `error` is γ of sums over neurons and inputs; every sum is charged with that part of its absolute terms.
    """
    n, d = thin.shape
    width = (down + up).astype(thin.dtype)
    sizes = np.abs(thin) * width
    far = np.maximum(down, up)
    v, fall = np.empty_like(thin), np.empty_like(width)
    for o in range(cost.shape[0]):
        rest = a[o].astype(thin.dtype)
        scaled(thin, sizes, np.abs(rest) * width, top, cost[o].astype(thin.dtype), rest, rounds, v, fall)
        total, least = 0.0, abs(c[o])
        for h in range(d):
            total += abs(a[o, h]) * far[h]
        for i in range(n):
            m = cost[o, i]
            if not thin.dtype.type(m) > 0:
                if m != 0.0:  # too small for float32, or no number: nothing is said
                    c[o] = -np.inf
                continue
            below, above, reach = 0.0, 0.0, 0.0
            for h in range(d):
                g = np.float64(v[i, h])
                e = wide[i, h] - g
                below += g * down[h] if g > 0 else -g * up[h]
                above += e * up[h] if e > 0 else -e * down[h]
                reach += abs(g) * far[h]
                a[o, h] -= m * g
            offset = max(below, above + b[i]) + slack[i] + error * (below + above + abs(b[i]) + slack[i])
            c[o] -= m * offset
            least += m * abs(offset)
            total += m * reach
        c[o] -= error * (total + least) + TINY


@compiled
def scaled_few(
    columns: Any, weights: Any, sizes: Any, room: Any, top: Any, cost: Any, rest: Any, rounds: int, v: Any, fall: Any
) -> None:
    """The same for rows that are 0 outside of their few `columns`: everything (n, k) is about those alone."""
    number = weights.dtype.type
    one, zero = number(1), number(0)
    n, k = weights.shape
    for i in range(n):
        if cost[i] > zero:
            for p in range(k):
                v[i, p] = one if weights[i, p] * rest[columns[i, p]] > zero else zero
    for turn in range(rounds + 1):
        for h in range(len(rest)):
            fall[h] = room[h] / fall[h] if turn > 0 and fall[h] > room[h] else one
        keep = fall.copy()
        fall[:] = zero
        for i in range(n):
            if not cost[i] > zero:
                continue
            full, whole = zero, zero
            for p in range(k):
                v[i, p] *= keep[columns[i, p]]
                full += v[i, p] * sizes[i, p]
                whole += sizes[i, p]
            if turn < rounds:
                scale = top[i] / full if full > zero else zero
                for p in range(k):
                    v[i, p] = min(v[i, p] * scale, one)
                    fall[columns[i, p]] += cost[i] * v[i, p] * sizes[i, p]
            else:
                lift = (top[i] - full) / (whole - full) if whole > full else zero
                lift = min(max(lift, zero), one)
                for p in range(k):
                    v[i, p] = (v[i, p] + lift * (one - v[i, p])) * weights[i, p]


@compiled
def bounds_few(
    columns: Any, thin: Any, wide: Any, b: Any, slack: Any, down: Any, up: Any, top: Any, cost: Any, rounds: int,
    error: float, a: Any, c: Any,
) -> None:  # fmt: skip
    """`bounds` for rows that are 0 outside of their few `columns`: sums of the same numbers, without zeros."""
    n, k = thin.shape
    width = (down + up).astype(thin.dtype)
    sizes = np.empty_like(thin)
    for i in range(n):
        for p in range(k):
            sizes[i, p] = abs(thin[i, p]) * width[columns[i, p]]
    far = np.maximum(down, up)
    v, fall = np.empty_like(thin), np.empty_like(width)
    for o in range(cost.shape[0]):
        rest = a[o].astype(thin.dtype)
        mine = cost[o].astype(thin.dtype)
        scaled_few(columns, thin, sizes, np.abs(rest) * width, top, mine, rest, rounds, v, fall)
        total, least = 0.0, abs(c[o])
        for h in range(len(far)):
            total += abs(a[o, h]) * far[h]
        for i in range(n):
            m = cost[o, i]
            if not mine[i] > 0:
                if m != 0.0:  # too small for float32, or no number: nothing is said
                    c[o] = -np.inf
                continue
            below, above, reach = 0.0, 0.0, 0.0
            for p in range(k):
                h = columns[i, p]
                g = np.float64(v[i, p])
                e = wide[i, p] - g
                below += g * down[h] if g > 0 else -g * up[h]
                above += e * up[h] if e > 0 else -e * down[h]
                reach += abs(g) * far[h]
                a[o, h] -= m * g
            offset = max(below, above + b[i]) + slack[i] + error * (below + above + abs(b[i]) + slack[i])
            c[o] -= m * offset
            least += m * abs(offset)
            total += m * reach
        c[o] -= error * (total + least) + TINY
