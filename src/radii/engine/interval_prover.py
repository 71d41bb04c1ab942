"""IntervalProver: one goal on a network with curves (Tanh, Sigmoid, products), by trees over intervals."""

from __future__ import annotations

from collections.abc import Callable

from radii._torch import Tensor, torch
from radii.bounds.intermediate_curves import Place, Relaxed, relax
from radii.bounds.operands import Operands
from radii.engine.goals import Goal
from radii.engine.interval_tree import IntervalTree
from radii.engine.prover import Limits, Prover
from radii.engine.state import RadiusState


class IntervalProver(Prover):
    """Goals of one search by trees over intervals; keeps what was proven of each ball for smaller ones."""

    def __init__(self, state: RadiusState) -> None:
        super().__init__(state)
        self.operands = Operands.of(state.margins.graph)
        self.intervals: dict[float, tuple[Tensor, Tensor]] = {}  # of all operands, by the radius of the ball

    def _attempt(self, radius: float, goal: Goal, limits: Limits) -> bool:
        return self._work(self._tree(radius), limits, goal.tree_nodes)

    def _decide(self, radius: float) -> bool:
        return self._work(self._tree(radius), Limits())

    def bounded(self, radius: float) -> Relaxed:
        return self.in_one_pass(radius, lambda: not self.state.meter.over)

    def in_one_pass(self, radius: float, go_on: Callable[[], bool]) -> Relaxed:
        place, known = Place((self.state.region(radius),)), self._proven_ends(radius)
        net = relax(self.operands, place, *known, go_on=go_on, tuning=self.state.tuning.bounds)
        self.intervals[radius] = (net.low, net.high)
        return net

    def _tree(self, radius: float) -> IntervalTree:
        """The tree of a goal, its roots bounded."""
        state, ball, net = self.state, self.state.region(radius), self.bounded(radius)
        tuning = state.tuning
        shift = state.thresholds(net)
        tree = IntervalTree(state.margins, ball, radius, self.operands, shift, tuning.intervals, tuning.trees.beyond)
        tree.start(net)
        state.meter.nodes += tree.visited
        return tree

    def _proven_ends(self, radius: float) -> tuple[Tensor, Tensor]:
        """Intervals of the smallest larger ball that was bounded; infinite where there is none."""
        larger = [size for size in self.intervals if size >= radius]
        if larger:
            return self.intervals[min(larger)]
        none = torch.full((1, self.operands.size), torch.inf, dtype=torch.float64)
        return -none, none
