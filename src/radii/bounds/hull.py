"""The hull of a ReLU over the ball of its inputs: upper lines of neurons whose inputs are the ball's own coordinates.

The triangle above relu(z), z = w·x + b, forgets which x gave z. Over a box the hull of {(x, relu(z))} has many more
facets (Anderson et al. 2020): with s_h = w_h·x_h − its least value, d_h the largest s_h and u the largest z, for any v
in [0, 1]^n

    relu(z) ≤ Σ v_h·s_h + max(0, u − Σ v_h·d_h)

and v_h = u / (u − l) is the triangle. In this form it is a line G·x + g with G = v∘w (Tjandraatmadja et al. 2020). For
*any* G the least offset is known, because relu is the greater of two linear functions:

    g = max( max of −G·x,  max of (w − G)·x + b )        over the ball

So G may be guessed and rounded at will; only g is proven, and it holds on balls of every norm.

Which v is best for an objective is a transport problem on a box. A coefficient −m_i < 0 of neuron i makes a supply
m_i·u_i. The coefficient q_h of x_h from everything else makes a capacity |q_h|·width_h, which neurons fill whose w_ih
has the sign of q_h, each with m_i·d_ih at most. A few rounds of scaling come near to it.
"""

from __future__ import annotations

import importlib.util
from functools import cache

import numpy as np

from radii._cpu import uncharged
from radii._torch import Tensor, torch
from radii.bounds.region import Region
from radii.bounds.rounding import TINY, U64, UP, gamma
from radii.bounds.tuning import DEFAULT

AT_ONCE = 16  # nodes whose slopes are in memory together where there is no kernel


def offsets(region: Region, slopes: Tensor, weights: Tensor, b: Tensor, slack: Tensor) -> Tensor:
    """g with relu(w·x + b ± slack) ≤ slopes·x + g on the ball, (objectives, n), rounding included; all in float64.

    `region` holds one ball; `slopes` is (objectives, n, d), `weights` (n, d), `b` and `slack` (n,).
    """
    count, n, d = slopes.shape
    magnitude = region.magnitude()[0]
    below = region.lowest(slopes.reshape(1, -1, d), slopes.new_zeros((1, count * n)))[0].reshape(count, n)
    less = slopes - weights
    above = region.lowest(less.reshape(1, -1, d), (-b).repeat(count)[None])[0].reshape(count, n)
    above = above - 2 * U64 * UP * (less.abs() @ magnitude)  # the difference of slopes was rounded
    found = slack - torch.minimum(below, above)
    return found + 8 * U64 * (found.abs() + slack) + TINY


