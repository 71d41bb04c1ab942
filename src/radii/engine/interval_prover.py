"""IntervalProver: one goal on a network with curves (Tanh, Sigmoid, products), by trees over intervals.

Networks without products are condensed once a ball (`curve_net.py`). A goal that a short tree does not close has its
hidden intervals narrowed by small trees, and then a tree again. Networks with products, and those with so few inputs
that the ball is split instead, have trees on the whole graph (`interval_tree.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from radii._torch import Tensor, torch
from radii.bounds.intermediate_curves import Place, Relaxed, relax
from radii.bounds.operands import Operands
from radii.engine.curve_hidden import narrowed
from radii.engine.curve_net import CurvedNet, condense_curves, has_form, margins_of
from radii.engine.curve_tree import CurvedTree
from radii.engine.goals import Goal
from radii.engine.interval_tree import IntervalTree
from radii.engine.prover import Limits, Prover
from radii.engine.state import RadiusState
from radii.engine.subproblem import Problem


class IntervalProver(Prover):
    """Goals of one search by trees over intervals; keeps what was proven of each ball for smaller ones."""

    def __init__(self, state: RadiusState) -> None:
        super().__init__(state)
        self.operands = Operands.of(state.margins.graph)
        self.failed = math.inf  # the least radius that a short tree did not prove
        self.intervals: dict[float, tuple[Tensor, Tensor]] = {}  # of all operands, by the radius of the ball

    def _attempt(self, radius: float, goal: Goal, limits: Limits) -> bool:
        if self.condensable:
            return self._in_stages(radius, limits, goal)
        return self._work(self._tree(radius), limits, goal.tree_nodes)

    def _decide(self, radius: float) -> bool:
        if self.condensable:
            return self._in_stages(radius, Limits())
        return self._work(self._tree(radius), Limits())

    def bounded(self, radius: float) -> Relaxed:
        return self.in_one_pass(radius, lambda: not self.state.meter.over)

    def in_one_pass(self, radius: float, go_on: Callable[[], bool]) -> Relaxed:
        place, known = Place((self.state.region(radius),)), self._proven_ends(radius)
        net = relax(self.operands, place, *known, go_on=go_on, tuning=self.state.tuning.bounds)
        self.intervals[radius] = (net.low, net.high)
        return net

    @property
    def condensable(self) -> bool:
        """Whether trees run on condensed networks: no products, more inputs than are split, no shells."""
        state, tuning = self.state, self.state.tuning
        inputs = self.operands.graph.nodes[0].size
        few = inputs <= tuning.intervals.few_inputs or not 0 < self.operands.size <= tuning.curves.most
        return not few and state.margins.slope == 0.0 and has_form(self.operands)

    def _in_stages(self, radius: float, limits: Limits, goal: Goal | None = None) -> bool:
        """Whether a ball is proven: by a short tree, or by narrowed hidden intervals and a tree that has all its share.

        A goal that may take few nodes gets no more than the short tree.
        """
        state, rule, nodes = self.state, self.state.tuning.curves, None if goal is None else goal.tree_nodes
        relaxed = self.bounded(radius)
        shift = state.thresholds(relaxed)
        net = condense_curves(relaxed, state.tuning.trees)
        shallow = len(net.blocks) < 2
        if nodes is not None or shallow or radius < self.failed:
            net = self._narrowed(net, radius, 1)
            most = nodes if shallow or nodes is not None else rule.plain_nodes
            if self._work(self._condensed_tree(net, radius, shift), limits, most):
                return True
            if shallow or nodes is not None or self._leave(radius, limits):
                return False
            self.failed = radius
        net = self._narrowed(net, radius, rule.hidden_nodes)
        if goal is not None:  # what narrowing takes is much the same for all goals, and says nothing of this one
            limits = replace(limits, until=max(limits.until, state.meter.share + goal.share))
        return not self._leave(radius, limits) and self._work(self._condensed_tree(net, radius, shift), limits)

    def _narrowed(self, net: CurvedNet, radius: float, nodes: int) -> CurvedNet:
        """The network with tighter hidden intervals, which serve smaller balls, too."""
        state = self.state
        net, visited = narrowed(net, nodes, lambda: state.meter.over is None, state.tuning)
        state.meter.nodes += visited
        if net.place is not None:
            low, high = (t.clone() for t in self.intervals[radius])
            low[0, net.place], high[0, net.place] = net.low, net.high
            self.intervals[radius] = low, high
        return net

    def _condensed_tree(self, net: CurvedNet, radius: float, shift: Tensor) -> CurvedTree:
        state = self.state
        problem = Problem.of(net, margins_of(net, state.margins.rows, shift), state.tuning)
        tree = CurvedTree(problem, radius, state.meter.room)
        state.meter.nodes += tree.visited
        return tree

    def _tree(self, radius: float) -> IntervalTree:
        """The tree of a goal on the graph, its roots bounded."""
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
