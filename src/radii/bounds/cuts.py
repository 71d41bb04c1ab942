"""Cuts: linear functions bounded over a box intersected with a half-space g·x + c ≤ 0.

An adversarial point inside a node meets the node's own linear bound, g·x + c ≤ 0. Over box ∩ half-space a row w·x + k
has the lower bound  max over λ ≥ 0 of  min over the box of (w + λg)·x + k + λc : a concave piecewise-linear function of
one number. Any λ is sound; a few steps of Kelley's method find nearly the best one. The compiled kernel needs numba
(the `fast` extra); without it the same steps run in torch.
"""

from __future__ import annotations

import importlib.util
from functools import cache

import numpy as np

from radii._cpu import uncharged
from radii._torch import Tensor, torch
from radii.bounds.rounding import UP, gamma, unit_of
from radii.bounds.tuning import DEFAULT, Bounding


def lowest_under_cut(
    w: Tensor,
    k: Tensor,
    g: Tensor,
    c: Tensor,
    middle: Tensor,
    half: Tensor,
    wanted: Tensor | None = None,
    tuning: Bounding = DEFAULT,
) -> Tensor:
    """Lower bounds of w·x + k over |x − middle| ≤ half with g·x + c ≤ 0.

    w is (nodes, rows, d), or (1, rows, d) when all nodes share the rows; k is (nodes, rows); g is (nodes, d); c is
    (nodes,); middle and half are (d,). All of one precision, whose rounding is charged. An empty intersection may
    give any value, +inf included. Rows that are not `wanted` (nodes, rows) cost nothing and get −inf.
    """
    wanted = torch.ones_like(k, dtype=torch.bool) if wanted is None else wanted
    if w.device.type != "cpu" or k.numel() * w.shape[-1] <= tuning.cut_kernel or not _has_kernel(w.dtype):
        return _torch(w, k, g, c, middle, half, tuning.cut_steps).masked_fill(~wanted, -torch.inf)
    return _compiled(w, k, g, c, middle, half, wanted, tuning.cut_steps)


def _compiled(
    w: Tensor, k: Tensor, g: Tensor, c: Tensor, middle: Tensor, half: Tensor, wanted: Tensor, steps: int
) -> Tensor:
    from radii.bounds._cut_kernel import run

    out = np.empty(tuple(k.shape), dtype=k.numpy().dtype)
    run(
        w.contiguous().numpy(),
        k.contiguous().numpy(),
        g.contiguous().numpy(),
        c.contiguous().numpy(),
        middle.numpy(),
        half.numpy(),
        wanted.contiguous().numpy(),
        2.0 * gamma(w.shape[-1] + 4, unit_of(w.dtype)) * UP,
        steps,
        out,
    )
    return torch.from_numpy(out)


def _torch(
    w: Tensor, k: Tensor, g: Tensor, c: Tensor, middle: Tensor, half: Tensor, steps: int = DEFAULT.cut_steps
) -> Tensor:
    size = (w.abs() * half).sum(-1)
    start = (w * middle).sum(-1) + k
    inner = (g * middle).sum(-1) + c
    reach = (g.abs() * half).sum(-1)
    best, best_at = start - size, torch.zeros_like(k)
    # Kelley: keep the tangents at both ends of the bracket, go to where they meet.
    slope = inner[:, None] - (torch.sign(w) * (g * half)[:, None]).sum(-1)
    low, high = torch.stack([best_at, best, slope]), torch.stack([best_at + torch.inf, best_at, best_at])
    at = (size / reach.clamp_min(1e-30)[:, None]).expand_as(k)
    for _ in range(steps):
        mixed = w + at[..., None] * g[:, None]
        value = start + at * inner[:, None] - (mixed.abs() * half).sum(-1)
        slope = inner[:, None] - (torch.sign(mixed) * (g * half)[:, None]).sum(-1)
        better = value > best
        best, best_at = torch.where(better, value, best), torch.where(better, at, best_at)
        rising, here = slope > 0, torch.stack([at, value, slope])
        low, high = torch.where(rising, here, low), torch.where(rising, high, here)
        meet = (high[1] - low[1] + low[2] * low[0] - high[2] * high[0]) / (low[2] - high[2])
        inside = (meet > low[0]) & (meet < high[0])
        at = torch.where(high[0].isinf(), 4.0 * at, torch.where(inside, meet, at))
    total = (w.abs() * (middle.abs() + half)).sum(-1) + k.abs()
    total = total + best_at * ((g.abs() * (middle.abs() + half)).sum(-1) + c.abs())[:, None]
    return best - 2.0 * gamma(w.shape[-1] + 4, unit_of(w.dtype)) * UP * total


@cache
def _has_kernel(dtype: torch.dtype) -> bool:
    """Whether there is a compiled kernel for this precision: loading it takes most of a second, so on first use."""
    if importlib.util.find_spec("numba") is None:
        return False
    with uncharged():
        row, one = torch.ones((1, 1), dtype=dtype), torch.ones(1, dtype=dtype)
        try:
            _compiled(row[None], row, row, one, one, one, row.bool(), 1)
        except (ImportError, OSError, MemoryError):  # numba for another numpy, or too little memory for its compiler
            return False
    return True
