"""Pursuit: narrowing one instance's radius with trees, from the attack's upper end down and from proven goals up.

The first goal is `upper` − tolerance. If its tree does not close soon, a ladder of smaller goals raises `lower`, and what
remains of the budget goes to the smallest goal that failed. At any moment [lower, upper] is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from radii.bounds.condense import condense, objectives
from radii.bounds.nodes import Problem
from radii.bounds.region import Region
from radii.bounds.root import bound_root
from radii.problem import Reason
from radii.verifiers.margins import Margins
from radii.verifiers.meter import Meter
from radii.verifiers.tree import Tree

FIRST_SHARE = 0.3  # of the budget, for the final goal before the ladder
RUNG_SHARE = 0.15
HOPELESS = 0.44  # open nodes over visited nodes: almost nothing closes
TRIAL = 300  # nodes before a tree can be called hopeless
MEMORY = 2**31  # bytes of open nodes


@dataclass(eq=False)
class Pursuit:
    """The search for one instance's radius; `attack` turns points into a lower upper end, None when it finds none."""

    margins: Margins
    region: Callable[[float], Region]  # the ball of a radius, of one image
    tolerance: float
    meter: Meter
    attack: Callable[[Tensor], float | None]
    upper: float | None = None
    limit: float | None = None
    lower: float = 0.0
    proven: bool = False  # whether `lower` was proven at all
    stopped: Reason | None = None
    trees: dict[float, Tree] = field(default_factory=dict)

    def goal(self) -> float:
        """The largest radius worth proving."""
        ends = [e for e in (self.limit, self._below_upper()) if e is not None]
        return min(ends)

    def _below_upper(self) -> float | None:
        return None if self.upper is None else max(self.upper - 0.999 * self.tolerance, 0.5 * self.upper)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to prove."""
        return self.proven and self.lower >= self.goal()

    def run(self) -> None:
        """Narrows the radius until it is closed or the budget is used up."""
        with torch.no_grad():
            self._try(self.goal(), FIRST_SHARE)
            failed = self.goal()
            while not self.finished and self.stopped is None:
                failed = min(failed, self.goal())
                if failed - self.lower <= max(0.5 * self.tolerance, 0.01 * failed):
                    self._resume(failed)
                    failed = self.goal()
                    continue
                middle = 0.5 * (self.lower + failed)
                if not self._try(middle, RUNG_SHARE):
                    failed = min(middle, self.goal())

    def decide(self, goal: float) -> None:
        """Proves or refutes one goal."""
        with torch.no_grad():
            self._work(self._tree(goal), None)

    def _resume(self, goal: float) -> None:
        """Gives the rest of the budget to the smallest goal that failed (its paused tree if there is one)."""
        self._work(self.trees.get(goal) or self._tree(goal), None)

    def _try(self, goal: float, share: float) -> bool:
        if self.meter.over is not None:
            self.stopped = self.meter.over
            return False
        return self._work(self._tree(goal), self.meter.share + share)

    def _tree(self, goal: float) -> Tree:
        """The tree of a goal, its roots bounded."""
        region, margins = self.region(goal), self.margins
        root = bound_root(margins.graph, region)
        linear = root.margins(margins.rows[None])
        undecided = (~(region.lowest(linear.a, linear.shifted() - margins.shift)[0] > 0)).nonzero()[:, 0]
        net = condense(root)
        rows = objectives(root, net, margins.rows[undecided], margins.shift[undecided])
        tree = Tree(Problem.of(net, rows), goal)
        if len(undecided):
            tree.start()
        else:
            tree.open = tree.problem.roots()
        self.trees = {goal: tree}
        self.meter.nodes += len(self.margins.rows)
        return tree

    def _work(self, tree: Tree, until: float | None) -> bool:
        """Runs a tree until it is done, has used its share, or looks hopeless; learns from it what can be learnt."""
        while True:
            self._learn(tree)
            if tree.done:
                return True
            self.stopped = self.meter.over
            if self.stopped is not None:
                return False
            if until is not None and (self.meter.share >= until or self._hopeless(tree)):
                return False
            if len(tree.open or ()) * tree.node_bytes > MEMORY:
                if until is None:
                    self.stopped = Reason.MEMORY
                return False
            before = tree.visited
            moved = tree.step()
            self.meter.nodes += tree.visited - before
            if not self._strike(tree) and not moved:
                self.stopped = Reason.INCOMPLETE
                return False

    def _strike(self, tree: Tree) -> bool:
        """Tries the tree's latest minimisers as witnesses; whether that lowered the upper end."""
        if tree.minimisers is None or not len(tree.minimisers):
            return False
        found = self.attack(tree.minimisers + self.region(tree.goal).center)
        tree.minimisers = None
        if found is None or (self.upper is not None and found >= self.upper):
            return False
        self.upper = found
        tree.relax_goal(self.goal())
        return True

    def _learn(self, tree: Tree) -> None:
        if tree.lower > self.lower or tree.done:
            self.lower = max(self.lower, tree.lower)
            self.proven = self.proven or tree.lower > 0

    @staticmethod
    def _hopeless(tree: Tree) -> bool:
        return tree.visited >= TRIAL and len(tree.open or ()) > HOPELESS * tree.visited
