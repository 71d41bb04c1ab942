"""Sweep: the one certified step of a proof, a row bounded from below by a linear function of δ.

From the last layer to the first, each ReLU is replaced by a line: below by α·z where its coefficient is positive, above
by its chord where it is negative. A multiplier β > 0 takes in that z ≥ low, β < 0 that z ≤ high: any β is sound, as is
any α in [0, 1]. So nothing that a file says can make a wrong bound; it can only make a loose one.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.evidence.ball import Ball
from radii.evidence.network import Rows
from radii.evidence.rounding import TINY, UP, U, gamma


@dataclass(frozen=True, eq=False)
class Charged:
    """Rows, what one use of each costs in rounding, and how much of each the ball can move."""

    rows: Rows
    charge: Tensor  # (rows,)
    size: Tensor  # (rows,) ≥ |a|·reach

    @staticmethod
    def of(rows: Rows, high: Tensor, ball: Ball) -> Charged:
        """The rows with their charges; `high` bounds the columns they use."""
        size = (rows.a.abs() @ ball.reach) * UP
        gross = size + rows.b.abs() + rows.m.abs() @ high.clamp_min(0.0)
        return Charged(rows, (gamma(2 * rows.m.shape[1]) * gross + rows.slack) * UP + TINY, size)

    def pick(self, index: Tensor) -> Charged:
        """These rows, repeated and ordered as asked."""
        return Charged(self.rows.pick(index), self.charge[index], self.size[index])

    def times(self, sign: Tensor) -> Charged:
        """Each row times its own ±1."""
        return Charged(self.rows.times(sign), self.charge, self.size)


@dataclass(frozen=True, eq=False)
class Neurons:
    """The undecided neurons of a prefix of the network; row i may use columns of earlier blocks only."""

    own: Charged
    blocks: tuple[tuple[int, int], ...]  # [first, last) of every ReLU
    low: Tensor  # (n,) on the whole ball
    high: Tensor
    ball: Ball
    span: Tensor  # (n,) the largest |z|

    @staticmethod
    def of(rows: Rows, blocks: tuple[tuple[int, int], ...], low: Tensor, high: Tensor, ball: Ball) -> Neurons:
        """The neurons with their charges."""
        span = torch.maximum(low.abs(), high.abs()) * UP
        return Neurons(Charged.of(rows, high, ball), blocks, low, high, ball, span)

    def charged(self, rows: Rows) -> Charged:
        """Rows over these neurons with their charges."""
        return Charged.of(rows, self.high, self.ball)


@dataclass(frozen=True, eq=False)
class Bound:
    """row ≥ a·δ + c, and size ≥ |a|·reach."""

    a: Tensor  # (rows, d)
    c: Tensor  # (rows,)
    size: Tensor  # (rows,)

    def pick(self, index: Tensor) -> Bound:
        """These rows, repeated and ordered as asked."""
        return Bound(self.a[index], self.c[index], self.size[index])

    @staticmethod
    def join(parts: list[Bound]) -> Bound:
        """All bounds of several groups."""
        return Bound(*(torch.cat([getattr(p, f) for p in parts]) for f in ("a", "c", "size")))

    def least(self, ball: Ball) -> Tensor:
        """A lower bound of every row on the ball."""
        return ball.least(self.a, self.c, self.size)


def chords(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which neurons are undecided, the slope of the line above each, and its height at 0."""
    undecided = (low < 0) & (high > 0)
    width = (high - low).clamp_min(1e-290)
    slope = torch.where(undecided, high / width, (low >= 0).to(low.dtype))
    slope = torch.where(low <= high, slope, torch.full_like(slope, torch.nan))  # no bound through it can prove
    height = torch.maximum(-slope * low, high - slope * high).clamp_min(0.0) + 16 * U * width
    return undecided, slope, torch.where(undecided, height, torch.zeros_like(height))


def rule(low: Tensor, high: Tensor) -> Tensor:
    """The slopes below when none are given: the better of 0 and z at each neuron."""
    return (high > -low).to(low.dtype)


@dataclass(frozen=True, eq=False)
class Pass:
    """What a pass from the last block to the first leaves: coefficients of relu(z), of z, and the lines used."""

    v: Tensor  # (rows, n)
    u: Tensor
    height: Tensor
    cost: Tensor  # (rows, some) minus the coefficients of relu(z) that were given no line


def backwards(
    net: Neurons,
    rows: Rows,
    ends: tuple[Tensor, Tensor],
    alpha: Tensor,
    beta: Tensor | None = None,
    overlooked: int = 0,
) -> Pass:
    """The coefficients with which a row leans on every neuron.

    Undecided neurons of the first block, which has so many as are to be `overlooked`, get no lines above them.
    """
    n = ends[0].shape[1]
    undecided, steep, height = chords(*ends)
    floor = torch.where(undecided, alpha, steep)
    v = rows.m[:, :n]
    u = torch.zeros_like(v)
    parts: list[Tensor] = []
    cost = v.new_zeros((len(v), overlooked))
    for first, last in reversed([block for block in net.blocks if block[1] <= n]):
        part = v[:, first:last]
        through = part * torch.where(part > 0, floor[:, first:last], steep[:, first:last])
        if overlooked and not first:
            without = undecided[:, :last] & (part < 0)
            cost = torch.where(without, -part, torch.zeros_like(part))
            through = torch.where(without, torch.zeros_like(part), through)
        if beta is not None:
            through = through - beta[:, first:last]
        parts.insert(0, through)
        if first:
            v = torch.cat([v[:, :first] + through @ net.own.rows.m[first:last, :first], v[:, first:]], 1)
    u = torch.cat(parts, 1) if parts else u
    if overlooked:
        height = torch.cat([torch.where(cost > 0, 0.0, height[:, :overlooked]), height[:, overlooked:]], 1)
    return Pass(v, u, height, cost)


def sweep(
    net: Neurons, asked: Charged, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor | None = None
) -> Bound:
    """Bounds of rows wherever low ≤ z ≤ high; ends, α and β are (rows, n)."""
    return overlooking(net, asked, ends, alpha, beta, 0)[0]


def overlooking(
    net: Neurons,
    asked: Charged,
    ends: tuple[Tensor, Tensor],
    alpha: Tensor,
    beta: Tensor | None,
    overlooked: int,
) -> tuple[Bound, Tensor]:
    """The same without lines above undecided neurons of the first block: row ≥ a·δ + c − cost·relu(z), cost ≥ 0."""
    low, high = ends
    n = low.shape[1]
    rows, own = asked.rows, net.own.rows
    back = backwards(net, rows, ends, alpha, beta, overlooked)
    a = torch.addmm(rows.a, back.u, own.a[:n])
    used = (back.v.clamp_max(0.0) * back.height).sum(1)
    c = rows.b + back.u @ own.b[:n] + used
    gross = back.v.abs() @ net.span[:n] - used
    if beta is not None:
        held = torch.where(beta > 0, beta * low, torch.where(beta < 0, beta * high, torch.zeros_like(beta)))
        c = c + held.sum(1)
        gross = gross + beta.abs() @ net.span[:n] + held.abs().sum(1)
    uses = back.u.abs()
    lost = uses @ net.own.charge[:n] + asked.charge + gamma(2 * n) * gross
    return Bound(a, c - lost * UP - TINY, (asked.size + uses @ net.own.size[:n]) * UP), back.cost
