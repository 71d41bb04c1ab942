"""Frontier: how far passes over a deep network get, by the nodes per neuron that they may use.

With so many nodes per neuron, goals up to some radius can be proven: the frontier. It grows slowly with the nodes, what
a pass costs about in proportion to them. So one pass that fills what is left of the budget beats many small steps: once
goals are near the frontier, the next one lies on the frontier of as many nodes as there is time for. Where that was too
far, its bounds still make goals a little below it cheap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from radii.engine.tuning import FrontierRule


@dataclass
class Frontier:
    """Ask for a `leap` after every goal that was tried, and `tell` what came of it. Costs are shares of the budget."""

    rule: FrontierRule = FrontierRule()
    nodes: float = 0.0  # per neuron, the most that a proven goal had; `rule.first` to begin with
    reach: float = 0.0  # about the largest goal that so many nodes per neuron prove
    cost: float = 0.0  # of a pass over all layers with so many
    near: bool = False  # whether the proven radius is near `reach`: before that the frontier predicts nothing
    missed: float | None = None  # a goal that failed although it had more than `nodes`
    whole: bool = False  # whether the pass for `missed` settled all layers: smaller goals start from its bounds
    gain: float = 0.0  # the power to which `reach` grows with the nodes; `rule.gain` to begin with

    def __post_init__(self) -> None:
        self.nodes, self.gain = self.nodes or self.rule.first, self.gain or self.rule.gain

    def tell(self, goal: float, proven: bool, nodes: float, cost: float, layers: tuple[int, int], lower: float) -> None:
        """A pass with so many nodes per neuron proved a goal after so many of its layers, or failed."""
        rule = self.rule
        done, self.gain = layers[0] / layers[1], rule.gain / math.sqrt(layers[1])
        if proven and nodes >= self.nodes:
            self.nodes, self.cost, self.reach = (
                nodes,
                cost / done**rule.slower,
                goal / (1.0 - rule.ahead * (1.0 - done)),
            )
            self.near, self.missed = done >= rule.near or nodes > rule.first, None
        elif not proven and nodes > self.nodes:
            self.missed, self.whole = goal, done >= 1.0
            if self.whole:
                self.nodes, self.cost = nodes, cost
        elif not proven and self.missed is not None:
            self.missed = goal
        elif not proven and lower > 0:
            self.near, self.reach, self.cost = True, 0.5 * (lower + goal), max(cost, self.cost)

    def leap(self, lower: float, top: float, left: float) -> tuple[float, float] | None:
        """The next goal and the nodes per neuron for it; None where nothing is known, or too little is left."""
        rule = self.rule
        if not self.near or left <= 0:  # time may be up since the last pass
            return None
        between = top if self.missed is None else min(top, 0.5 * (lower + self.missed))
        if self.missed is not None and self.whole and self.missed - lower > rule.close * self.missed:
            return between, rule.first
        many = self.nodes > rule.many
        fills, power = (rule.fills_many, rule.power_many) if many else (rule.fills, rule.power)
        times = min(rule.farthest, (fills * left / max(self.cost, rule.least_cost)) ** (1.0 / power))
        if times < rule.worthwhile:
            return None
        goal = min(top, max(self.reach, lower) * times**self.gain)
        if not self.whole:
            goal = min(goal, between)
        return goal, self.nodes * min(times, max(1.0, (goal / self.reach) ** (1.0 / self.gain)))
