"""Proof trees, checked: rows bounded from below over trees of splits, all rows of a group and a level at once.

A tree never has to be believed. Its inner nodes always have both children, and every number in it (slopes α,
multipliers β of the node's ends, multipliers λ of the cut) is sound whatever its value.

    LEAF        bounded as it is
    CUT         bounded, its ends tightened under its own cut, bounded again
    EMPTY       bounded, its ends tightened until they cross: nothing is left inside
    SPLIT       not bounded, split at 0 of one neuron
    CUT_SPLIT   bounded, its ends tightened under its own cut, then split

The cut: a row is only ever asked to be positive, so of a node only the part with row ≤ 0 matters, and there the node's
own bound says a·δ + c ≤ 0. Neurons are bounded over the ball intersected with that half-space.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.errors import FormatError
from radii.evidence.ball import Ball
from radii.evidence.hull import Hulls
from radii.evidence.network import Rows
from radii.evidence.rounding import TINY, UP, gamma
from radii.evidence.sweep import Bound, Neurons, rule, sweep

LEAF, CUT, EMPTY, SPLIT, CUT_SPLIT = range(5)
NODES = 2**21  # most values of one kind that are held in memory at once


@dataclass(frozen=True, eq=False)
class Sparse:
    """For each of some nodes, a few (place, value) pairs."""

    count: Tensor  # (nodes,) int64
    place: Tensor  # (pairs,) int64
    value: Tensor  # (pairs,) float64

    def part(self, first: int, last: int) -> Sparse:
        """The pairs of these nodes."""
        ends = torch.cat([self.count.new_zeros(1), self.count.cumsum(0)])
        begin, end = int(ends[first]), int(ends[last])
        return Sparse(self.count[first:last], self.place[begin:end], self.value[begin:end])

    def dense(self, width: int) -> Tensor:
        """(nodes, width) with zeros elsewhere."""
        full = self.value.new_zeros((len(self.count), width))
        full[self.node, self.place] = self.value
        return full

    @property
    def node(self) -> Tensor:
        """The node of each pair."""
        return torch.repeat_interleave(torch.arange(len(self.count)), self.count)


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of a group of rows, level by level; the first level has one node per row."""

    kind: Tensor  # (nodes,) uint8
    split: Tensor  # (inner nodes,) which column
    alpha: Tensor  # (first bounds, n) uint8, in 1/255
    beta: Sparse  # of first bounds
    alpha2: Tensor  # of second bounds: those of CUT nodes
    beta2: Sparse
    cut: Sparse  # of nodes with a cut: place is 2·column for the lower end, 2·column + 1 for the upper one
    hull: Tensor  # (first bounds,) bool: whether they take hulls of first-layer neurons in place of chords
    hull2: Tensor  # (second bounds,)


def lowest(net: Neurons, rows: Rows, forest: Forest, ball: Ball | None = None) -> Tensor:
    """A lower bound of min(row, 0) for every row, above 0 where the row is positive on the whole ball.

    The rows are asked on `ball`, which lies in the ball of `net`.
    """
    reader = _Reader(net, rows, forest, net.ball if ball is None else ball)
    value = rows.b.new_full((len(rows.b),), torch.inf)
    row = torch.arange(len(rows.b))
    n = forest.alpha.shape[1]
    ends = net.low[:n].expand(len(row), n), net.high[:n].expand(len(row), n)
    while len(row):
        kind = reader.kinds(len(row))
        found, ends = reader.level(row, ends, kind)
        value = value.scatter_reduce(0, row, found, "amin")
        inner = kind >= SPLIT
        row, ends = reader.children(row[inner], (ends[0][inner], ends[1][inner]))
    reader.finish()
    return value


