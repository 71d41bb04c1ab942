"""The properties that come with radii.

Each says, for a network with `classes` outputs, which linear conditions on the outputs violate it (`violations`), so
that attacks, bounds and solvers need to know conditions only. Outputs are the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from radii._check import number, whole
from radii.errors import InputError
from radii.problem.property import Property, made, register
from radii.problem.spec import Clause, OutputSpec


@register
@dataclass(frozen=True, slots=True)
class Classification(Property):
    """The label stays on top: of every other class, or of one `target` class. A tie breaks it."""

    kind = "classification"
    speaks_of = "classes"
    target: int | None = None

    def __post_init__(self) -> None:
        if self.target is not None:
            whole(self.target, "target")

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

    def asks(self, label: int) -> bool:
        return label != self.target

    @classmethod
    def each(cls, values: Mapping[str, Any], classes: int | None) -> list[Self]:
        """One property; one for each class that `target` lists; or, for `target: all`, one for every class."""
        target = values.get("target")
        if target != "all" and not isinstance(target, (list, tuple)):
            target = [target]
        given: list[Any] = ([None] if classes is None else list(range(classes))) if target == "all" else list(target)
        if not given:
            raise InputError("property: expected a target, a list of targets or all, got an empty list")
        found = [made(cls, {**values, "target": one}) for one in given]
        for one in found:
            if classes is not None and one.target is not None and one.target >= classes:
                raise InputError(f"property: expected a target from 0 to {classes - 1}, got {one.target}")
        return found


@register
@dataclass(frozen=True, slots=True)
class StrongClassification(Property):
    """The label's output stays above eta."""

    kind = "strong"
    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", number(self.eta, "eta"))

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        row = np.zeros((1, classes))
        row[0, label] = 1.0
        return OutputSpec((Clause(row, np.array([self.eta])),))


@register
@dataclass(frozen=True, slots=True)
class Standard(Property):
    """No output moves by delta or more from its value at the centre."""

    kind = "standard"
    needs_label = False
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", number(self.delta, "delta", low=0.0, strict=True))

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        if reference is None:
            raise InputError("standard robustness: expected the outputs at the centre as reference, got none")
        center = np.asarray(reference, dtype=np.float64).ravel()
        unit = np.eye(classes)
        up = [Clause(-unit[j : j + 1], np.array([-(center[j] + self.delta)])) for j in range(classes)]
        down = [Clause(unit[j : j + 1], np.array([center[j] - self.delta])) for j in range(classes)]
        return OutputSpec(tuple(up + down))


@register
@dataclass(frozen=True, slots=True)
class Lipschitz(Property):
    """Outputs move at most `constant` times as far as the input; not a condition on the outputs alone."""

    kind = "lipschitz"
    needs_label = False
    speaks_of = "distance"
    constant: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", number(self.constant, "constant", low=0.0, strict=True))

    def check(self, classes: int, label: int) -> None:
        return None

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        raise InputError("lipschitz: expected a property of the outputs alone; this one also speaks of the distance")


def _difference(classes: int, label: int, target: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    row = np.zeros((1, classes))
    row[0, label], row[0, target] = 1.0, -1.0
    return row
