"""Hulls in the checker: upper lines of the first undecided ReLUs that know which inputs gave z, where a chord forgets.

Such a neuron is z = w·δ + b, with δ in a box. With *any* v in [0, 1]^d and G = v∘w

    relu(z) ≤ G·δ + g,    g = max( max of −G·δ, max of (w − G)·δ + b )    over the box,

since relu(z) is 0 or z. So v may be chosen at will, and a file says only of which bounds these lines are part. The
checker finds v itself: storing it would take d numbers per neuron and node, finding it takes a few products. What the
lines cost a row is a transport from neurons, which supply their largest z, to inputs, which take as much as their
coefficients in the rest of the row. Rows are scaled to their supply, columns down to what they take, in turns. Columns
come first and all is in float64, so that v hardly moves when the numbers it is found from were rounded otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.evidence.ball import Ball
from radii.evidence.rounding import TINY, UP, gamma
from radii.evidence.sweep import Bound, Charged, Neurons, overlooking

ROUNDS = 6  # part of the format: other slopes might not prove what a file claims
AT_ONCE = 2**17  # coefficients of slopes that are in memory at once: few enough for the caches


@dataclass(frozen=True, eq=False)
class Hulls:
    """The neurons of a network's first block over the box of a ball."""

    net: Neurons
    ball: Ball
    weights: Tensor  # (n, d)
    sizes: Tensor  # (n, d) how much each input moves each neuron, above 0
    whole: Tensor  # (n,) all inputs together
    high: Tensor  # (n,) the largest z, off by less than the charge
    charge: Tensor  # (n,) what computing the offset of a line can have lost

    @staticmethod
    def of(net: Neurons, ball: Ball) -> Hulls:
        """The hulls over a ball that lies in that of `net`; of no neurons where nothing is undecided."""
        n = net.blocks[0][1] if net.blocks else 0
        own = net.own.rows
        w, b = own.a[:n], own.b[:n]
        size = w.abs()
        sizes = (size * (2.0 * ball.half)).clamp_min(1e-290)
        lost = 8 * gamma(2 * w.shape[1]) * (net.own.size[:n] + b.abs()) * UP
        high = b + w @ ball.middle + size @ ball.half
        return Hulls(net, ball, w, sizes, sizes.sum(1), high, net.own.charge[:n] + lost + TINY)

    def __len__(self) -> int:
        return len(self.high)

    def sweep(self, asked: Charged, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor | None = None) -> Bound:
        """`sweep` with these lines above the first block's undecided neurons; it holds on the ball of the hulls."""
        bound, cost = overlooking(self.net, asked, ends, alpha, beta, len(self))
        return self.lowered(bound, cost)

    def lowered(self, bound: Bound, cost: Tensor) -> Bound:
        """A linear lower bound of bound − cost·relu(z), for costs (rows, n) ≥ 0."""
        needed = cost != 0.0  # NaN is needed, and then says nothing
        count = needed.sum(1)
        most = int(count.max()) if len(cost) else 0
        if not most:
            return bound
        ranked = needed.to(torch.int8).argsort(dim=1, descending=True, stable=True)
        order = torch.argsort(count)
        a, c, size = bound.a.clone(), bound.c.clone(), bound.size.clone()
        for part in torch.split(order, max(1, AT_ONCE // (most * self.weights.shape[1]))):
            which = ranked[part, : int(count[part[-1]])]
            if which.shape[1]:
                mine, paid = bound.pick(part), cost[part].gather(1, which)
                lines = self.lines(which, self.shares(which, paid, mine.a))
                a[part], c[part], size[part] = self._less(mine, which, paid, lines)
        return Bound(a, c, size)

    def lines(self, which: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """G and g of neurons (rows, m) for any v (rows, m, d) in [0, 1], rounding included."""
        slopes = v.mul_(self.weights[which])  # rounded, but never beyond w: |w − G| is |w| − |G|
        even, spread = slopes @ self.ball.middle, slopes.abs() @ self.ball.half
        offset = torch.maximum(spread - even, self.high[which] - even - spread)
        return slopes, offset + self.charge[which]

    def shares(self, which: Tensor, cost: Tensor, rest: Tensor) -> Tensor:
        """Good v (rows, m, d) for neurons (rows, m) that cost so much, beside coefficients `rest` (rows, d).

        What the transport does not reach is raised evenly until v·sizes is the largest z, which lowers the line
        everywhere: without any transport it is the chord.
        """
        sizes, supply = self.sizes[which], self.high[which].clamp_min(0.0)[..., None]
        flow = torch.where(self.weights[which] * rest[:, None] > 0, sizes, torch.zeros_like(sizes))
        room = rest.abs() * (2.0 * self.ball.half)
        for turn in range(ROUNDS + 1):
            taken = (cost[:, None] @ flow)[:, 0]
            keep = torch.where(taken > room, room / taken, torch.ones_like(room))
            flow.mul_(keep[:, None])
            full = flow.sum(2, keepdim=True)
            if turn < ROUNDS:
                flow.mul_(torch.where(full > 0, supply / full, torch.zeros_like(full)))
                torch.minimum(flow, sizes, out=flow)
        left = self.whole[which][..., None] - full
        lift = torch.where(left > 0, (supply - full) / left, torch.zeros_like(left)).clamp(0.0, 1.0)
        return flow.div_(sizes).mul_(1.0 - lift).add_(lift).clamp_(0.0, 1.0)

    def _less(
        self, bound: Bound, which: Tensor, cost: Tensor, lines: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        slopes, offset = lines
        moved = (cost * self.net.own.size[which]).sum(1)
        total = bound.size + moved + bound.c.abs() + (cost * offset.abs()).sum(1)
        a = bound.a - (cost[:, None] @ slopes)[:, 0]
        c = bound.c - (cost * offset).sum(1)
        return a, c - 4 * gamma(which.shape[1]) * total * UP - TINY, (bound.size + moved) * UP