class _Reader:
    def __init__(self, net: Neurons, rows: Rows, forest: Forest, ball: Ball) -> None:
        self.net, self.forest, self.ball, self.hulls = net, forest, ball, Hulls.of(net, ball)
        self.rows = net.charged(rows)
        self.at = {"node": 0, "split": 0, "first": 0, "second": 0, "cut": 0}

    def _take(self, name: str, count: int, whole: int) -> tuple[int, int]:
        first = self.at[name]
        if first + count > whole:
            raise FormatError("evidence: expected a whole tree, got one with branches missing")
        self.at[name] = first + count
        return first, first + count

    def kinds(self, count: int) -> Tensor:
        first, last = self._take("node", count, len(self.forest.kind))
        return self.forest.kind[first:last]

    def finish(self) -> None:
        forest = self.forest
        held = (len(forest.kind), len(forest.split), len(forest.alpha), len(forest.alpha2), len(forest.cut.count))
        if tuple(self.at.values()) != held:
            raise FormatError("evidence: expected a tree and nothing else, got numbers that belong to no node")

    def level(self, row: Tensor, ends: tuple[Tensor, Tensor], kind: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The bounds of the leaves of a level (inf elsewhere), and the ends after the cuts."""
        found = torch.full((len(row),), torch.inf, dtype=torch.float64)
        step = max(1, NODES // max(1, max(ends[0].shape[1], self.rows.rows.a.shape[1])))
        low, high = [], []
        for i in range(0, len(row), step):
            part = slice(i, i + step)
            result, new = self._part(row[part], (ends[0][part], ends[1][part]), kind[part])
            found[part] = result
            low.append(new[0])
            high.append(new[1])
        return found, (torch.cat(low), torch.cat(high))

    def _part(self, row: Tensor, ends: tuple[Tensor, Tensor], kind: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        found = torch.full((len(row),), torch.inf, dtype=torch.float64)
        bounded = (kind != SPLIT).nonzero()[:, 0]
        first, last = self._take("first", len(bounded), len(self.forest.alpha))
        forest = self.forest
        hints = forest.alpha[first:last], forest.beta.part(first, last), forest.hull[first:last]
        bound = self._bound(row, ends, bounded, *hints)
        found[bounded] = bound.least(self.ball)
        with_cut = (kind == CUT) | (kind == EMPTY) | (kind == CUT_SPLIT)
        cut = with_cut.nonzero()[:, 0]
        first, last = self._take("cut", len(cut), len(self.forest.cut.count))
        if len(cut):
            mine = with_cut[bounded].nonzero()[:, 0]
            old = ends[0][cut], ends[1][cut]
            new = tightened(self.net, old, bound.pick(mine), self.forest.cut.part(first, last))
            ends = ends[0].index_copy(0, cut, new[0]), ends[1].index_copy(0, cut, new[1])
        again = (kind == CUT).nonzero()[:, 0]
        first, last = self._take("second", len(again), len(self.forest.alpha2))
        if len(again):
            hints = forest.alpha2[first:last], forest.beta2.part(first, last), forest.hull2[first:last]
            second = self._bound(row, ends, again, *hints).least(self.ball)
            found[again] = torch.maximum(found[again], second)
        empty = (ends[0] > ends[1]).any(1)
        # NaN proves nothing: it becomes the least value there is.
        found = torch.where(
            empty, torch.full_like(found, torch.inf), found.nan_to_num(nan=-torch.inf, posinf=torch.inf)
        )
        return torch.where(kind >= SPLIT, torch.full_like(found, torch.inf), found), ends

    def _bound(
        self, row: Tensor, ends: tuple[Tensor, Tensor], which: Tensor, alpha: Tensor, beta: Sparse, hull: Tensor
    ) -> Bound:
        rows, low, high = self.rows.pick(row[which]), ends[0][which], ends[1][which]
        slopes, pulls = alpha.to(torch.float64) / 255.0, beta.dense(ends[0].shape[1])
        if not bool(hull.any()):
            return sweep(self.net, rows, (low, high), slopes, pulls)
        c, h = (~hull).nonzero()[:, 0], hull.nonzero()[:, 0]
        chords = sweep(self.net, rows.pick(c), (low[c], high[c]), slopes[c], pulls[c])
        hulls = self.hulls.sweep(rows.pick(h), (low[h], high[h]), slopes[h], pulls[h])
        return Bound.join([chords, hulls]).pick(torch.argsort(torch.cat([c, h])))

    def children(self, row: Tensor, ends: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Both children of every inner node, the active one first."""
        first, last = self._take("split", len(row), len(self.forest.split))
        at = self.forest.split[first:last, None]
        zero = torch.zeros((len(row), 1), dtype=torch.float64)
        low = ends[0].scatter(1, at, ends[0].gather(1, at).maximum(zero))
        high = ends[1].scatter(1, at, ends[1].gather(1, at).minimum(zero))
        n = ends[0].shape[1]
        shape = (2 * len(row), n)
        both = torch.stack([low, ends[0]], 1).reshape(shape), torch.stack([ends[1], high], 1).reshape(shape)
        return row.repeat_interleave(2), both


def tightened(net: Neurons, ends: tuple[Tensor, Tensor], cut: Bound, chosen: Sparse) -> tuple[Tensor, Tensor]:
    """The ends of nodes under their own cuts, for the (node, end) pairs and multipliers that were chosen."""
    low, high = ends[0].clone(), ends[1].clone()
    column, side, node = chosen.place // 2, chosen.place % 2, chosen.node
    for first, last in net.blocks:
        pairs = ((column >= first) & (column < last)).nonzero()[:, 0]
        step = max(1, NODES // 4 // max(1, max(first, net.own.rows.a.shape[1])))
        for i in range(0, len(pairs), step):
            p = pairs[i : i + step]
            bound = hidden(net, (low, high), node[p], column[p], side[p], first)
            found = under_cut(net.ball, bound, cut, node[p], chosen.value[p])
            down, up = side[p] == 0, side[p] == 1
            _raise(low, node[p][down], column[p][down], found[down])
            _raise(high, node[p][up], column[p][up], found[up], -1.0)
    return low, high


def _raise(ends: Tensor, node: Tensor, column: Tensor, found: Tensor, sign: float = 1.0) -> None:
    old = sign * ends[node, column]
    ends[node, column] = sign * torch.where(found > old, found, old)


def hidden(net: Neurons, ends: tuple[Tensor, Tensor], node: Tensor, column: Tensor, side: Tensor, first: int) -> Bound:
    """Lower bounds of z (side 0) or −z (side 1) for neurons of the block that begins at `first`."""
    asked = net.own.pick(column).times(1.0 - 2.0 * side.to(torch.float64))
    if not first:
        return Bound(asked.rows.a, asked.rows.b - asked.charge, asked.size)
    inside = ends[0][node, :first], ends[1][node, :first]
    return sweep(net, asked, inside, rule(*inside))


def under_cut(ball: Ball, bound: Bound, cut: Bound, node: Tensor, price: Tensor) -> Tensor:
    """Lower bounds where the cuts of their nodes, cut ≤ 0, hold, for a multiplier λ ≥ 0 of each; `bound` is used up."""
    price = price.clamp_min(0.0)
    c = cut.c[node]
    mixed = bound.a.addcmul_(price[:, None], cut.a[node])
    size = (bound.size + price * cut.size[node]) * UP
    constant = bound.c + price * c
    lost = gamma(4) * (size + bound.c.abs() + price * c.abs()) * UP + TINY
    return ball.least(mixed, constant - lost, size)
