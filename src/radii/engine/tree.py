"""Tree: best-first branch and bound over the signs of neurons, on certified radii, for one image.

The tree holds open nodes of all objectives. No violation of any objective is closer than the least radius over open
nodes, and when none is open there is none in the whole ball: so `lower` is valid at any time and only grows.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.engine.branching import splits
from radii.engine.cutting import refine
from radii.engine.leaves import settle
from radii.engine.nodes import Nodes, fix
from radii.engine.pairing import with_planes, worth_planes
from radii.engine.search_tree import SearchTree
from radii.engine.slopes import climb
from radii.engine.subproblem import Problem
from radii.evidence.log import TreeLog
from radii.problem import Reason


@dataclass(eq=False)
class Tree(SearchTree[Nodes]):
    """Branch and bound on one problem; `goal` is the radius to prove (the problem's ball)."""

    problem: Problem
    goal: float
    room: int | None = None  # bytes that bounding a batch may take
    cuts: bool = True
    measures: bool = True  # whether nodes need radii and points to attack from, not only to be closed
    visited: int = 0
    minimisers: Tensor | None = None
    log: TreeLog | None = None
    steps: int = 0  # of ascent per node; 0: those of the tuning
    pairs: bool = True  # whether pair planes may still be asked for
    settles: bool = True  # whether nodes in which all signs are fixed are settled exactly

    def __post_init__(self) -> None:
        self.tuning = self.problem.tuning.trees
        self.steps = self.steps or self.tuning.steps
        self.problem = self.problem.with_hulls()
        if self.log is not None:
            self.log.hulls = self.problem.hulls
        self.open = self.problem.roots()  # with radius 0 until they are bounded

    def started(self) -> Tree:
        """The same tree with its roots bounded; without objectives it has none, and is done."""
        if len(self.open):
            self.start()
        return self

    def fitting(self, nodes: int) -> int:
        """So many nodes, or as many as can be bounded at once in the memory that there is; one always can."""
        return nodes if self.room is None else max(1, min(nodes, self.room // self.problem.node_bytes))

    def start(self, steps: int = 0) -> None:
        """Bounds the roots, with so many steps of ascent; 0: those of the tuning."""
        self.open = self._bound(self.open, steps or self.tuning.first_steps)

    def step(self) -> bool:
        """Splits the most pressing nodes and bounds their children; False when nothing is left to split."""
        self._pair()
        free = self.open.splittable
        if not bool(free.any()):
            return self.settles and self._finish()
        order = torch.argsort(
            torch.where(free, self.open.radius, torch.full_like(self.open.radius, torch.inf)), stable=True
        )
        count = min(self.fitting(2 * self.tuning.batch) // 2 or 1, int(free.sum()))
        take, rest = order[:count], order[count:]
        parents = self.open.pick(take)
        self.open = Nodes.join([self.open.pick(rest), self.divide(parents)])
        return True

    def _pair(self) -> None:
        """Gives a tree that does not close soon its pair planes; the forms of evidence know none."""
        if self.pairs and self.visited >= self.tuning.paired_from:
            self.pairs = False
            if self.measures and self.log is None and worth_planes(self.problem):
                self.problem, self.open = with_planes(self.problem, self.open)

    @property
    def incomplete(self) -> Reason | None:
        """Why the search must stop when nothing is left to split: bounds of exact leaves cannot get better."""
        return Reason.INCOMPLETE if self.settles else None

    def divide(self, nodes: Nodes) -> Nodes:
        """Those children of these nodes that stay open; the branching rule says where they are split."""
        if not len(nodes):
            return nodes
        return self._bound(fix(nodes, splits(self.problem.tuning.branching, nodes)), self.steps)

    def _finish(self) -> bool:
        """Settles nodes in which all signs are fixed; False when that closed none of them."""
        leaves = self.open.pick(torch.arange(min(len(self.open), self.tuning.batch)))
        rest = self.open.pick(torch.arange(len(leaves), len(self.open)))
        split = leaves.sign.clone()
        lowest, points = settle(self.problem, leaves)
        self._tell(2, leaves, split)
        leaves.beta, leaves.share = leaves.beta.to(torch.float32), leaves.share.to(torch.float32)
        left = self._alive(leaves, lowest)
        left.radius = torch.maximum(left.radius, self.problem.fine.region.root(left.a[None], left.c[None])[0])
        left = left.where(left.radius < self.goal)
        self.minimisers = torch.cat([points, self._candidates(left)])
        self.open = Nodes.join([rest, left])
        return len(left) < len(leaves)

    def _bound(self, nodes: Nodes, steps: int) -> Nodes:
        """Those of these nodes that stay open, in parts where they do not fit into memory together."""
        size = self.fitting(len(nodes))
        if size >= len(nodes):
            return self._bound_at_once(nodes, steps)
        kept, points = [], []
        for first in range(0, len(nodes), size):
            kept.append(self._bound_at_once(nodes.pick(torch.arange(first, min(first + size, len(nodes)))), steps))
            points += [] if self.minimisers is None else [self.minimisers]
            self.minimisers = None
        self.minimisers = torch.cat(points) if points else None
        return Nodes.join(kept)

    def _bound_at_once(self, nodes: Nodes, steps: int) -> Nodes:
        self.visited += len(nodes)
        possible = ~(nodes.low > nodes.high).any(1)
        nodes = nodes.where(possible)
        lowest = climb(self.problem, nodes, steps)
        self._tell(1, nodes)
        nodes = self._alive(nodes, lowest)
        if self.cuts and len(nodes):
            empty = refine(self.problem, nodes, both=self.measures)
            nodes = nodes.where(~empty)
            if len(nodes):
                lowest = climb(self.problem, nodes, self.steps)
                self._tell(2, nodes)
                nodes = self._alive(nodes, lowest)
        if len(nodes) and self.measures:
            region = self.problem.net.region
            found = region.root(nodes.a[None], nodes.c[None])[0]
            nodes.radius = torch.maximum(nodes.radius, found)
            nodes = nodes.where(nodes.radius < self.goal)
            self.minimisers = self._candidates(nodes)
        return nodes

    def _tell(self, stage: int, nodes: Nodes, splits: Tensor | None = None) -> None:
        if self.log is not None:
            self.log.tell(stage, nodes, splits)

    def _candidates(self, nodes: Nodes) -> Tensor:
        """Where the bounds are least: at the goal, and just beyond the certified radius, the nearest a break can be."""
        region = self.problem.fine.region
        points = [region.minimiser(nodes.a[None])[0]]
        for factor, step in self.tuning.beyond:
            near = torch.minimum(nodes.radius * factor + step, region.epsilon)
            points.append(region.minimiser(nodes.a[None], near[None])[0])
        return torch.cat(points)

    @staticmethod
    def _alive(nodes: Nodes, lowest: Tensor) -> Nodes:
        # Written so that NaN stays open: only a bound above 0 closes a node.
        return nodes.where(~(lowest > 0))
