"""Condensed networks: one image's network on one ball, reduced to the ReLUs that can take both signs.

Neurons of one sign are linear, so on the ball every undecided pre-activation is

    z = A·x + b + M·relu(z) ± slack,        M strictly lower triangular in blocks (layers)

whatever the graph looked like: dense, convolutional, residual. x is measured from the centre of the ball, so that all
magnitudes, and the rounding they cause, are small. The slack bounds the rounding made in reaching this form. Objectives
(margins, or single neurons) are rows of the same kind. All later work on the image happens on these few dense matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from radii._torch import Tensor, torch
from radii.bounds.backward import backward
from radii.bounds.intermediate import Root
from radii.bounds.region import Region
from radii.bounds.rounding import U64, UP, gamma
from radii.engine.tuning import DEFAULT, Trees


@dataclass(frozen=True, eq=False)
class Rows:
    """Objectives value = a·x + b + m·relu(z), each known up to ±slack."""

    a: Tensor  # (rows, d)
    b: Tensor  # (rows,)
    m: Tensor  # (rows, n)
    slack: Tensor  # (rows,)

    def pick(self, index: Tensor) -> Rows:
        """These rows, repeated and ordered as asked."""
        return Rows(self.a[index], self.b[index], self.m[index], self.slack[index])


@dataclass(frozen=True, eq=False)
class Condensed:
    """The undecided part of one image's network on one ball."""

    region: Region  # of one image, in coordinates measured from its centre
    blocks: tuple[tuple[int, int], ...]  # [start, end) of every layer in the order of neurons
    neurons: Rows  # the pre-activations themselves
    low: Tensor  # (n,) bounds that hold on the whole ball
    high: Tensor
    where: tuple[tuple[int, Tensor], ...]  # (ReLU node, flat indices) of every block
    outputs: Rows | None = None  # the values of the last node; a truncated network has none
    basis: Tensor | None = None  # (r, d) orthonormal rows that span those of A but for rounding, when they are few

    @property
    def size(self) -> int:
        """How many neurons are undecided."""
        return int(self.low.shape[0])

    @property
    def reach(self) -> Tensor:
        """The largest |relu(z)| of every neuron, (n,)."""
        return self.high.clamp_min(0.0)

    def forward(self, block: tuple[int, int]) -> Callable[[Tensor], Tensor]:
        """The function from points of the ball, measured from its centre, to a block's pre-activations, in float32."""
        rows = self.neurons
        layers = [
            tuple(part.to(torch.float32) for part in (rows.a[i:j], rows.b[i:j], rows.m[i:j, :i]))
            for i, j in self.blocks
            if j <= block[1]
        ]

        def run(x: Tensor) -> Tensor:
            z, y = x, x.new_zeros((len(x), 0))
            for a, b, m in layers:
                z = x @ a.T + b + y @ m.T
                y = torch.cat([y, z.relu()], 1)
            return z

        return run


@dataclass(frozen=True, eq=False)
class CondensedRoot:
    """Bounds of one image's network on one ball, with its condensed form there: smaller balls are bounded from it."""

    root: Root
    net: Condensed

    @property
    def depth(self) -> int:
        """How many layers have undecided neurons."""
        return len(self.net.blocks)


def condense(root: Root, trees: Trees = DEFAULT.trees) -> Condensed:
    """The condensed network of a root with one image."""
    undecided: dict[int, Tensor] = {}
    for index, lines in root.lines.items():
        which = lines.unstable[0].nonzero()[:, 0]
        if len(which):
            undecided[index] = which
    starts = [0]
    for which in undecided.values():
        starts.append(starts[-1] + len(which))
    low = [root.lines[k].low[0, v] for k, v in undecided.items()]
    high = [root.lines[k].high[0, v] for k, v in undecided.items()]
    empty = root.region.center.new_zeros(0)
    parts = [
        _rows(root, undecided, starts[-1], root.graph.nodes[k].inputs[0], _onehot(root, k, v))
        for k, v in undecided.items()
    ]
    neurons = stack(parts) if parts else _nothing(root)
    return Condensed(
        root.region.shifted(),
        tuple(pairwise(starts)),
        neurons,
        torch.cat(low) if low else empty,
        torch.cat(high) if high else empty,
        tuple(undecided.items()),
        _rows(root, undecided, starts[-1], len(root.graph.nodes) - 1, _all(root)),
        spanning(neurons.a, trees),
    )


