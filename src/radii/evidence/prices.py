"""Prices: good multipliers λ of a cut, found once when evidence is made; the checker only evaluates them."""

from __future__ import annotations

import torch
from torch import Tensor

from radii.evidence.ball import Ball
from radii.evidence.proof import NODES, Sparse, hidden
from radii.evidence.sweep import Bound, Neurons

_STEPS = 9
_GAIN = 0.02  # of an end's distance from 0 or of the width: what a tightening must bring to be kept


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
            good = found > old + _GAIN * width
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
    """A multiplier of each row by bisection on the slope over the box, and about what it gives; in float32."""
    single = torch.float32
    middle, half = (0.5 * (ball.up - ball.down)).to(single), (0.5 * (ball.up + ball.down)).to(single)
    w, g = w.to(single), g.to(single)
    start, inner = w @ middle + k.to(single), g @ middle + c.to(single)
    gh = g * half
    size, reach = w.abs() @ half, gh.abs().sum(1)
    best, price = start - size, torch.zeros_like(start)
    rising = (inner - (torch.sign(w) * gh).sum(1) > 0).nonzero()[:, 0]
    w, g, gh, inner, start = w[rising], g[rising], gh[rising], inner[rising], start[rising]
    low, high = torch.zeros_like(start), torch.full_like(start, torch.inf)
    at = size[rising] / reach[rising].clamp_min(1e-30)
    for _ in range(_STEPS):
        mixed = torch.addcmul(w, at[:, None], g)
        slope = inner - (torch.sign(mixed) * gh).sum(1)
        value = start + at * inner - mixed.abs() @ half
        better = value > best[rising]
        best[rising] = torch.where(better, value, best[rising])
        price[rising] = torch.where(better, at, price[rising])
        up = slope > 0
        low, high = torch.where(up, at, low), torch.where(up, high, at)
        at = torch.where(high.isinf(), 3.0 * at, 0.5 * (low + high))
    return price.double(), best.double()
