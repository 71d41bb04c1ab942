"""RadiusSearch: one instance's radius, narrowed from the attack's upper end down and from proven goals up.

Three parts: the state (`state.py`) is what is known, `goals.py` chooses which radius to try next, and a prover
(`sign_prover.py` for ReLU networks, `interval_prover.py` for curves) does what can be done for one goal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from radii._torch import Tensor
from radii.bounds.lowering import is_smooth
from radii.bounds.rounding import proving
from radii.engine.budget import Meter
from radii.engine.goals import choose_goals
from radii.engine.interval_prover import IntervalProver
from radii.engine.output_rows import OutputRows
from radii.engine.prover import Prover
from radii.engine.sign_prover import SignProver
from radii.engine.state import RadiusState
from radii.problem import Reason
from radii.problem.tolerance import closing_gap


class RadiusSearch(RadiusState):
    """The search for one instance's radius, over any rows of outputs; at any moment [lower, upper] is valid."""

    def run(self) -> None:
        """Narrows the radius until it is closed or the budget is used up."""
        with proving():
            prover = self._prover
            if self.deployed:
                self._stay_finite(prover)
            if self.meter.limited and self.stopped is None:
                self._drive(prover)
            while not self.finished and self.stopped is None:
                prover.decide(self.goal())
            if not self.proven and self.stopped is Reason.TIME:
                self._one_pass(prover)

    def decide(self, goal: float) -> None:
        """Proves or refutes one goal."""
        with proving():
            prover = self._prover
            if self.deployed and self._overflows(prover, goal):
                self.overflow, self.stopped = goal, Reason.INCOMPLETE
            else:
                prover.decide(goal)

    def _stay_finite(self, prover: Prover) -> None:
        """Lowers the limit, by bisection, to a ball on which no float32 forward pass overflows."""
        low, high = 0.0, self.goal()
        if not self._overflows(prover, high):
            return
        close = max(self.tuning.goals.finest * closing_gap(self.tolerance, high), self.tuning.goals.overflow_gap * high)
        while high - low > close and self.meter.over is None:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._overflows(prover, middle) else (middle, high)
        self.overflow, self.limit = high, low
        if low == 0.0:
            self.stopped = self.meter.over or Reason.INCOMPLETE

    def _overflows(self, prover: Prover, goal: float) -> bool:
        """Whether some value of a float32 forward pass may be infinite on the ball of a goal."""
        return not bool(self.thresholds(prover.bounded(goal)).isfinite().all())

    def _one_pass(self, prover: Prover) -> None:
        """Whatever the budget says: the radius that linear bounds certify; those of smaller balls if need be.

        Balls that were bounded before are not bounded again, and what they prove makes smaller ones cheap.
        """
        rule = self.tuning.goals

        def go_on() -> bool:
            return self.meter.within(rule.last_share, rule.last_seconds)

        for part in rule.last_parts:
            bounded = prover.in_one_pass(part * self.goal(), go_on)
            linear = bounded.margins(self.margins.rows[None])
            certified = bounded.region.root(linear.a, linear.shifted() - self.thresholds(bounded))
            self.meter.nodes += len(self.margins.rows)
            self.prove(float(self.margins.greatest(certified).min()))
            if self.proven or not go_on():
                return

    def _drive(self, prover: Prover) -> None:
        """Tries one goal after another, as their choice asks for them."""
        goals = choose_goals(self)
        goal = next(goals, None)
        while goal is not None:
            outcome = prover.attempt(goal)
            try:
                goal = goals.send(outcome)
            except StopIteration:
                return

    def again(self, margins: OutputRows, meter: Meter, attack: Callable[[Tensor], float | None], limit: float) -> None:
        """Other rows of the same outputs, another budget: what is known of the balls stays, all else is forgotten."""
        self.margins, self.meter, self.attack, self.limit = margins, meter, attack, limit
        self.lower, self.upper, self.proven, self.stopped = 0.0, None, False, None

    @cached_property
    def _prover(self) -> Prover:
        """Trees over signs of ReLUs, or over intervals where there are other curves."""
        return IntervalProver(self) if is_smooth(self.margins.graph) else SignProver(self)
