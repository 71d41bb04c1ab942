"""Grow: trees for the checker, from what the engine logged; every node is bounded in the checker's own arithmetic.

Where the engine's slopes and multipliers close a node it becomes a leaf, wherever in the engine's tree that is. Where
they do not, and the engine has nothing more to say, a few steps of ascent and, if need be, splits of its own are tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from radii._torch import Tensor, torch
from radii.errors import InputError
from radii.evidence.ball import Ball
from radii.evidence.hull import Hulls
from radii.evidence.log import Key, Step, TreeLog
from radii.evidence.network import Rows
from radii.evidence.prices import choose
from radii.evidence.proof import CUT, CUT_SPLIT, EMPTY, LEAF, NODES, Forest, Sparse, tightened
from radii.evidence.sweep import Bound, Neurons, backwards, chords, rule, sweep

ASCENT = 24  # steps of ascent for a node that its hints do not close
EXTRA = 400  # nodes that one group may have beyond those of the engine's tree
NEAR = 1e-9  # part of what a bound is made of: by less than this nothing is closed through hulls


class Source:
    """One logged tree, in the columns of the checker."""

    def __init__(
        self,
        log: TreeLog,
        columns: dict[tuple[int, int], int],
        active: dict[int, Tensor],
        places: Collection[int] | None = None,
    ) -> None:
        self.steps = log.steps(places)
        own = [(int(r), int(v)) for r, v in log.columns]
        self.to = np.array([columns.get(pair, -1) for pair in own], dtype=np.int64)
        self.fixed = np.array([pair not in columns and bool(active[pair[0]][pair[1]]) for pair in own], dtype=bool)
        self.split: dict[tuple[int, Key], int] = {}
        for row, key in self.steps:
            for place, piece in enumerate(key):
                parent = (row, key[:place] + key[place + 1 :])
                if parent in self.steps:
                    self.split[parent] = piece // 2


@dataclass(frozen=True, eq=False)
class Hint:
    """Where a node of the new tree stands in a logged one; None when the log has nothing to say."""

    source: Source | None
    row: int
    key: Key

    def step(self, stage: int) -> Step | None:
        """What was logged of the node, of the other stage if not of this one."""
        if self.source is None:
            return None
        known = self.source.steps.get((self.row, self.key), {})
        return known.get(stage) or known.get(3 - stage)

    def child(self, column: int, active: bool) -> Hint:
        """The hint of a child."""
        return Hint(self.source, self.row, tuple(sorted((*self.key, 2 * column + active))))


@dataclass(eq=False)
class _Level:
    row: Tensor
    hints: list[Hint]
    low: Tensor
    high: Tensor


@dataclass(eq=False)
class Grown:
    """A forest in the making, level by level."""

    kind: list[Tensor] = field(default_factory=list)
    split: list[Tensor] = field(default_factory=list)
    alpha: list[Tensor] = field(default_factory=list)
    beta: list[Tensor] = field(default_factory=list)
    alpha2: list[Tensor] = field(default_factory=list)
    beta2: list[Tensor] = field(default_factory=list)
    cut: list[Sparse] = field(default_factory=list)
    hull: list[Tensor] = field(default_factory=list)
    hull2: list[Tensor] = field(default_factory=list)

    def forest(self, width: int) -> Forest:
        """All levels as one."""
        none = torch.zeros((0, width))
        whole = {"beta": self.beta, "beta2": self.beta2}
        sparse = {name: _sparse(torch.cat([none.double(), *parts])) for name, parts in whole.items()}
        empty = torch.zeros(0, dtype=torch.int64)
        count = torch.cat([empty, *(c.count for c in self.cut)])
        place = torch.cat([empty, *(c.place for c in self.cut)])
        value = torch.cat([none.new_zeros(0).double(), *(c.value for c in self.cut)])
        return Forest(
            kind=torch.cat([empty, *self.kind]),
            split=torch.cat([empty, *self.split]),
            alpha=torch.cat([none.to(torch.uint8), *self.alpha]),
            alpha2=torch.cat([none.to(torch.uint8), *self.alpha2]),
            cut=Sparse(count, place, value),
            hull=torch.cat([empty.bool(), *self.hull]),
            hull2=torch.cat([empty.bool(), *self.hull2]),
            **sparse,
        )


def _sparse(full: Tensor) -> Sparse:
    at = full.nonzero()
    return Sparse((full != 0).sum(1), at[:, 1], full[at[:, 0], at[:, 1]])


class Grower:
    """Makes the trees of a group of rows; with `must`, a row that stays open is an error.

    `until` is the CPU time of this process at which it gives up; with `hulls`, what chords leave open is bounded once
    more through hulls of first-layer neurons.
    """

    def __init__(
        self, net: Neurons, rows: Rows, ball: Ball, must: bool, until: float = math.inf, hulls: bool = False
    ) -> None:
        self.net, self.rows, self.ball, self.must = net, net.charged(rows), ball, must
        self.width = len(net.low)
        self.hulls = Hulls.of(net, ball) if hulls and net.blocks else None
        self.extra = EXTRA
        self.until = until
        self.grown = Grown()

    def grow(self, hints: Sequence[Hint]) -> Forest:
        """The trees, one per row."""
        count = len(hints)
        ends = self.net.low.expand(count, self.width), self.net.high.expand(count, self.width)
        level = _Level(torch.arange(count), list(hints), *ends)
        while len(level.row):
            step = max(1, NODES // max(1, self.width, self.rows.rows.a.shape[1]))
            parts = [self._part(self._slice(level, i, i + step)) for i in range(0, len(level.row), step)]
            level = _Level(
                torch.cat([p.row for p in parts]),
                [hint for p in parts for hint in p.hints],
                torch.cat([p.low for p in parts]),
                torch.cat([p.high for p in parts]),
            )
        return self.grown.forest(self.width)

    @staticmethod
    def _slice(level: _Level, first: int, last: int) -> _Level:
        return _Level(level.row[first:last], level.hints[first:last], level.low[first:last], level.high[first:last])

    def _part(self, level: _Level) -> _Level:
        """Settles some nodes of a level and returns the children of those that are split."""
        if time.process_time() > self.until:
            raise InputError("making it took too long")
        ends = level.low, level.high
        alpha, beta = self._hinted(level, ends, 1)
        empty = (level.low > level.high).any(1)
        bound, value, hull = self._best(level.row, ends, alpha, beta, empty)
        closed = empty | (value > 0)
        kind = torch.full((len(level.row),), LEAF)
        open_ = (~closed).nonzero()[:, 0]
        self.grown.alpha.append(alpha)
        self.grown.beta.append(beta)
        self.grown.hull.append(hull)
        children = _Level(level.row[:0], [], level.low[:0], level.high[:0])
        if len(open_):
            part = _Level(level.row[open_], [level.hints[i] for i in open_.tolist()], ends[0][open_], ends[1][open_])
            kind[open_], children = self._cut(part, bound.pick(open_))
        self.grown.kind.append(kind)
        return children

    def _cut(self, level: _Level, cut: Bound) -> tuple[Tensor, _Level]:
        """Kinds of nodes that their first bound left open, and the children of those that are split."""
        prices = choose(self.net, (level.low, level.high), cut)
        self.grown.cut.append(prices)
        ends = tightened(self.net, (level.low, level.high), cut, prices)
        kind = torch.full((len(level.row),), CUT_SPLIT)
        empty = (ends[0] > ends[1]).any(1)
        kind[empty] = EMPTY
        alpha, beta = self._hinted(level, ends, 2)
        _, value, hull = self._best(level.row, ends, alpha, beta, empty)
        splits = [self._split(hint, ends, i) for i, hint in enumerate(level.hints)]
        stuck = [i for i, split in enumerate(splits) if split is None and not bool(empty[i]) and not bool(value[i] > 0)]
        if stuck:
            self._rescue(level, ends, torch.tensor(stuck), (alpha, beta, value, hull))
        kind[~empty & (value > 0)] = CUT
        for i in stuck:
            if not bool(value[i] > 0):
                splits[i] = self._own(level, ends, i, alpha, beta)
                kind[i] = CUT if splits[i] is None else CUT_SPLIT
        again = kind == CUT
        self.grown.alpha2.append(alpha[again])
        self.grown.beta2.append(beta[again])
        self.grown.hull2.append(hull[again])
        return kind, self._children(level, ends, kind, splits)

    def _children(
        self, level: _Level, ends: tuple[Tensor, Tensor], kind: Tensor, splits: list[tuple[Hint, int, int] | None]
    ) -> _Level:
        rows, hints, low, high, columns = [], [], [], [], []
        for i in (kind == CUT_SPLIT).nonzero()[:, 0].tolist():
            found = splits[i]
            assert found is not None
            hint, own, column = found
            columns.append(column)
            for active in (True, False):
                pair = ends[0][i].clone(), ends[1][i].clone()
                pair[0 if active else 1][column] = 0.0
                rows.append(level.row[i])
                hints.append(hint.child(own, active))
                low.append(pair[0])
                high.append(pair[1])
        self.grown.split.append(torch.tensor(columns, dtype=torch.int64))
        if not rows:
            return _Level(level.row[:0], [], level.low[:0], level.high[:0])
        return _Level(torch.stack(rows), hints, torch.stack(low), torch.stack(high))

    def _split(self, hint: Hint, ends: tuple[Tensor, Tensor], i: int) -> tuple[Hint, int, int] | None:
        """Where the log splits the node: the hint of the node, the log's column and ours; None where it does not."""
        source = hint.source
        while source is not None and (hint.row, hint.key) in source.split:
            own = source.split[hint.row, hint.key]
            column = int(source.to[own])
            if column < 0:  # decided for us: the log's node is one of its children
                hint = hint.child(own, bool(source.fixed[own]))
            elif column >= self.width or bool(ends[0][i, column] >= 0) or bool(ends[1][i, column] <= 0):
                hint = hint.child(own, column < self.width and bool(ends[0][i, column] >= 0))
            else:
                return hint, own, column
        return None

    def _hinted(self, level: _Level, ends: tuple[Tensor, Tensor], stage: int) -> tuple[Tensor, Tensor]:
        """The slopes (in 1/255) and multipliers that the log has for nodes; the rule's and none elsewhere."""
        alpha = (rule(*ends) * 255).to(torch.uint8)
        beta = torch.zeros(ends[0].shape, dtype=torch.float64)
        slopes, pulls = alpha.numpy(), beta.numpy()
        for i, hint in enumerate(level.hints):
            step = hint.step(stage)
            if step is None or hint.source is None:
                continue
            to = hint.source.to
            known = (to >= 0) & (to < self.width)
            slopes[i, to[known]] = step.alpha[known]
            for own, value in step.beta.items():
                if known[own]:
                    pulls[i, to[own]] = value
        idle = (ends[0] >= 0) | (ends[1] <= 0)
        alpha[idle] = 0  # a place that nobody reads: zeros compress well
        return alpha, beta

    def _bound(self, row: Tensor, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor) -> Bound:
        return sweep(self.net, self.rows.pick(row), ends, alpha.double() / 255.0, beta)

    def _best(
        self, row: Tensor, ends: tuple[Tensor, Tensor], alpha: Tensor, beta: Tensor, empty: Tensor
    ) -> tuple[Bound, Tensor, Tensor]:
        """Bounds of nodes, their least values, and which of them take hulls: those that chords leave open."""
        bound = self._bound(row, ends, alpha, beta)
        value, hull = bound.least(self.ball), torch.zeros_like(row, dtype=torch.bool)
        which = (~(value > 0) & ~empty).nonzero()[:, 0]
        if self.hulls is None or not len(which):
            return bound, value, hull
        mine = ends[0][which], ends[1][which]
        other = self.hulls.sweep(self.rows.pick(row[which]), mine, alpha[which].double() / 255.0, beta[which])
        least = other.least(self.ball)
        # On other machines sums round otherwise, and v with them: what a hull closes, it closes by more than that.
        higher = (least > value[which]) & ~((least > 0) & (least <= NEAR * other.size))
        at = which[higher]
        hull[at], value[at] = True, least[higher]
        for name in ("a", "c", "size"):
            getattr(bound, name)[at] = getattr(other, name)[higher]
        return bound, value, hull

    def _rescue(
        self, level: _Level, ends: tuple[Tensor, Tensor], which: Tensor, found: tuple[Tensor, Tensor, Tensor, Tensor]
    ) -> None:
        """Gradient ascent on the slopes and multipliers of nodes; α, β, values and use of hulls change in place."""
        alpha, beta, value, hull = found
        row, mine = level.row[which], (ends[0][which], ends[1][which])
        a, b = alpha[which].double() / 255.0, beta[which].clone()
        best_value, best_a, best_b = torch.full_like(value[which], -torch.inf), alpha[which], b
        rows = self.rows.pick(row)
        for step in range(ASCENT):
            with torch.enable_grad():
                a.requires_grad_(True)
                b.requires_grad_(True)
                low = sweep(self.net, rows, mine, a, b).least(self.ball)
                slope_a, slope_b = torch.autograd.grad(low.sum(), (a, b))
            rate = 0.3 * 0.9**step
            scale = slope_a.abs().amax(1, keepdim=True).clamp_min(1e-30)
            size = rows.rows.m.abs().amax(1, keepdim=True) if self.width else scale
            a = (a.detach() + rate * slope_a / scale).clamp(0.0, 1.0)
            pull = slope_b / slope_b.abs().amax(1, keepdim=True).clamp_min(1e-30)
            b = torch.where((mine[0] == 0) | (mine[1] == 0), b.detach() + 0.1 * rate * size * pull, b.detach())
            b = torch.where(mine[0] == 0, b.clamp_min(0.0), torch.where(mine[1] == 0, b.clamp_max(0.0), b))
            coarse = (a * 255).round().to(torch.uint8)
            least = self._bound(row, mine, coarse, b).least(self.ball)
            higher = least > best_value
            best_value = torch.where(higher, least, best_value)
            best_a = torch.where(higher[:, None], coarse, best_a)
            best_b = torch.where(higher[:, None], b, best_b)
            if bool((best_value > 0).all()):
                break
        _, best_value, best_hull = self._best(row, mine, best_a, best_b, torch.zeros_like(which, dtype=torch.bool))
        higher = best_value > value[which]
        at = which[higher]
        alpha[at], beta[at], value[at], hull[at] = (part[higher] for part in (best_a, best_b, best_value, best_hull))

    def _own(
        self, level: _Level, ends: tuple[Tensor, Tensor], i: int, alpha: Tensor, beta: Tensor
    ) -> tuple[Hint, int, int] | None:
        """A split of our own for a node that the log left open; None where it may stay open or nothing is left."""
        if not self.must:
            return None
        mine = ends[0][i : i + 1], ends[1][i : i + 1]
        undecided = chords(*mine)[0][0]
        if self.extra <= 0 or not bool(undecided.any()):
            raise InputError("the checker's bounds do not close what the engine's did")
        self.extra -= 2
        rows = self.rows.rows.pick(level.row[i : i + 1])
        back = backwards(self.net, rows, mine, alpha[i : i + 1].double() / 255.0, beta[i : i + 1])
        cost = (-back.v[0]).clamp_min(0.0) * back.height[0] + 1e-30
        score = torch.where(undecided, cost, torch.full_like(cost, -1.0))
        return Hint(None, 0, ()), 0, int(score.argmax())
