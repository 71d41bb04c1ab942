"""Meter: how much of a budget is used, in CPU seconds, nodes and memory."""

from __future__ import annotations

from dataclasses import replace

import psutil

from radii._cpu import cpu_seconds
from radii._memory import free_memory
from radii.decide import Budget
from radii.engine.tuning import DEFAULT, Memory
from radii.problem import Reason


class Meter:
    """Measures one instance's work against its budget; `spent` counts seconds used on it before the meter was made."""

    def __init__(self, budget: Budget, spent: float = 0.0, memory: Memory = DEFAULT.memory) -> None:
        self._memory = memory
        self.budget = budget
        self.nodes = 0
        self._start = cpu_seconds() - spent
        self._process = psutil.Process()

    @property
    def cpu(self) -> float:
        """CPU seconds used."""
        return cpu_seconds() - self._start

    @property
    def limited(self) -> bool:
        """Whether seconds or nodes are limited."""
        return self.budget.seconds is not None or self.budget.nodes is not None

    @property
    def share(self) -> float:
        """The used part of the budget, 1 when it is used up; 0 while there is no limit."""
        if self.budget.nodes is not None:  # counted alone, so that a run repeats exactly
            return self.nodes / self.budget.nodes
        return 0.0 if self.budget.seconds is None else self.cpu / self.budget.seconds

    @property
    def over(self) -> Reason | None:
        """Why the work must stop now, None while it may go on."""
        if self.share >= 1.0 or (self.budget.seconds is not None and self.cpu >= self.budget.seconds):
            return Reason.TIME
        if self.budget.memory is not None and self._process.memory_info().rss > self.budget.memory:
            return Reason.MEMORY
        return None

    def within(self, share: float, extra: float) -> bool:
        """Whether less than a share of the CPU seconds of the budget, and some extra seconds, are used."""
        seconds = self.budget.seconds
        return seconds is None or self.cpu < share * seconds + extra

    @property
    def room(self) -> int:
        """Bytes that one batch of nodes may take."""
        free = free_memory()
        if self.budget.memory is not None:
            free = min(free, self.budget.memory - int(self._process.memory_info().rss))
        return max(0, free) // self._memory.batch_part

    def part(self, share: float, most: int | None = None) -> Meter:
        """A meter for a piece of the work: a share of the whole budget, no more than is left, and `most` nodes."""
        share = min(share, max(0.0, 1.0 - self.share))
        seconds, nodes = self.budget.seconds, self.budget.nodes
        if nodes is not None:
            nodes = max(1, int(share * nodes))
        nodes = min((n for n in (nodes, most) if n is not None), default=None)
        return Meter(
            replace(
                self.budget,
                seconds=None if seconds is None else max(1e-6, min(share * seconds, seconds - self.cpu)),
                nodes=nodes,
            ),
            memory=self._memory,
        )

    def take(self, part: Meter) -> None:
        """Counts the nodes of a piece of the work that has ended."""
        self.nodes += part.nodes
