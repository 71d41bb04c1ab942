"""GridSearch: what every search over a grid keeps; a search itself only chooses where to ask next.

Pure ask/tell: no clocks, no solvers, no processes. `ask` gives the positions to start now, `tell` takes one answer and
gives the positions that it made redundant, which the driver cancels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from radii._check import whole
from radii.errors import Contradiction, InputError
from radii.problem import Reason, Verdict
from radii.search.grid import Grid


@dataclass(slots=True)
class Counts:
    """The counts of Tables 1 and 4: `failed` are missing answers that are neither time-outs nor memory errors."""

    queries: int = 0
    timeouts: int = 0
    memory_errors: int = 0
    cancelled: int = 0
    failed: int = 0


class GridSearch(ABC):
    """One instance's search: `low` is the last proven position (-1: none), `high` the first broken one (n: none)."""

    def __init__(self, grid: Grid, k: int = 1) -> None:
        self.grid = grid
        self.k = whole(k, "k", low=1)
        self.low = -1
        self.high = len(grid)
        self.running: set[int] = set()
        self.missing: set[int] = set()
        self.counts = Counts()
        self._asked: set[int] = set()

    @abstractmethod
    def choose(self, free: int) -> list[int]:
        """Up to `free` open positions to ask next; none when nothing is worth asking."""

    def ask(self) -> list[int]:
        """The positions to start now, so that at most k run."""
        free = self.k - len(self.running)
        chosen = self.choose(free) if free > 0 else []
        self.running.update(chosen)
        self._asked.update(chosen)
        self.counts.queries += len(chosen)
        return chosen

    def tell(self, position: int, verdict: Verdict, reason: Reason | None = None) -> list[int]:
        """Take the answer for one asked position; gives the running positions that need no answer any more.

        An answer that comes after its query was cancelled is checked for contradiction and otherwise ignored.
        """
        if position not in self._asked:
            raise InputError(f"search: expected an answer to a query that was asked, got position {position}")
        late = position not in self.running
        self.running.discard(position)
        if verdict is Verdict.ROBUST:
            self._refuse(position >= self.high, self.grid[position], self.high)
            self.low = max(self.low, position)
        elif verdict is Verdict.BROKEN:
            self._refuse(position <= self.low, self.grid[position], self.low)
            self.high = min(self.high, position)
        elif not late:
            self._miss(position, reason)
        return self._prune()

    @property
    def done(self) -> bool:
        """Whether nothing runs and nothing is left to ask."""
        return not self.running and not self.choose(1)

    @property
    def lower(self) -> float | None:
        """The largest ε proven robust."""
        return self.grid[self.low] if self.low >= 0 else None

    @property
    def upper(self) -> float | None:
        """The smallest ε broken."""
        return self.grid[self.high] if self.high < len(self.grid) else None

    @property
    def critical_termination(self) -> bool:
        """Whether missing answers lie between a proven and a broken ε (paper 001, section 3.2)."""
        if self.low < 0 or self.high >= len(self.grid):
            return False
        return any(self.low < p < self.high for p in self.missing)

    @property
    def unsolved(self) -> bool:
        """Whether no query was answered."""
        return self.low < 0 and self.high >= len(self.grid)

    def open_positions(self) -> list[int]:
        """The positions whose answer is not known, not missing and not being computed."""
        taken = self.running | self.missing
        return [p for p in range(self.low + 1, self.high) if p not in taken]

    def _miss(self, position: int, reason: Reason | None) -> None:
        self.missing.add(position)
        if reason is Reason.TIME:
            self.counts.timeouts += 1
        elif reason is Reason.MEMORY:
            self.counts.memory_errors += 1
        elif reason is Reason.CANCELLED:
            self.counts.cancelled += 1
        else:
            self.counts.failed += 1

    def _prune(self) -> list[int]:
        redundant = sorted(p for p in self.running if not self.low < p < self.high)
        self.running.difference_update(redundant)
        self.counts.cancelled += len(redundant)
        return redundant

    def _refuse(self, wrong: bool, epsilon: float, other: int) -> None:
        if wrong:
            proven, broken = (epsilon, self.grid[other]) if other == self.high else (self.grid[other], epsilon)
            raise Contradiction(
                f"proven robust at ε = {proven!r} but broken at ε = {broken!r}: one of the two answers is wrong"
            )
