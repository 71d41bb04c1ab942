"""Answer: ROBUST with a proof, BROKEN with a replayed witness, or UNKNOWN with a reason.

An answer that lacks its evidence cannot be built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import InputError


class Verdict(StrEnum):
    """What a decider can say of a query."""

    ROBUST = "robust"
    BROKEN = "broken"
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why a decider has no answer."""

    TIME = "time"
    MEMORY = "memory"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"
    ERROR = "error"
    INCOMPLETE = "incomplete"  # the method has said all it can: an attack that found nothing, a bound too loose


@dataclass(frozen=True, slots=True)
class Proof:
    """How robustness was established.

    `kind` names the method, `arithmetic` the semantics it holds for: "real" (the network over the reals),
    "float32" (also the deployed network: docs/engine.md says of which runtimes), or "claim" (an external tool's word).
    """

    kind: str
    arithmetic: str = "real"
    tool: str = "radii"

    def __post_init__(self) -> None:
        if self.arithmetic not in ("real", "float32", "claim"):
            raise InputError(f"proof: expected arithmetic real, float32 or claim, got {self.arithmetic!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """An input that breaks the property, as replayed on the original model; build it with `decide.replay`."""

    x: NDArray[np.floating[Any]] = field(repr=False)  # in the precision of the model's input
    distance: float
    prediction: int
    outputs: NDArray[np.floating[Any]] = field(repr=False)  # in the precision of the model's output


@dataclass(frozen=True, slots=True)
class Answer:
    """What a decider said of one query, and what it cost."""

    verdict: Verdict
    proof: Proof | None = None
    witness: Witness | None = None
    reason: Reason | None = None
    detail: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    nodes: int = 0
    peak_memory: int = 0

    def __post_init__(self) -> None:
        needed = {
            Verdict.ROBUST: ("a proof", self.proof),
            Verdict.BROKEN: ("a replayed witness", self.witness),
            Verdict.UNKNOWN: ("a reason", self.reason),
        }
        what, given = needed[self.verdict]
        if given is None:
            raise InputError(f"answer: expected {what} for {self.verdict}, got none")
        if self.verdict is not Verdict.BROKEN and self.witness is not None:
            raise InputError(f"answer: expected no witness for {self.verdict}")
        if self.verdict is not Verdict.ROBUST and self.proof is not None:
            raise InputError(f"answer: expected no proof for {self.verdict}")

    @staticmethod
    def robust(proof: Proof, **cost: Any) -> Answer:
        """The property holds in the whole ball."""
        return Answer(Verdict.ROBUST, proof=proof, **cost)

    @staticmethod
    def broken(witness: Witness, **cost: Any) -> Answer:
        """The witness breaks the property."""
        return Answer(Verdict.BROKEN, witness=witness, **cost)

    @staticmethod
    def unknown(reason: Reason, detail: str = "", **cost: Any) -> Answer:
        """No answer, and why."""
        return Answer(Verdict.UNKNOWN, reason=reason, detail=detail, **cost)
