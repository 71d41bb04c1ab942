"""Frontier: how far passes over a deep network get, by the nodes that a hidden sign may cost in them.

With so many nodes a sign, goals up to some radius can be proven: the frontier. It grows slowly with the nodes, what a
pass costs about in proportion to them. So one pass that fills what is left of the budget beats many small steps: once
goals are near the frontier, the next one lies on the frontier of as many nodes as there is time for. Where that was too
far, its bounds still make goals a little below it cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FIRST = 16.0  # nodes a sign at first: easy goals cost little
NEAR = 0.74  # of the layers: a proof that took more of them was near the frontier
AHEAD = 0.15  # if it took fewer, by how much the frontier is farther
SLOWER = 1.4  # and by what power a pass there is dearer
FILLS = 0.85  # of what is left, what a pass may be predicted to cost
POWER = 0.85  # to which costs grow with the nodes
MANY = 64.0  # nodes a sign; from there costs grow faster and are harder to predict
FILLS_THEN, POWER_THEN = 0.72, 1.15
FARTHEST = 8.0  # times the nodes, at most, from one goal to the next
WORTHWHILE = 1.15  # and at least
GAIN = 0.11  # over the root of the number of layers: the power to which the frontier grows with the nodes
CLOSE = 0.008  # of a goal that failed: a proven one this near it is as good
LEAST_COST = 1e-6  # of the budget: a clock may see none


@dataclass
class Frontier:
    """Ask for a `leap` after every goal that was tried, and `tell` what came of it. Costs are shares of the budget."""

    nodes: float = FIRST  # that a sign may cost
    reach: float = 0.0  # about the largest goal that so many nodes prove
    cost: float = 0.0  # of a pass there
    near: bool = False  # whether what is proven is near it
    missed: float | None = None  # a goal that failed with more nodes than were known to do
    whole: bool = False  # whether all layers were settled for it: smaller goals have its bounds
    gain: float = GAIN  # the power to which the reach grows with the nodes

    def tell(self, goal: float, proven: bool, nodes: float, cost: float, layers: tuple[int, int], lower: float) -> None:
        """A pass with so many nodes a sign proved a goal after so many of its layers, or failed."""
        done, self.gain = layers[0] / layers[1], GAIN / math.sqrt(layers[1])
        if proven and nodes >= self.nodes:
            self.nodes, self.cost, self.reach = nodes, cost / done**SLOWER, goal / (1.0 - AHEAD * (1.0 - done))
            self.near, self.missed = done >= NEAR or nodes > FIRST, None
        elif not proven and nodes > self.nodes:
            self.missed, self.whole = goal, done >= 1.0
            if self.whole:
                self.nodes, self.cost = nodes, cost
        elif not proven and self.missed is not None:
            self.missed = goal
        elif not proven and lower > 0:
            self.near, self.reach, self.cost = True, 0.5 * (lower + goal), max(cost, self.cost)

    def leap(self, lower: float, top: float, left: float) -> tuple[float, float] | None:
        """The next goal and the nodes a sign may cost for it; None where nothing is known, or too little is left."""
        if not self.near:
            return None
        between = top if self.missed is None else min(top, 0.5 * (lower + self.missed))
        if self.missed is not None and self.whole and self.missed - lower > CLOSE * self.missed:
            return between, FIRST
        fills, power = (FILLS, POWER) if self.nodes <= MANY else (FILLS_THEN, POWER_THEN)
        times = min(FARTHEST, (fills * left / max(self.cost, LEAST_COST)) ** (1.0 / power))
        if times < WORTHWHILE:
            return None
        goal = min(top, max(self.reach, lower) * times**self.gain)
        if not self.whole:
            goal = min(goal, between)
        return goal, self.nodes * min(times, max(1.0, (goal / self.reach) ** (1.0 / self.gain)))
