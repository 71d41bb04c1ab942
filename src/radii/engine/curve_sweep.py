"""Sweeps over condensed networks with curves: `sweep.py` with a line of free slope on either side of every neuron.

A node's bound uses the ends that splits have set with multipliers β: β ≥ 0 for z ≥ end and −β for z ≤ end. Sweeps run
in the precision of their matrices; what is to prove something carries its rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.curve_lines import UnitLines
from radii.bounds.rounding import gamma
from radii.engine.condensed import Rows
from radii.engine.curve_net import CurvedNet
from radii.engine.matrices import Matrices


@dataclass(frozen=True, eq=False)
class Swept:
    """Linear bounds a·x + c of one objective per node; coefficients of the values and of the pre-activations."""

    a: Tensor
    c: Tensor
    v: Tensor
    u: Tensor


def sweep(net: CurvedNet, side: Matrices, rows: Rows, lines: UnitLines, pull: Tensor, ends: Tensor) -> Swept:
    """Linear bounds of objectives, rounding not yet taken off."""
    v, u = rows.m.clone(), torch.empty_like(rows.m)
    for first, last in reversed(net.blocks):
        above = v[:, first:last].clamp_min(0.0)
        below = v[:, first:last] - above
        through = above.mul_(lines.under[:, first:last]).addcmul_(below, lines.over[:, first:last])
        torch.sub(through, pull[:, first:last], out=u[:, first:last])
        if first:
            v[:, :first] += u[:, first:last] @ side.neurons.m[first:last, :first]
    a = rows.a + side.inputs(u[:, : net.direct])
    above = v.clamp_min(0.0)
    offsets = (above * lines.floor).addcmul_(v - above, lines.ceiling).addcmul_(pull, ends).sum(1)
    return Swept(a, rows.b + u @ side.neurons.b + offsets, v, u)


def proven(swept: Swept, side: Matrices, lines: UnitLines, pull: Tensor, charge: Tensor) -> Tensor:
    """The constants of the bounds with all rounding taken off; slopes are within [0, 1], ends within the spans."""
    # Each product v·slope − β was rounded once more, and so was what offsets and ends added to the constant.
    offset = torch.maximum(lines.floor.abs(), lines.ceiling.abs())
    relaxed = (swept.v.abs() * (offset + side.span)).sum(1) + 2.0 * (pull.abs() @ side.span)
    error = swept.u.abs() @ side.charge + charge + gamma(len(side.span) + 6, side.unit) * relaxed
    return swept.c - error * (1.0 + 2.0**-10)


def forward(net: CurvedNet, side: Matrices, swept: Swept, lines: UnitLines, x: Tensor) -> Tensor:
    """The relaxed pre-activations at x by the lines that a sweep took; not certified."""
    below = swept.v > 0
    slope = torch.where(below, lines.under, lines.over)
    offset = torch.where(below, lines.floor, lines.ceiling)
    if side.thin is not None:
        z = side.linear(x)
    else:
        z = side.neurons.b.repeat(len(x), 1)
        z[:, : net.direct] += x @ side.neurons.a[: net.direct].T
    return side.through(z, net.blocks, slope, offset)


def hidden_rows(
    net: CurvedNet, side: Matrices, lines: UnitLines, which: Tensor, turn: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Certified lower linear bounds of turn·z of some neurons of one layer, turn = ±1: (nodes, rows, d), (nodes, rows).

    The layer begins with neuron `first`; `lines` (nodes, n) are those of the neurons before it. `which` and `turn` are
    (nodes, rows), or (1, rows) in the first layer, whose rows all nodes share.
    """
    b, error = side.neurons.b[which] * turn, side.charge[which] * (1.0 + 2.0**-10)
    if not first:
        return side.neurons.a[which] * turn[..., None], b - error
    v = side.neurons.m[:, :first][which] * turn[..., None]
    u = torch.empty_like(v)
    under, over = lines.under[:, None], lines.over[:, None]
    for start, end in reversed([block for block in net.blocks if block[1] <= first]):
        above = v[..., start:end].clamp_min(0.0)
        below = v[..., start:end] - above
        torch.mul(above, under[..., start:end], out=u[..., start:end])
        u[..., start:end].addcmul_(below, over[..., start:end])
        if start:
            v[..., :start] += u[..., start:end] @ side.neurons.m[start:end, :start]
    k = min(net.direct, first)
    a = side.inputs(u[..., :k])
    if net.direct > first:
        a = a + side.neurons.a[which] * turn[..., None]
    # v·offset by products with vectors: v⁺·floor + v⁻·ceiling = v·(floor + ceiling)/2 + |v|·(floor − ceiling)/2.
    size = v.abs()
    half, middle = 0.5 * (lines.floor - lines.ceiling), 0.5 * (lines.floor + lines.ceiling)
    offsets = torch.matmul(v, middle[..., None])[..., 0] + torch.matmul(size, half[..., None])[..., 0]
    c = b + u @ side.neurons.b[:first] + offsets
    # Half sums and half differences were rounded, too: three times the larger offset covers all of them.
    offset = 3.0 * torch.maximum(lines.floor.abs(), lines.ceiling.abs()) + side.span[:first]
    error = error + u.abs() @ side.charge[:first]
    error = error + gamma(first + 6, side.unit) * torch.matmul(size, offset[..., None])[..., 0]
    return a, c - error * (1.0 + 2.0**-10)
