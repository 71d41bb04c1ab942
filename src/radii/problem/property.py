"""Property: what must hold everywhere in the ball.

Each property says, for a network with `classes` outputs, which linear conditions on the outputs violate it
(`violations`), so that attacks, bounds and solvers need to know conditions only. Outputs are the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from radii._check import number, whole
from radii.errors import InputError
from radii.problem.spec import Clause, OutputSpec


@runtime_checkable
class Property(Protocol):
    """What must hold in the ball around an input."""

    @property
    def kind(self) -> str:
        """The name used in study files and tables."""
        ...

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        """The outputs that break the property; `reference` are the outputs at the centre of the ball."""
        ...


@dataclass(frozen=True, slots=True)
class Classification:
    """The label stays on top: of every other class, or of one `target` class. A tie breaks it."""

    target: int | None = None

    def __post_init__(self) -> None:
        if self.target is not None:
            whole(self.target, "target")

    @property
    def kind(self) -> str:
        return "classification"

    def targets(self, classes: int, label: int) -> tuple[int, ...]:
        """The classes that must not reach the label's output."""
        if not 0 <= label < classes:
            raise InputError(f"label: expected a class from 0 to {classes - 1}, got {label}")
        if self.target is None:
            return tuple(c for c in range(classes) if c != label)
        if not 0 <= self.target < classes:
            raise InputError(f"target: expected a class from 0 to {classes - 1}, got {self.target}")
        if self.target == label:
            raise InputError(f"target: expected another class than the label, got {self.target} for both")
        return (self.target,)

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return OutputSpec(
            tuple(Clause(_difference(classes, label, target), np.zeros(1)) for target in self.targets(classes, label))
        )


@dataclass(frozen=True, slots=True)
class StrongClassification:
    """The label's output stays at eta or above."""

    eta: float

    def __post_init__(self) -> None:
        number(self.eta, "eta")

    @property
    def kind(self) -> str:
        return "strong"

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        row = np.zeros((1, classes))
        row[0, label] = 1.0
        return OutputSpec((Clause(row, np.array([self.eta])),))


@dataclass(frozen=True, slots=True)
class Standard:
    """No output moves by delta or more from its value at the centre."""

    delta: float

    def __post_init__(self) -> None:
        number(self.delta, "delta", low=0.0, strict=True)

    @property
    def kind(self) -> str:
        return "standard"

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        if reference is None:
            raise InputError("standard robustness: expected the outputs at the centre as reference, got none")
        center = np.asarray(reference, dtype=np.float64).ravel()
        unit = np.eye(classes)
        up = [Clause(-unit[j : j + 1], np.array([-(center[j] + self.delta)])) for j in range(classes)]
        down = [Clause(unit[j : j + 1], np.array([center[j] - self.delta])) for j in range(classes)]
        return OutputSpec(tuple(up + down))


@dataclass(frozen=True, slots=True)
class Lipschitz:
    """Outputs move at most `constant` times as far as the input; not a condition on the outputs alone."""

    constant: float

    def __post_init__(self) -> None:
        number(self.constant, "constant", low=0.0, strict=True)

    @property
    def kind(self) -> str:
        return "lipschitz"

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        raise InputError("lipschitz: expected a property of the outputs alone; this one also speaks of the distance")


def _difference(classes: int, label: int, target: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    row = np.zeros((1, classes))
    row[0, label], row[0, target] = 1.0, -1.0
    return row
