"""Reach: how large a property's quantity gets in a ball of fixed ε; one end witnessed, the other proven."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from radii._html import table
from radii.errors import Contradiction, InputError
from radii.problem.answer import Proof, Witness
from radii.problem.radius import ALARM, Cost, Radius


class ReachStatus(StrEnum):
    """What is known of a reach."""

    CLOSED = "closed"  # the ends are within the tolerance
    OPEN = "open"  # a gap remains, or nothing was proven
    UNSOLVED = "unsolved"  # neither end is known


@dataclass(frozen=True, slots=True)
class Reach:
    """The interval [lower, upper] that holds the greatest value of a quantity in the ball (the least, if `least`).

    For a greatest value `lower` was witnessed by a replayed input and `upper` proven; for a least value the other way
    round. None means absent. `start` is the quantity at the centre, where it has one: the tolerance is a share of how
    far the proven end lies from it.
    """

    epsilon: float
    lower: float | None = None
    upper: float | None = None
    least: bool = False
    tolerance: float = 0.0
    start: float = 0.0
    resolution: float = 0.0  # a gap this small is closed: outputs in float32 cannot tell its ends apart
    unit: str = "output"
    witness: Witness | None = None
    proof: Proof | None = None
    prediction: int | None = None
    cost: Cost = field(default_factory=Cost)
    note: str = ""

    def __post_init__(self) -> None:
        for name, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None and not math.isfinite(end):
                raise InputError(f"reach: expected {name} to be absent or a finite number, got {end!r}")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise Contradiction(
                f"witnessed and proven values of a reach cross: {self.lower!r} and {self.upper!r}; one is wrong"
            )

    @staticmethod
    def found(epsilon: float, lower: float | None, upper: float | None, *, least: bool, **more: Any) -> Reach:
        """The reach of ends that were found; where they cross only the witnessed one stands, with an alarm."""
        try:
            return Reach(epsilon, lower, upper, least=least, **more)
        except Contradiction as error:
            ends = (None, upper) if least else (lower, None)
            return Reach(epsilon, ends[0], ends[1], least=least, **{**more, "proof": None, "note": f"{ALARM}{error}"})

    @property
    def alarm(self) -> str:
        """The contradiction that stopped the search of this reach, empty when none did."""
        return self.note if self.note.startswith(ALARM) else ""

    @property
    def proven(self) -> float | None:
        """The end that rests on a proof."""
        return self.lower if self.least else self.upper

    @property
    def witnessed(self) -> float | None:
        """The end that a replayed input shows."""
        return self.upper if self.least else self.lower

    @property
    def gap(self) -> float | None:
        """upper − lower, None when an end is absent."""
        return None if self.lower is None or self.upper is None else self.upper - self.lower

    @property
    def relative_gap(self) -> float | None:
        """The gap as a share of how far the proven end lies from the quantity at the centre."""
        if self.gap is None or self.proven is None:
            return None
        size = abs(self.proven - self.start)
        return 0.0 if self.gap == 0 else (self.gap / size if size > 0 else math.inf)

    @property
    def status(self) -> ReachStatus:
        """What is known: see `ReachStatus`."""
        share = self.relative_gap
        if share is None:
            return ReachStatus.UNSOLVED if self.lower is None and self.upper is None else ReachStatus.OPEN
        near = share <= self.tolerance * (1 + 1e-9) or (self.gap is not None and self.gap <= self.resolution)
        return ReachStatus.CLOSED if near else ReachStatus.OPEN

    def narrow(self, other: Reach) -> Reach:
        """Both pieces of knowledge about one ball joined; raises `Contradiction` when they cannot both hold."""
        low = self if other.lower is None or (self.lower is not None and self.lower >= other.lower) else other
        up = self if other.upper is None or (self.upper is not None and self.upper <= other.upper) else other
        proof, shown = (low, up) if self.least else (up, low)
        return replace(self, lower=low.lower, upper=up.upper, proof=proof.proof, witness=shown.witness)

    def _repr_html_(self) -> str:
        """The reach as a table, for notebooks."""
        rows = [
            ("ε", self.epsilon),
            ("witnessed", self.witnessed),
            ("proven", self.proven),
            ("unit", self.unit),
            ("status", self.status),
            ("CPU seconds", self.cost.cpu_seconds),
            ("note", self.note),
        ]
        return table("reach", rows)


Result = Radius | Reach  # what a unit of a study gives
