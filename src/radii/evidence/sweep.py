"""Sweep: the one certified step of a proof, a row bounded from below by a linear function of δ.

From the last layer to the first, each ReLU is replaced by a line: below by α·z where its coefficient is positive, above
by its chord where it is negative. A multiplier β > 0 takes in that z ≥ low, β < 0 that z ≤ high: any β is sound, as is
any α in [0, 1]. So nothing that a file says can make a wrong bound; it can only make a loose one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.evidence.ball import Ball
from radii.evidence.network import Rows
from radii.evidence.rounding import TINY, UP, U, gamma


@dataclass(frozen=True, eq=False)
class Neurons:
    """The undecided neurons of a prefix of the network as rows, with what one use of each costs in rounding."""

    rows: Rows
    blocks: tuple[tuple[int, int], ...]  # [first, last) of every ReLU
    low: Tensor  # (n,) on the whole ball
    high: Tensor
    ball: Ball
    charge: Tensor  # (n,)
    span: Tensor  # (n,) the largest |z|

    @staticmethod
    def of(rows: Rows, blocks: tuple[tuple[int, int], ...], low: Tensor, high: Tensor, ball: Ball) -> Neurons:
        """The neurons with their charges; row i may use columns of earlier blocks only."""
        span = torch.maximum(low.abs(), high.abs()) * UP
        return Neurons(rows, blocks, low, high, ball, _charge(rows, high, ball), span)

    def charges(self, rows: Rows) -> Tensor:
        """What one use of each of these rows costs in rounding."""
        return _charge(rows, self.high, self.ball)


def _charge(rows: Rows, high: Tensor, ball: Ball) -> Tensor:
    gross = rows.a.abs() @ ball.reach + rows.b.abs() + rows.m.abs() @ high.clamp_min(0.0)
    return (gamma(2 * rows.m.shape[1]) * gross + rows.slack) * UP + TINY


def chords(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Which neurons are undecided, the slope of the line above each, and its height at 0."""
    undecided = (low < 0) & (high > 0)
    width = (high - low).clamp_min(1e-290)
    slope = torch.where(undecided, high / width, (low >= 0).to(low.dtype))
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


def backwards(net: Neurons, rows: Rows, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor | None = None) -> Pass:
    """The coefficients with which a row leans on every neuron."""
    n = ends[0].shape[1]
    undecided, steep, height = chords(*ends)
    floor = torch.where(undecided, alpha, steep)
    v = rows.m[:, :n]
    u = torch.zeros_like(v)
    parts: list[Tensor] = []
    for first, last in reversed([block for block in net.blocks if block[1] <= n]):
        part = v[:, first:last]
        through = part * torch.where(part > 0, floor[:, first:last], steep[:, first:last])
        if beta is not None:
            through = through - beta[:, first:last]
        parts.insert(0, through)
        if first:
            v = torch.cat([v[:, :first] + through @ net.rows.m[first:last, :first], v[:, first:]], 1)
    u = torch.cat(parts, 1) if parts else u
    return Pass(v, u, height)


def sweep(
    net: Neurons, rows: Rows, charge: Tensor, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """a (rows, d) and c (rows,) with row ≥ a·δ + c wherever low ≤ z ≤ high; ends, α and β are (rows, n)."""
    low, high = ends
    n = low.shape[1]
    back = backwards(net, rows, ends, alpha, beta)
    a = rows.a + back.u @ net.rows.a[:n]
    used = (back.v.clamp_max(0.0) * back.height).sum(1)
    c = rows.b + back.u @ net.rows.b[:n] + used
    gross = back.v.abs() @ net.span[:n] - used
    if beta is not None:
        held = torch.where(beta > 0, beta * low, torch.where(beta < 0, beta * high, torch.zeros_like(beta)))
        c = c + held.sum(1)
        gross = gross + beta.abs() @ net.span[:n] + held.abs().sum(1)
    lost = back.u.abs() @ net.charge[:n] + charge + gamma(2 * n) * gross
    return a, c - lost * UP - TINY
