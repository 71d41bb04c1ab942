"""CurvedTree: best-first branch and bound over intervals of neurons, on a condensed network with Tanh.

What `IntervalTree` is for whole graphs: open nodes of all objectives, no violation closer than their least radius. All
later work of a goal happens on a few dense matrices, and bounds of hidden neurons climb their own slopes once a ball.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.engine.curve_branching import children
from radii.engine.curve_cutting import refine
from radii.engine.curve_net import curved
from radii.engine.curve_nodes import CurvedNodes, splittable
from radii.engine.curve_slopes import climb
from radii.engine.search_tree import SearchTree
from radii.engine.subproblem import Problem
from radii.problem import Reason


@dataclass(eq=False)
class CurvedTree(SearchTree[CurvedNodes]):
    """Branch and bound on one problem; `goal` is the radius to prove (the problem's ball)."""

    problem: Problem
    goal: float
    room: int | None = None  # bytes that bounding a batch may take
    visited: int = 0
    minimisers: Tensor | None = None

    def __post_init__(self) -> None:
        self.tuning = self.problem.tuning.curves
        count = len(self.problem.fine.objectives.b)
        roots = CurvedNodes.roots(curved(self.problem.net), torch.arange(count))
        self.open = self._bound(roots, self.tuning.first_steps)

    @property
    def incomplete(self) -> Reason | None:
        """Why the search must stop when nothing is left to split: intervals are as thin as rounding allows."""
        return Reason.INCOMPLETE

    def step(self) -> bool:
        """Splits the most pressing nodes and bounds their parts; False when nothing is left to split."""
        free = splittable(self.open, self.tuning).any(1)
        if not bool(free.any()):
            return False
        order = torch.argsort(
            torch.where(free, self.open.radius, torch.full_like(self.open.radius, torch.inf)), stable=True
        )
        fits = 2 * self.tuning.batch if self.room is None else self.room // self.problem.node_bytes
        count = min(self.tuning.batch, max(1, fits // 2), int(free.sum()))
        take, rest = order[:count], order[count:]
        parts = children(self.problem, self.open.pick(take))
        self.open = CurvedNodes.join([self.open.pick(rest), self._bound(parts, self.tuning.steps)])
        return True

    def _bound(self, nodes: CurvedNodes, steps: int) -> CurvedNodes:
        """Those of these nodes that stay open."""
        self.visited += len(nodes)
        nodes = nodes.where(~(nodes.low > nodes.high).any(1))
        # Written so that NaN stays open: only a bound above 0 closes a node.
        nodes = nodes.where(~(climb(self.problem, nodes, steps) > 0))
        if len(nodes):
            nodes = nodes.where(~refine(self.problem, nodes))
            nodes = nodes.where(~(climb(self.problem, nodes, self.tuning.steps) > 0))
        if len(nodes):
            found = self.problem.net.region.root(nodes.a[None], nodes.c[None])[0]
            nodes.radius = torch.maximum(nodes.radius, found)
            nodes = nodes.where(nodes.radius < self.goal)
        self.minimisers = self._candidates(nodes) if len(nodes) else None
        return nodes

    def _candidates(self, nodes: CurvedNodes) -> Tensor:
        """Where the bounds are least: at the goal, and just beyond the certified radius, the nearest a break can be."""
        region = self.problem.fine.region
        points = [region.minimiser(nodes.a[None])[0]]
        for factor, step in self.problem.tuning.trees.beyond:
            near = torch.minimum(nodes.radius * factor + step, region.epsilon)
            points.append(region.minimiser(nodes.a[None], near[None])[0])
        return torch.cat(points)
