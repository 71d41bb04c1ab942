"""Prices: good multipliers λ of a cut, found once when evidence is made; the checker only evaluates them."""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.evidence.ball import Ball
from radii.evidence.proof import NODES, Sparse, hidden
from radii.evidence.sweep import Bound, Neurons

_STEPS = 7
GAIN = 0.002  # a tightening is kept if it gains at least this part of the end's distance from 0, or of the width


def choose(net: Neurons, ends: tuple[Tensor, Tensor], cut: Bound) -> Sparse:
    """For every node, the ends worth tightening under its cut and their multipliers."""
    low, high = ends[0].clone(), ends[1].clone()
    chosen: list[tuple[Tensor, Tensor, Tensor]] = []
    n = low.shape[1]
    for first, last in [block for block in net.blocks if block[1] <= n]:
        node, column = ((low[:, first:last] < 0) & (high[:, first:last] > 0)).nonzero().T
        column = column + first
        step = max(1, NODES // max(1, 2 * max(first, net.own.rows.a.shape[1])))
        for i in range(0, len(node), step):
            where = node[i : i + step].repeat(2), column[i : i + step].repeat(2)
            side = torch.arange(2).repeat_interleave(len(where[0]) // 2)
            bound = hidden(net, (low, high), *where, side, first)
            price, found = _best(net.ball, bound.a, bound.c, cut.a[where[0]], cut.c[where[0]])
            old = torch.where(side == 0, low[where], -high[where])
            width = high[where] - low[where]
            good = found > old + GAIN * width
            keep = good.nonzero()[:, 0]
            for turn, target in ((0, low), (1, high)):
                mine = keep[side[keep] == turn]
                target[where[0][mine], where[1][mine]] = (1 - 2 * turn) * found[mine]
            chosen.append((where[0][keep], 2 * where[1][keep] + side[keep], price[keep]))
    return _sorted(chosen, len(low))


def _sorted(chosen: list[tuple[Tensor, Tensor, Tensor]], nodes: int) -> Sparse:
    if not chosen:
        return Sparse(torch.zeros(nodes, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), torch.zeros(0).double())
    node, place, price = (torch.cat(part) for part in zip(*chosen))
    order = torch.argsort(node * (int(place.max()) + 1 if len(place) else 1) + place)
    # Kept as float32 in the file: what is used from here on is what the checker will read.
    value = price[order].to(torch.float32).to(torch.float64)
    return Sparse(torch.bincount(node, minlength=nodes), place[order], value)


def _best(ball: Ball, w: Tensor, k: Tensor, g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """A multiplier of each row by Kelley's method over the box, and about what it gives; in float32."""
    single = torch.float32
    middle, half = (0.5 * (ball.up - ball.down)).to(single), (0.5 * (ball.up + ball.down)).to(single)
    w, g = w.to(single), g.to(single)
    start, inner = w @ middle + k.to(single), g @ middle + c.to(single)
    gh = g * half
    size, reach = w.abs() @ half, gh.abs().sum(1)
    best, price = start - size, torch.zeros_like(start)
    first = inner - (torch.sign(w) * gh).sum(1)
    rising = (first > 0).nonzero()[:, 0]
    w, g, gh, inner, start = w[rising], g[rising], gh[rising], inner[rising], start[rising]
    at = size[rising] / reach[rising].clamp_min(1e-30)
    # Kelley: keep the tangents at both ends of the bracket and go to where they meet.
    left = (torch.zeros_like(at), best[rising], first[rising])
    right = (torch.full_like(at, torch.inf), torch.zeros_like(at), torch.zeros_like(at))
    for _ in range(_STEPS):
        mixed = torch.addcmul(w, at[:, None], g)
        slope = inner - (torch.sign(mixed) * gh).sum(1)
        value = start + at * inner - mixed.abs_() @ half
        better = value > best[rising]
        best[rising] = torch.where(better, value, best[rising])
        price[rising] = torch.where(better, at, price[rising])
        up, here = slope > 0, (at, value, slope)
        left, right = _either(up, here, left), _either(up, right, here)
        meet = (right[1] - left[1] + left[2] * left[0] - right[2] * right[0]) / (left[2] - right[2])
        inside = (meet > left[0]) & (meet < right[0])
        halfway = 0.5 * (left[0] + right[0])
        at = torch.where(right[0].isinf(), 4.0 * left[0], torch.where(inside, meet, halfway))
    return price.double(), best.double()


_Tangent = tuple[Tensor, Tensor, Tensor]  # where, value, slope


def _either(which: Tensor, a: _Tangent, b: _Tangent) -> _Tangent:
    return torch.where(which, a[0], b[0]), torch.where(which, a[1], b[1]), torch.where(which, a[2], b[2])
