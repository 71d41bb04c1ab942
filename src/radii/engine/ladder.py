"""Ladder: which radius to prove next, when what a proof costs grows steeply with the radius and is not known before.

Costs and budgets are shares of the whole budget. Costs of proven goals say how they grow; the next goal is the one
that is predicted to cost a few times the last. Goals too near each other waste the budget on what is soon overtaken,
one too far takes all of it for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from radii.engine.tuning import LadderRule


@dataclass
class Ladder:
    """Ask for `next_goal`, try it, `tell` what came of it."""

    proven: list[tuple[float, float]] = field(default_factory=list)  # (goal, cost)
    failed: tuple[float, float] | None = None  # the least goal that failed, and the share it was given
    rule: LadderRule = LadderRule()
    plain: bool = False  # whether trees of the margins alone prove goals: what they cost grows faster

    @staticmethod
    def above(lower: float, rule: LadderRule | None = None) -> Ladder:
        """A ladder from a radius that was proven at hardly any cost; 0 when none was."""
        rule = rule or LadderRule()
        return Ladder([(lower, rule.least_cost)] if lower > 0 else [], rule=rule)

    def tell(self, goal: float, proven: bool, cost: float, given: float) -> None:
        """A goal was proven at a cost, or failed with what it was given."""
        if not proven:
            self.failed = goal, given
            return
        rule = self.rule
        cost = max(cost, rule.least_cost)
        if self.failed is not None and self.proven:
            # What was learnt on a larger ball that failed makes this goal cheap, but not the ones beyond that ball.
            cost = max(cost, self.cost(goal))
        self.proven.append((goal, cost))
        if self.failed is not None and self.failed[0] <= goal * rule.same:
            self.failed = None

    def next_goal(self, lower: float, top: float, left: float) -> tuple[float, float]:
        """The next goal above `lower` and up to `top`, and the share of the budget that it may use."""
        failed, rule = self.failed, self.rule
        if failed is not None and failed[0] - lower < rule.near * top and failed[1] < left:
            return min(top, failed[0]), left  # so near: it failed for want of time
        if not self.proven:
            return (rule.first_goal * top if failed is None else 0.5 * failed[0]), rule.first * left
        goal, cost = self.proven[-1]
        last = self.cost(top)
        if last <= (rule.next_share if top < rule.next_span * goal else rule.far_share) * left and (
            failed is None or failed[0] < top
        ):
            return top, min(left, max(rule.patience * last, rule.top_share * left))
        least = max(min(rule.at_least * cost, left / rule.spare), rule.dearer * cost)
        price = max(min(rule.leap * cost, rule.at_most * left), least)
        share = min(left, rule.patience * price)
        next_one = max(goal, lower) * math.pow(price / cost, 1.0 / self.growth)
        if failed is not None and share < rule.again * failed[1]:
            next_one = min(next_one, 0.5 * (lower + failed[0]))
        return min(top, next_one, lower + 0.5 * (top - lower) + rule.beyond_half * top), share

    def cost(self, goal: float) -> float:
        """What a goal is predicted to cost."""
        known, cost = self.proven[-1]
        return cost * math.pow(max(goal / known, 1.0), self.growth)

    @property
    def growth(self) -> float:
        """The power by which costs grow with goals."""
        goal, cost = self.proven[-1]
        rule = self.rule
        far, near = ([step for step in self.proven if step[0] <= span * goal] for span in (rule.far_apart, rule.apart))
        least = rule.plain_growth if self.plain else rule.least_growth
        if not near:
            return least
        before, less = far[-1] if far else near[0]
        measured = math.log(max(cost / less, 1.0 + 1e-9)) / math.log(goal / before)
        return min(max(rule.worse * measured, least), rule.most_growth)