def through_hulls(
    region: Region,
    rows: tuple[Tensor, Tensor, Tensor],
    cost: Tensor,
    linear: tuple[Tensor, Tensor],
    rounds: int,
    kernel: int = DEFAULT.hull_kernel,
    columns: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Linear lower bounds of a·x + c − cost·relu(w·x + b ± slack), cost ≥ 0, on the ball; all in float64.

    `rows` are w, b and slack of n neurons; `cost` is (nodes, n), `linear` are a (nodes, d) and c (nodes,). For every
    node slopes of its own are found, by the compiled kernel if there are more than `kernel` coefficients, which looks
    at few inputs of each neuron alone where `columns` names them (`few_columns`).
    """
    w, b, slack = rows
    down, up = (side[0] for side in region.box())
    error = gamma(len(w) + len(down) + 16) * UP
    if w.device.type == "cpu" and len(cost) * w.numel() > kernel and _has_kernel():
        return _compiled(rows, (down, up), cost, linear, rounds, error, columns)
    top = b + w.clamp_min(0.0) @ up - w.clamp_max(0.0) @ down
    found = []
    for m, a, c in zip(*(torch.split(part, AT_ONCE) for part in (cost, *linear))):
        # Of a layer with many neurons a few cost something, which need not be the same ones for two nodes.
        which = m.count_nonzero(0).nonzero()[:, 0]
        m, mine = m[:, which], (w[which], b[which], slack[which])
        width, most, fast, rest = (part.to(torch.float32) for part in (down + up, top[which], m, a))
        slopes = transport(mine[0].to(torch.float32), width, most, fast, rest, rounds).double()
        offset = offsets(region, slopes, *mine)
        total = ((m[..., None] * slopes.abs()).sum(1) + a.abs()) @ torch.maximum(down, up)
        total = total + c.abs() + (m * offset.abs()).sum(1)
        found.append((a - (m[..., None] * slopes).sum(1), c - (m * offset).sum(1) - error * total - TINY))
    return torch.cat([a for a, _ in found]), torch.cat([c for _, c in found])


def few_columns(weights: Tensor, part: float) -> Tensor | None:
    """The inputs (n, k) that neurons depend on, where these are at most so large a part of all; None elsewhere.

    A neuron with fewer than k repeats inputs whose weight is 0.
    """
    if not weights.numel():
        return None
    there = weights != 0  # NaN counts
    most = max(1, int(there.sum(1).max()))
    if most > part * weights.shape[1] or most == weights.shape[1]:
        return None
    row, column = there.nonzero(as_tuple=True)
    counts = there.sum(1)
    found = there.to(torch.int8).argmin(1)[:, None].repeat(1, most)
    found[row, torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]] = column
    return found


def _compiled(
    rows: tuple[Tensor, Tensor, Tensor],
    box: tuple[Tensor, Tensor],
    cost: Tensor,
    linear: tuple[Tensor, Tensor],
    rounds: int,
    error: float,
    columns: Tensor | None,
) -> tuple[Tensor, Tensor]:
    from radii.bounds._hull_kernel import bounds, bounds_few

    (w, b, slack), (down, up) = rows, box
    a, c = linear[0].clone(), linear[1].clone()
    if columns is None:
        top = b + w.clamp_min(0.0) @ up - w.clamp_max(0.0) @ down
    else:
        w = w.gather(1, columns)
        top = b + (w.clamp_min(0.0) * up[columns]).sum(1) - (w.clamp_max(0.0) * down[columns]).sum(1)
    asked = (w.to(torch.float32), w, b, slack, down, up, top.to(torch.float32), cost)
    numbers = *(part.contiguous().numpy() for part in asked), rounds, error, a.numpy(), c.numpy()
    if columns is None:
        bounds(*numbers)
    else:
        bounds_few(columns.numpy(), *numbers)
    return a, c


def transport(weights: Tensor, width: Tensor, top: Tensor, cost: Tensor, rest: Tensor, rounds: int) -> Tensor:
    """Good slopes G = v∘w for every node and neuron, (nodes, n, d); nothing about them is proven.

    `weights` (n, d) are the neurons' rows, `width` (d,) the box's, `top` (n,) the neurons' largest values; `cost`
    (nodes, n) are m ≥ 0, `rest` (nodes, d) is q. What no flow reaches is lifted evenly until Σ v·d = u, which lowers
    the line everywhere: without any flow it is the triangle.
    """
    size, room = weights.abs() * width, rest.abs() * width
    v = (weights * rest[:, None] * cost[..., None] > 0).to(weights.dtype)
    for _ in range(rounds):
        full = (v * size).sum(2, keepdim=True)
        v = (v * torch.where(full > 0, top[:, None] / full.clamp_min(1e-30), 0.0)).clamp_max(1.0)
        fall = (cost[..., None] * v * size).sum(1, keepdim=True)
        v = v * torch.where(fall > room[:, None], room[:, None] / fall.clamp_min(1e-30), 1.0)
    full = (v * size).sum(2, keepdim=True)
    whole = size.sum(1)[:, None] - full
    lift = torch.where(whole > 0, (top[:, None] - full) / whole.clamp_min(1e-30), 0.0).clamp(0.0, 1.0)
    return (v + lift * (1.0 - v)) * weights


@cache
def _has_kernel() -> bool:
    """Whether the compiled rounds can be used; loading them takes a while, so on first use."""
    if importlib.util.find_spec("numba") is None:
        return False
    with uncharged():
        try:
            from radii.bounds._hull_kernel import bounds

            one, row = np.ones(1), np.ones((1, 1))
            thin = row.astype(np.float32), one.astype(np.float32)
            bounds(thin[0], row, one, one, one, one, thin[1], row, 1, 0.0, row.copy(), one.copy())
        except (ImportError, OSError, MemoryError):  # as in `cuts.py`
            return False
    return True
