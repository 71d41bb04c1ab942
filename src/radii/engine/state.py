"""RadiusState: what a search knows of one radius, and what it may still spend; no choices are made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from radii._torch import Tensor, torch
from radii.bounds.float32 import Bounded, float32_error
from radii.bounds.region import Region
from radii.bounds.rounding import UP
from radii.engine.budget import Meter
from radii.engine.output_rows import OutputRows
from radii.engine.search_tree import SearchTree
from radii.engine.tuning import DEFAULT, Tuning
from radii.evidence.record import Recorder
from radii.problem import Reason, Tolerance
from radii.problem.tolerance import closing_gap


@dataclass(eq=False)
class RadiusState:
    """One instance's radius under search; [lower, upper] is valid at any moment.

    `attack` turns points into a lower upper end: the distance of the best witness so far, None when there is none.
    """

    margins: OutputRows
    region: Callable[[float], Region]  # the ball of a radius, of one image
    tolerance: Tolerance
    meter: Meter
    attack: Callable[[Tensor], float | None]
    deployed: bool = False  # whether margins must survive the rounding of a float32 forward pass
    upper: float | None = None
    limit: float | None = None  # the largest radius of interest
    tuning: Tuning = DEFAULT
    lower: float = 0.0
    proven: bool = False  # whether `lower` was proven at all
    stopped: Reason | None = None  # why the search ended before the radius was closed
    recorder: Recorder | None = None  # hears of the trees, for evidence
    overflow: float | None = None  # a radius at which a float32 forward pass may overflow, where one was met

    def goal(self) -> float:
        """The largest radius worth proving."""
        return min(e for e in (self.limit, self._below_upper()) if e is not None)

    def _below_upper(self) -> float | None:
        goals = self.tuning.goals
        if self.upper is None:
            return None
        gap = closing_gap(self.tolerance, self.upper)
        return max(self.upper - goals.below_upper * gap, goals.least_goal * self.upper)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to prove."""
        return self.proven and self.lower >= self.goal()

    def within(self, until: float) -> bool:
        """Whether there is budget left, and less of it is used than this share."""
        return self.meter.over is None and self.meter.share < until

    def over(self) -> bool:
        """Whether the budget is used up; takes note of it."""
        self.stopped = self.meter.over
        return self.stopped is not None

    def shrank(self, radius: float) -> bool:
        """Whether a witness so near was met that this goal wants the tighter bounds of a smaller ball."""
        return self.goal() < self.tuning.goals.rebuild * radius

    def prove(self, radius: float) -> None:
        """Takes note that no violation is closer than this."""
        self.lower = max(self.lower, radius)
        self.proven = self.proven or radius > 0

    def learn(self, tree: SearchTree[Any]) -> None:
        """Takes over what a tree has proven."""
        if tree.lower > self.lower or tree.done:
            self.prove(tree.lower)
            if self.recorder is not None and tree.log is not None:
                self.recorder.proved(tree.log, tree.lower)

    def strike(self, tree: SearchTree[Any]) -> bool:
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

    def thresholds(self, bounded: Bounded) -> Tensor:
        """What every margin has to exceed: its shift and, for deployed networks, the float32 error on the ball.

        Infinite where a float32 forward pass may overflow.
        """
        rows, shift = self.margins.rows, self.margins.shift
        if not self.deployed:
            return shift
        error = float32_error(bounded)[0]
        if not bool(error.isfinite().all()):
            return torch.full_like(shift, torch.inf)
        return shift + (rows.abs() @ error) * UP
