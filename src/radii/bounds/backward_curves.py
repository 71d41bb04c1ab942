"""Backward linear bounds through any curves: a linear function of a node's value by one of the input.

The pass of `backward` for graphs with Tanh and products, with slopes of each row's own. Ends that a split has set may
be used with a multiplier, as in β-CROWN: the *pull* is β ≥ 0 for z ≥ low and −β for z ≤ high. Rounding is charged as it
happens: passing coefficients a of y = Lx + c loses at most γ·|a|·(|L|·|x| + |c|).
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.backward import Magnitudes
from radii.bounds.operands import Lines, Operands
from radii.bounds.rounding import U64, UP, gamma
from radii.models.graph import Graph
from radii.models.operators import Affine


@dataclass(frozen=True, eq=False)
class Bound:
    """Rows a·x + c that bound the asked values from below, rounding taken off; coefficients of curved nodes' values."""

    a: Tensor
    c: Tensor
    met: dict[int, Tensor]

    def shifted(self) -> Tensor:
        """The constant."""
        return self.c


@dataclass(frozen=True, eq=False)
class Pull:
    """Multipliers (batch, rows, operands) for the ends (batch, 1, operands) that splits have set; no end is ±inf."""

    size: Tensor
    low: Tensor
    high: Tensor

    def parts(self) -> tuple[Tensor, Tensor]:
        """β of the low and of the high ends, 0 where there is none."""
        up = torch.where(self.low.isfinite(), self.size.clamp_min(0.0), torch.zeros_like(self.size))
        down = torch.where(self.high.isfinite(), (-self.size).clamp_min(0.0), torch.zeros_like(self.size))
        return up, down


def backward_curves(
    operands: Operands, start: int, rows: Tensor, lines: dict[int, Lines], sizes: Magnitudes, pull: Pull | None = None
) -> Bound:
    """Bounds rows·value(start) from below by a linear function of the input; rows are (batch, rows, size)."""
    first, sums, met = _walk(operands, start, rows, lines, sizes, pull, {})
    return Bound(first, sums.total(_additions(operands)), met)


@dataclass(frozen=True, eq=False)
class Collected:
    """Rows a·x + c + kept·y, y the values of the units that were kept, each known up to ±error."""

    a: Tensor
    c: Tensor
    kept: dict[int, Tensor]  # coefficients of whole nodes, of which those of the kept units count
    error: Tensor


def collect(
    operands: Operands,
    start: int,
    rows: Tensor,
    lines: dict[int, Lines],
    sizes: Magnitudes,
    kept: dict[int, Tensor],
) -> Collected:
    """Rows of a node's value as a linear function of the input and of kept units, (size,) masks by node.

    The lines of all other units must be exact: both the same, as those of a ReLU with one sign are.
    """
    first, sums, met = _walk(operands, start, rows, lines, sizes, None, kept)
    return Collected(first, sums.value, met, sums.lost(_additions(operands)))


def _additions(operands: Operands) -> int:
    return len(operands.graph.nodes) + len(operands.all)


