"""Case: one instance on its way through a search, with the answers so far and what they cost."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace

from radii.errors import Contradiction
from radii.problem import Answer, Instance, Norm, Property, Query, Radius, Reason, Verdict
from radii.problem.radius import ALARM, Cost
from radii.search.machine import GridSearch

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Case:
    """An instance, its state machine and what it has heard."""

    instance: Instance
    machine: GridSearch
    prediction: int
    asked: Property
    norm: Norm
    started: float = field(default_factory=time.perf_counter)
    answers: dict[int, Answer] = field(default_factory=dict)
    pending: int = 0
    alarm: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing more will be asked."""
        return bool(self.alarm) or self.machine.done

    def query(self, position: int) -> Query:
        """The query about the ε at a position of the grid."""
        return Query(self.instance, self.machine.grid[position], self.asked, self.norm)

    def hear(self, position: int, answer: Answer) -> list[int]:
        """Tell the machine; gives the positions to cancel. A contradiction stops this instance only."""
        self.answers[position] = answer
        if self.alarm:
            return []
        try:
            return self.machine.tell(position, answer.verdict, answer.reason)
        except Contradiction as error:
            self.alarm = f"{ALARM}{error}"
            log.error("input %d: %s", self.instance.index, self.alarm)
            return sorted(self.machine.running)

    def radius(self, wall_seconds: float | None = None) -> Radius:
        """The interval found, its evidence and its cost; the wall time is that since the start unless given."""
        machine, grid = self.machine, self.machine.grid
        known = Radius(limit=grid[-1], prediction=self.prediction, cost=self._cost(wall_seconds), note=self._note())
        if self.alarm:
            # The witnesses were replayed, so they stand; which of the proofs is wrong is not known, so none is kept.
            broken = min((p for p, a in self.answers.items() if a.verdict is Verdict.BROKEN), default=None)
            return known if broken is None else replace(known, upper=grid[broken], witness=self.answers[broken].witness)
        return replace(
            known,
            lower=machine.lower,
            upper=machine.upper,
            proof=None if machine.lower is None else self.answers[machine.low].proof,
            witness=None if machine.upper is None else self.answers[machine.high].witness,
            # Nothing was asked below the first ε, so without a proof the ends cannot be within one grid step.
            tolerance=grid.step_at(machine.low) if machine.low >= 0 else 0.0,
            critical_termination=machine.critical_termination,
        )

    def _cost(self, wall_seconds: float | None) -> Cost:
        counts, answers = self.machine.counts, self.answers.values()
        return Cost(
            queries=counts.queries,
            timeouts=counts.timeouts,
            memory_errors=counts.memory_errors,
            cancelled=counts.cancelled,
            nodes=sum(a.nodes for a in answers),
            cpu_seconds=sum(a.cpu_seconds for a in answers),
            wall_seconds=time.perf_counter() - self.started if wall_seconds is None else wall_seconds,
            peak_memory=max((a.peak_memory for a in answers), default=0),
        )

    def _note(self) -> str:
        if self.alarm:
            return self.alarm
        counted = (Reason.TIME, Reason.MEMORY, Reason.CANCELLED)
        lost = [a for a in self.answers.values() if a.reason is not None and a.reason not in counted]
        if not lost:
            return ""
        return f"{len(lost)} queries without an answer, the last: {lost[-1].reason} {lost[-1].detail}".rstrip()
