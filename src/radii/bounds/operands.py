"""Operands of the operators that are not affine, as places in flat vectors, and the lines over them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

from radii._torch import Tensor, torch
from radii.bounds.activations import Curve, Ends, Slopes, curve_of
from radii.models.graph import Graph


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a node that is not affine, and its place in flat vectors over all operands."""

    node: int
    place: int
    source: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Operands:
    """All operands of a lowered graph in order."""

    graph: Graph
    all: tuple[Operand, ...]
    curves: dict[int, Curve]

    @staticmethod
    def of(graph: Graph) -> Operands:
        """The operands of a graph; a value multiplied by itself is one operand."""
        found: list[Operand] = []
        curves: dict[int, Curve] = {}
        first = 0
        for index, node in enumerate(graph.nodes):
            curve = curve_of(node)
            if curve is None:
                continue
            curves[index] = curve
            for place, source in enumerate(dict.fromkeys(node.inputs)):
                found.append(Operand(index, place, source, first, first + node.size))
                first += node.size
        return Operands(graph, tuple(found), curves)

    @property
    def size(self) -> int:
        """How many intervals there are."""
        return self.all[-1].end if self.all else 0

    @cached_property
    def of_node(self) -> dict[int, tuple[Operand, ...]]:
        """The operands of every node that is not affine."""
        return {k: tuple(s for s in self.all if s.node == k) for k in self.curves}

    @cached_property
    def of_source(self) -> dict[int, tuple[Operand, ...]]:
        """The operands that a node's value is."""
        return {k: tuple(s for s in self.all if s.source == k) for k in {s.source for s in self.all}}

    def ends(self, node: int, low: Tensor, high: Tensor) -> tuple[Ends, ...]:
        """The ends of a node's operands from flat vectors (…, operands)."""
        return tuple((low[..., s.start : s.end], high[..., s.start : s.end]) for s in self.of_node[node])

    def parts(self, node: int, flat: Tensor) -> Slopes:
        """A node's operands in a flat vector (…, operands)."""
        return tuple(flat[..., s.start : s.end] for s in self.of_node[node])


@dataclass(frozen=True, eq=False)
class Lines:
    """Lower and upper lines of one node: slopes per operand and offsets, (batch, rows or 1, size)."""

    under: Slopes
    over: Slopes
    floor: Tensor
    ceiling: Tensor

    def rows(self, index: Tensor) -> Lines:
        """The lines of these members of the batch."""
        under, over = (tuple(t[index] for t in side) for side in (self.under, self.over))
        return Lines(under, over, self.floor[index], self.ceiling[index])


@dataclass(frozen=True, eq=False)
class Slants:
    """The slopes of all lines, flat (batch, rows, operands), below and above, with their useful limits."""

    under: Tensor
    over: Tensor
    under_least: Tensor
    under_most: Tensor
    over_least: Tensor
    over_most: Tensor

    @staticmethod
    def of_node(operands: Operands, node: int, low: Tensor, high: Tensor) -> Slants:
        """The first slopes of one node's lines alone, (batch, 1, its operands), for intervals (batch, operands)."""
        ends, curve = operands.ends(node, low, high), operands.curves[node]
        under, over = curve.under(ends), curve.over(ends)
        six = (under.start, over.start, under.least, under.most, over.least, over.most)
        return Slants(*(torch.cat(part, -1)[:, None] for part in six))

    @staticmethod
    def join(like: Tensor, parts: list[Slants]) -> Slants:
        """The slopes of all nodes from those of each, in order; `like` gives batch and dtype."""
        empty = like.new_zeros((like.shape[0], 1, 0))
        return Slants(*(torch.cat([empty, *(getattr(p, f.name) for p in parts)], -1) for f in fields(Slants)))

    def rows(self, index: Tensor) -> Slants:
        """The slopes of these members of the batch."""
        return Slants(*(getattr(self, f.name)[index] for f in fields(self)))

    def repeated(self, count: int) -> Slants:
        """The same slopes for so many rows, where there is only one."""
        under, over = (t if t.shape[1] == count else t.repeat(1, count, 1) for t in (self.under, self.over))
        return replace(self, under=under, over=over)

    def clamp(self) -> Slants:
        """The same slopes within their limits."""
        under = torch.minimum(torch.maximum(self.under, self.under_least), self.under_most)
        over = torch.minimum(torch.maximum(self.over, self.over_least), self.over_most)
        return replace(self, under=under, over=over)


def lines_of(operands: Operands, node: int, ends: tuple[Tensor, Tensor], under: Slopes, over: Slopes) -> Lines:
    """The lines of a node with these slopes per operand, certified for the intervals (…, operands) of the operands."""
    curve, sides = operands.curves[node], operands.ends(node, *ends)
    return Lines(under, over, curve.floor(sides, under), curve.ceiling(sides, over))
