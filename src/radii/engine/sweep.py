"""Sweeps: one backward pass over a condensed network bounds the objectives of a batch of nodes, or hidden neurons.

Undecided neurons are replaced by lines with lower slopes α, fixed signs are used with multipliers β ≥ 0 (β-CROWN, Wang
et al. 2021). Each sweep runs in the precision of its matrices and charges its rounding, so every bound is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.activations import MaskedLines
from radii.bounds.rounding import gamma
from radii.engine.condensed import Condensed, Rows
from radii.engine.matrices import Matrices
from radii.engine.nodes import Nodes
from radii.engine.planes import Paired, Plane


@dataclass(frozen=True, eq=False)
class Sweep:
    a: Tensor
    c: Tensor
    v: Tensor  # coefficients of the ReLU outputs
    floor: Tensor  # slopes of the lower lines
    left: Tensor | None = None  # coefficients ≤ 0 of those first-layer neurons that got no lines
    pairs: tuple[Paired, ...] = ()  # what pair planes did, layer by layer


def sweep(
    net: Condensed,
    side: Matrices,
    nodes: Nodes,
    relaxation: MaskedLines,
    rows: Rows,
    charge: Tensor,
    leaves: int = 0,
    planes: tuple[Plane, ...] = (),
) -> Sweep:
    """Linear bounds of objectives (rows, with their charges, one per node) by the lines that suit their signs best.

    So many neurons of the first layer as `leaves` says, those whose upper lines would cost most, get no upper lines:
    the bound is that of the objective less its `left`·relu(z).
    """
    dtype = rows.b.dtype
    floor = relaxation.floor(nodes.alpha.to(dtype))
    pull = nodes.beta.to(dtype) * nodes.sign.to(dtype)
    v = rows.m.clone()
    u = torch.empty_like(v)
    left, pairs, single = None, [], torch.ones_like(v) if planes else None
    for first, last in reversed(net.blocks):
        # The lower line where v > 0, the upper one elsewhere: one of the products is 0.
        above = v[:, first:last].clamp_min(0.0)
        below = v[:, first:last] - above
        if leaves and not first:
            left = _dearest(below * relaxation.unstable[:, :last], relaxation.lift[:, :last], leaves)
            below = below - left
        through = above.mul_(floor[:, first:last]).addcmul_(below, relaxation.steep[:, first:last])
        for plane in planes:
            if plane.block == (first, last):
                assert single is not None
                pairs.append(plane.over(v, through, floor, relaxation.steep, nodes.tilt))
                single[:, plane.neurons] = 0.0
        torch.sub(through, pull[:, first:last], out=u[:, first:last])
        if first:
            v[:, :first] += u[:, first:last] @ side.neurons.m[first:last, :first]
    a = rows.a + side.inputs(u)
    below = v.clamp_max(0.0)
    if left is not None:
        below[:, : left.shape[1]] -= left
    if single is not None:
        below = below * single
    c = rows.b + u @ side.neurons.b + (below * relaxation.lift).sum(1)
    # Each product v·slope − β and each line's offset was rounded once more.
    relaxed = (v.abs() * (relaxation.lift + side.span)).sum(1) + pull.abs() @ side.span
    error = u.abs() @ side.charge + charge + gamma(len(side.span) + 6, side.unit) * relaxed
    if pairs:
        offsets = torch.cat([pair.offset for pair in pairs], 1)
        c = c + offsets.sum(1)
        error = error + 2 * side.unit * c.abs()
        for pair in pairs:
            error = error + pair.charge(side, offsets.shape[1])
    return Sweep(a, c - error * (1.0 + 2.0**-10), v, floor, left, tuple(pairs))


def lines_in_use(sweep: Sweep, relaxation: MaskedLines) -> tuple[Tensor, Tensor]:
    """Slopes and offsets of the lines that a sweep took; not certified: coefficients near 0 get something between."""
    lower = (sweep.v * 1e30).clamp(0.0, 1.0)
    slope = torch.addcmul(relaxation.steep, lower, sweep.floor - relaxation.steep)
    offset = torch.addcmul(relaxation.lift, relaxation.lift, lower, value=-1.0)
    for pair in sweep.pairs:
        # Two ReLUs under a plane are worth what they are at the corner where it touches.
        own = slope[:, pair.plane.neurons]
        offset[:, pair.plane.neurons] = torch.addcmul(pair.touch.clamp_min(0.0), own, pair.touch, value=-1.0)
    return slope, offset


def forward(net: Condensed, side: Matrices, lines: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
    """The relaxed pre-activations at x by the lines in use."""
    slope, offset = lines
    return side.through(side.linear(x), net.blocks, slope, offset)


def both_ends(which: Tensor) -> tuple[Tensor, Tensor]:
    """Neurons (nodes, count) twice, and the signs with which `hidden_rows` bounds them: +z of all, then −z of all."""
    one = torch.ones(which.shape)
    return torch.cat([which, which], 1), torch.cat([one, -one], 1)


def hidden_rows(
    net: Condensed, side: Matrices, low: Tensor, high: Tensor, which: Tensor, turn: Tensor, first: int
) -> tuple[Tensor, Tensor]:
    """Lower linear bounds of turn·z of some neurons of one layer, turn = ±1: (nodes, rows, d), (nodes, rows).

    The layer begins with neuron `first`; `low` and `high` are (nodes, n). `which` and `turn` are (nodes, rows), or (1,
    rows) in the first layer, whose rows all nodes share.
    """
    return _hidden_rows(net, side, low, high, which, turn, first, 0)[:2]


def hidden_rows_less(
    net: Condensed, side: Matrices, low: Tensor, high: Tensor, which: Tensor, turn: Tensor, first: int, leaves: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The same without upper lines of some first-layer neurons, and the coefficients ≤ 0 of those, (nodes, rows, n)."""
    return _hidden_rows(net, side, low, high, which, turn, first, leaves)


