"""Ladder: which radius to prove next, when what a proof costs grows steeply with the radius and is not known before.

Costs and budgets are shares of the whole budget. Costs of proven goals say how they grow; the next goal is the one
that is predicted to cost a few times the last. Goals too near each other waste the budget on what is soon overtaken,
one too far takes all of it for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

LEAP = 2.0  # times the cost of the last proven goal, what the next one is predicted to cost
AT_MOST, AT_LEAST = 0.5, 1.5  # of what is left, and times the last cost: the most and the least of that prediction
PATIENCE = 3.0  # times the prediction, what a goal may cost
FIRST = 0.2  # of what is left, what a goal may cost before any is proven
LEAST_COST = 0.02  # what costs less says little about what comes next
AGAIN = 1.5  # times what a goal was given when it failed: with so much it may be asked for again
NEAR = 0.006  # of the top: a goal that failed within this of a proven one gets all the time that is left
TOP_NEAR, TOP_FAR, NEXT = 0.4, 0.08, 1.1  # of what is left: a top that costs less is next, up to ×NEXT or beyond
TOP_SHARE = 0.5  # of what is left, what the top may cost at least
GROWTH = 8.0, 400.0  # costs grow with the goal at least and at most to this power
WORSE = 1.2  # times the power measured so far: it grows further up
SPANS = 0.94, 0.98  # goals this far apart say how costs grow, or at least this far while there are no others


@dataclass
class Ladder:
    """Ask for `next_goal`, try it, `tell` what came of it."""

    proven: list[tuple[float, float]] = field(default_factory=list)  # (goal, cost)
    failed: tuple[float, float] | None = None  # the least goal that failed, and the share it was given

    @staticmethod
    def above(lower: float) -> Ladder:
        """A ladder from a radius that was proven at hardly any cost; 0 when none was."""
        return Ladder([(lower, LEAST_COST)] if lower > 0 else [])

    def tell(self, goal: float, proven: bool, cost: float, given: float) -> None:
        """A goal was proven at a cost, or failed with what it was given."""
        if not proven:
            self.failed = goal, given
            return
        cost = max(cost, LEAST_COST)
        if self.failed is not None and self.proven:
            # What was learnt on a larger ball that failed makes this goal cheap, but not the ones beyond that ball.
            cost = max(cost, self.cost(goal))
        self.proven.append((goal, cost))
        if self.failed is not None and self.failed[0] <= goal * 1.001:
            self.failed = None

    def next_goal(self, lower: float, top: float, left: float) -> tuple[float, float]:
        """The next goal above `lower` and up to `top`, and the share of the budget that it may use."""
        failed = self.failed
        if failed is not None and failed[0] - lower < NEAR * top and failed[1] < left:
            return min(top, failed[0]), left  # so near: it failed for want of time
        if not self.proven:
            return (0.03 * top if failed is None else 0.5 * failed[0]), FIRST * left
        goal, cost = self.proven[-1]
        last = self.cost(top)
        if last <= (TOP_NEAR if top < NEXT * goal else TOP_FAR) * left and (failed is None or failed[0] < top):
            return top, min(left, max(PATIENCE * last, TOP_SHARE * left))
        price = max(min(LEAP * cost, AT_MOST * left), min(AT_LEAST * cost, left / 1.1), 1.05 * cost)
        share = min(left, PATIENCE * price)
        next_one = max(goal, lower) * math.pow(price / cost, 1.0 / self.growth)
        if failed is not None and share < AGAIN * failed[1]:
            next_one = min(next_one, 0.5 * (lower + failed[0]))
        return min(top, next_one, lower + 0.5 * (top - lower) + 0.01 * top), share

    def cost(self, goal: float) -> float:
        """What a goal is predicted to cost."""
        known, cost = self.proven[-1]
        return cost * math.pow(max(goal / known, 1.0), self.growth)

    @property
    def growth(self) -> float:
        """The power by which costs grow with goals."""
        goal, cost = self.proven[-1]
        far, near = ([step for step in self.proven if step[0] <= span * goal] for span in SPANS)
        if not near:
            return GROWTH[0]
        before, less = far[-1] if far else near[0]
        measured = math.log(max(cost / less, 1.0 + 1e-9)) / math.log(goal / before)
        return min(max(WORSE * measured, GROWTH[0]), GROWTH[1])
