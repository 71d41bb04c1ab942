"""Radius: how far one input can move, proven from below and witnessed from above; either end may be absent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from radii._html import table
from radii.errors import Contradiction, InputError
from radii.problem.answer import Proof, Witness
from radii.problem.tolerance import Tolerance, closing_gap

ALARM = "contradiction: "  # how the note of a radius begins whose ends cannot both be right


class Status(StrEnum):
    """What is known of a radius."""

    CLOSED = "closed"  # the ends are within the tolerance (or one grid step)
    OPEN = "open"  # a verification gap remains
    MISCLASSIFIED = "misclassified"  # the input is on the wrong side already: radius 0
    UNSOLVED = "unsolved"  # no query was answered
    ROBUST = "robust"  # proven at the largest ε asked, never broken


@dataclass(frozen=True, slots=True)
class Cost:
    """What a radius cost to find."""

    queries: int = 0
    timeouts: int = 0
    memory_errors: int = 0
    cancelled: int = 0
    nodes: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory: int = 0


@dataclass(frozen=True, slots=True)
class Radius:
    """The interval [lower, upper] that holds the critical ε of one input.

    `lower` is the largest ε proven robust, `upper` the smallest ε with a replayed witness; None means absent.
    `limit` is the largest ε that was asked, None for no limit. `evidence` re-verifies `lower` without searching, where
    it was asked for and could be made.
    """

    lower: float | None = None
    upper: float | None = None
    tolerance: Tolerance = 0.0
    limit: float | None = None
    misclassified: bool = False
    witness: Witness | None = None
    proof: Proof | None = None
    prediction: int | None = None
    critical_termination: bool = False
    cost: Cost = field(default_factory=Cost)
    note: str = ""
    evidence: bytes | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, end in (("lower", self.lower), ("upper", self.upper)):
            if end is not None and not (math.isfinite(end) and end >= 0):
                raise InputError(f"radius: expected {name} to be absent or a finite number ≥ 0, got {end!r}")
        if self.misclassified and (self.lower, self.upper) != (0.0, 0.0):
            raise InputError("radius: a misclassified input has radius 0 at both ends")
        if not self.misclassified and self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise Contradiction(
                f"proven robust up to {self.lower!r} but a witness at {self.upper!r} was replayed: one of them is wrong"
            )

    @staticmethod
    def wrong(prediction: int | None = None, witness: Witness | None = None, cost: Cost | None = None) -> Radius:
        """The radius of a misclassified input: 0, without a search."""
        return Radius(
            0.0,
            0.0,
            misclassified=True,
            prediction=prediction,
            witness=witness,
            cost=cost if cost else Cost(),
        )

    @staticmethod
    def found(lower: float | None, upper: float | None, **more: Any) -> Radius:
        """The radius of ends that were found; where they contradict each other only an alarm that names both.

        The witness was replayed, so it stands; what is wrong with the proof is not known, so none is kept.
        """
        try:
            return Radius(lower, upper, **more)
        except Contradiction as error:
            return Radius(None, upper, **{**more, "proof": None, "evidence": None, "note": f"{ALARM}{error}"})

    @property
    def alarm(self) -> str:
        """The contradiction that stopped the search of this radius, empty when none did."""
        return self.note if self.note.startswith(ALARM) else ""

    @property
    def status(self) -> Status:
        """What is known: see `Status`."""
        if self.misclassified:
            return Status.MISCLASSIFIED
        if self.upper is not None:
            # Without a proof the radius is still not below 0: the input itself is classified correctly.
            near = closing_gap(self.tolerance, self.upper) * (1 + 1e-9)
            return Status.CLOSED if self.upper - (self.lower or 0.0) <= near else Status.OPEN
        if self.lower is None:
            return Status.UNSOLVED
        return Status.ROBUST if self.limit is not None and self.lower >= self.limit else Status.OPEN

    @property
    def gap(self) -> float | None:
        """upper − lower, None when an end is absent."""
        return None if self.lower is None or self.upper is None else self.upper - self.lower

    def _repr_html_(self) -> str:
        """The radius as a table, for notebooks."""
        rows = [
            ("proven robust up to", None if self.lower is None else repr(self.lower)),
            ("broken at", None if self.upper is None else repr(self.upper)),
            ("status", self.status),
            ("prediction", self.prediction),
            ("witness taken for", None if self.witness is None else self.witness.prediction),
            ("proof", None if self.proof is None else f"{self.proof.kind}, {self.proof.arithmetic} arithmetic"),
            ("CPU seconds", self.cost.cpu_seconds),
            ("note", self.note),
        ]
        return table("radius", rows)

    def narrow(self, other: Radius) -> Radius:
        """Both pieces of knowledge about the same input joined; raises `Contradiction` when they cannot both hold."""
        low = self if other.lower is None or (self.lower is not None and self.lower >= other.lower) else other
        up = self if other.upper is None or (self.upper is not None and self.upper <= other.upper) else other
        return replace(
            self,
            lower=low.lower,
            proof=low.proof,
            evidence=low.evidence,
            upper=up.upper,
            witness=up.witness,
        )