def _dearest(below: Tensor, lift: Tensor, count: int) -> Tensor:
    """Of coefficients ≤ 0 so many per row whose upper lines cost most; 0 for the others."""
    if below.shape[-1] <= count:
        return below
    loss = -below * lift
    least = loss.kthvalue(below.shape[-1] - count + 1, dim=-1, keepdim=True).values
    return below * (loss >= least)


def _hidden_rows(
    net: Condensed,
    side: Matrices,
    low: Tensor,
    high: Tensor,
    which: Tensor,
    turn: Tensor,
    first: int,
    leaves: int,
) -> tuple[Tensor, Tensor, Tensor]:
    turn = turn.to(low.dtype)
    b, error = side.neurons.b[which] * turn, side.charge[which] * (1.0 + 2.0**-10)
    left = b.new_zeros((1, 1, net.blocks[0][1]))
    if not first:
        return side.neurons.a[which] * turn[..., None], (b - error).expand(len(low), -1), left
    v = side.neurons.m[:, :first][which] * turn[..., None]
    low, high = low[:, :first], high[:, :first]
    relaxation = MaskedLines.of(low, high)
    floor = relaxation.floor((high + low).mul_(1e30).clamp_(0.0, 1.0))[:, None]
    steep = relaxation.steep[:, None]
    # The layer's own columns hold the neurons themselves: one product instead of a gather, a product and a sum.
    last = next(end for start, end in net.blocks if start == first)
    whole = v.new_zeros((*v.shape[:2], last))
    whole.scatter_(2, which[..., None], turn[..., None])
    u = whole[..., :first]
    k = b
    for start, end in reversed([b for b in net.blocks if b[1] <= first]):
        above = v[..., start:end].clamp_min(0.0)
        below = v[..., start:end] - above
        if leaves and not start:
            left = _dearest(below * relaxation.unstable[:, None, :end], relaxation.lift[:, None, :end], leaves)
            below = below - left
        k = k + _each(below, relaxation.lift[:, start:end])
        u[..., start:end] = above.mul_(floor[..., start:end]).addcmul_(below, steep[..., start:end])
        if start:
            v[..., :start] += u[..., start:end] @ side.neurons.m[start:end, :start]
    a = side.inputs(whole)
    k = k + u @ side.neurons.b[:first]
    # Slopes are at most 1, so that |u| is at most |v|, but for rounding that the last factor covers.
    price = gamma(first + 6, side.unit) * (relaxation.lift + side.span[:first]) + side.charge[:first]
    error = error + _each(v.abs_(), price)
    return a, k - error * (1.0 + 2.0**-10), left


def _each(rows: Tensor, vectors: Tensor) -> Tensor:
    """Every node's rows (nodes, rows, n) times its vector (nodes, n)."""
    return torch.matmul(rows, vectors[..., None])[..., 0]