def spanning(a: Tensor, trees: Trees = DEFAULT.trees) -> Tensor | None:
    """Few orthonormal rows whose span holds the rows of a matrix, but for rounding; None where it takes many.

    Everything in a dense network depends on x through its first layer alone, less the neurons that are off on the
    ball: some fifty numbers in place of 784. Found from random combinations of the rows; no proof rests on it, because
    whoever uses it charges for what it misses.
    """
    n, d = a.shape
    most = min(n, d) // 3
    if n < trees.few_rows or not bool(a.isfinite().all()):
        return None
    mix = torch.randn((n, min(most, trees.most_rank) + 1), generator=torch.Generator().manual_seed(0), dtype=a.dtype)
    q, r = torch.linalg.qr(a.T @ mix.to(a.device))
    size = r.diagonal().abs()
    rank = int((size > trees.rank_floor * size.max()).sum())
    return None if rank == mix.shape[1] else q[:, :rank].T.contiguous()


def objectives(root: Root, net: Condensed, rows: Tensor, shift: Tensor, node: int | None = None) -> Rows:
    """rows·values − shift of a node (the outputs if none is named) as objectives of the condensed network."""
    if node is None and net.outputs is not None:
        plain = combined(net, net.outputs, rows)
    else:
        plain = _rows(root, dict(net.where), net.size, len(root.graph.nodes) - 1 if node is None else node, rows)
    rounding = 4 * U64 * (plain.b.abs() + shift.abs())
    return Rows(plain.a, plain.b - shift, plain.m, plain.slack + rounding)


def truncated(net: Condensed, first: int) -> Condensed:
    """The layers before a neuron index."""
    blocks = tuple(b for b in net.blocks if b[1] <= first)
    rows = net.neurons
    early = Rows(rows.a[:first], rows.b[:first], rows.m[:first, :first], rows.slack[:first])
    ends = net.low[:first], net.high[:first]
    return Condensed(net.region, blocks, early, *ends, net.where[: len(blocks)], basis=net.basis)


def scales(rows: Rows, magnitude: Tensor, reach: Tensor) -> Tensor:
    """The largest sum of absolute terms that each row can have."""
    return (rows.a.abs() @ magnitude + rows.b.abs() + rows.m.abs() @ reach) * UP


def combined(net: Condensed, outputs: Rows, weights: Tensor) -> Rows:
    """weights·outputs, with its rounding in the slack."""
    size = scales(outputs, net.region.magnitude()[0], net.reach)
    slack = weights.abs() @ (outputs.slack + gamma(len(size) + 1) * size) * UP
    return Rows(weights @ outputs.a, weights @ outputs.b, weights @ outputs.m, slack)


def _all(root: Root) -> Tensor:
    return torch.eye(root.graph.nodes[-1].size, dtype=torch.float64, device=root.region.center.device)


def _onehot(root: Root, relu: int, which: Tensor) -> Tensor:
    rows = which.new_zeros((len(which), root.graph.nodes[relu].size), dtype=torch.float64)
    rows[torch.arange(len(which)), which] = 1.0
    return rows


def _rows(root: Root, undecided: dict[int, Tensor], size: int, start: int, rows: Tensor) -> Rows:
    """Rows of a node's value collected at the undecided ReLUs, with all rounding gathered in the slack."""
    width = max(root.graph.nodes[i].size for i in range(start + 1))
    step = max(1, root.tuning.coefficients // width)
    offsets = {}
    first = 0
    for index, which in undecided.items():
        offsets[index] = (first, which)
        first += len(which)
    out = []
    for begin in range(0, max(1, len(rows)), step):
        part = backward(root.graph, start, rows[None, begin : begin + step], root.lines, root.magnitudes, collect=True)
        m = rows.new_zeros((part.c.shape[1], size))
        for index, coefficients in part.collected.items():
            if index in offsets:
                at, which = offsets[index]
                m[:, at : at + len(which)] = coefficients[0][:, which]
        out.append(from_center(root.region, Rows(part.a[0], part.c[0], m, part.error[0])))
    return stack(out)


def from_center(region: Region, rows: Rows) -> Rows:
    """Rows of x rewritten as rows of x − x0."""
    center = region.center[0]
    rounding = gamma(len(center) + 1) * (rows.a.abs() @ center.abs() + rows.b.abs()) * UP
    return Rows(rows.a, rows.b + rows.a @ center, rows.m, (rows.slack + rounding) * UP)


def stack(parts: list[Rows]) -> Rows:
    """All rows of several batches."""
    return Rows(*(torch.cat([getattr(p, f) for p in parts]) for f in ("a", "b", "m", "slack")))


def _nothing(root: Root) -> Rows:
    zeros = root.region.center.new_zeros
    return Rows(zeros((0, root.region.center.shape[1])), zeros(0), zeros((0, 0)), zeros(0))


def charges(rows: Rows, magnitude: Tensor, reach: Tensor, unit: float, mixed: int = 0) -> Tensor:
    """What one unit of each row's value costs in rounding when its coefficients are rounded and used once.

    Used in sums of up to `mixed` rows, where that is asked.
    """
    terms = rows.m.shape[1] + 6 + mixed  # a bound adds up at most one row per neuron, and the objective
    return (gamma(terms, unit) * scales(rows, magnitude, reach) + rows.slack) * UP