def _walk(
    operands: Operands,
    start: int,
    rows: Tensor,
    lines: dict[int, Lines],
    sizes: Magnitudes,
    pull: Pull | None,
    kept: dict[int, Tensor],
) -> tuple[Tensor, _Sums, dict[int, Tensor]]:
    """The pass itself: coefficients of the input, the sums of the constant, coefficients of curved nodes."""
    graph = operands.graph
    batch, count = rows.shape[:2]
    pending: dict[int, Tensor] = {start: rows}
    sums = _Sums(rows.new_zeros((batch, count)), rows.new_zeros((batch, count)), rows.new_zeros((batch, count)))
    met: dict[int, Tensor] = {}
    pulls = pull.parts() if pull is not None else None

    def join(index: int, value: Tensor) -> None:
        if index in pending:
            pending[index] = pending[index] + value
            sums.charge(pending[index].abs(), 2 * U64 * sizes.value[index][:, None])
        else:
            pending[index] = value

    for index in range(start, 0, -1):
        if pull is not None and pulls is not None and index < start:
            for operand in operands.of_source.get(index, ()):
                up, down = (p[..., operand.start : operand.end] for p in pulls)
                join(index, down - up)
                sums.add(up, pull.low[..., operand.start : operand.end])
                sums.add(-down, pull.high[..., operand.start : operand.end])
        a = pending.pop(index, None)
        if a is None:
            continue
        if index in operands.curves:
            met[index] = a.detach()
            if index in kept:
                if bool(kept[index].all()):
                    continue
                a = a.masked_fill(kept[index], 0.0)
            sources = [operand.source for operand in operands.of_node[index]]
            parts = _relax(a, lines[index], [sizes.value[i][:, None] for i in sources], sums)
            for i, part in zip(sources, parts):
                join(i, part)
            continue
        operator = graph.nodes[index].operator
        assert isinstance(operator, Affine)
        sums.charge(a.abs(), gamma(operator.terms) * sizes.product[index][:, None])
        shaped = a.reshape(batch * count, *graph.nodes[index].shape)
        sums.constant(operator, shaped, graph, graph.nodes[index].inputs)
        shapes = tuple(graph.nodes[i].shape for i in graph.nodes[index].inputs)
        for i, part in zip(graph.nodes[index].inputs, operator.adjoint(shaped, shapes)):
            join(i, part.reshape(batch, count, graph.nodes[i].size))
    first = pending.get(0)
    if first is None:
        first = rows.new_zeros((batch, count, graph.nodes[0].size))
    return first, sums, met


@dataclass(eq=False)
class _Sums:
    """The constant of a bound while it is collected, its rounding error, and the sum of what was added in magnitude."""

    value: Tensor
    error: Tensor
    gross: Tensor

    def charge(self, size: Tensor, price: Tensor) -> None:
        self.error = self.error + _dot(size.detach(), price)

    def add(self, a: Tensor, b: Tensor) -> None:
        """Adds a·b, 0 where a is 0 whatever b is."""
        product = torch.where(a == 0, torch.zeros_like(a), a * b)
        gain, gross = product.sum(-1), product.detach().abs().sum(-1)
        self.value, self.gross = self.value + gain, self.gross + gross
        self.error = self.error + gamma(a.shape[-1]) * gross

    def constant(self, operator: Affine, rows: Tensor, graph: Graph, inputs: tuple[int, ...]) -> None:
        """Adds rows·c for y = Lx + c; its rounding is part of what the operator is charged for."""
        zeros = [torch.zeros((1, *graph.nodes[i].shape), dtype=rows.dtype) for i in inputs]
        c = operator(*zeros).flatten(1)[0]
        if bool(c.any()):
            flat = rows.flatten(1)
            self.value = self.value + (flat @ c).reshape(self.value.shape)
            gross = (flat.detach().abs() @ c.abs()).reshape(self.value.shape)
            self.gross, self.error = self.gross + gross, self.error + gamma(len(c)) * gross

    def lost(self, additions: int) -> Tensor:
        return (self.error + 2 * U64 * (3 * additions + 1) * self.gross) * UP

    def total(self, additions: int) -> Tensor:
        return self.value - self.lost(additions)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Rows times rows, or times the one row that they share: (batch, rows)."""
    return torch.matmul(a, b.transpose(1, 2))[..., 0] if b.shape[1] == 1 else (a * b).sum(-1)


def _relax(a: Tensor, lines: Lines, sources: list[Tensor], sums: _Sums) -> list[Tensor]:
    """The coefficients of a node's operands, whose magnitudes are given; what the offsets add goes to the sums."""
    size = a.abs()
    low, high = lines.floor, lines.ceiling
    # a·low where a > 0 and a·high elsewhere, without another copy of the coefficients.
    gain = 0.5 * (_dot(a, low + high) + _dot(size, low - high))
    reach = low.detach().abs() + high.detach().abs()
    price = 2 * gamma(a.shape[-1]) * reach
    for under, over, value in zip(lines.under, lines.over, sources):
        price = price + 2 * U64 * torch.maximum(under.detach().abs(), over.detach().abs()) * value
    sums.value, sums.gross = sums.value + gain, sums.gross + _dot(size.detach(), reach)
    sums.charge(size, price)
    positive = a > 0
    return [a * torch.where(positive, under, over) for under, over in zip(lines.under, lines.over)]
