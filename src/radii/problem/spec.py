"""OutputSpec: linear conditions on a network's outputs; SpecQuery: such a condition asked over a box of inputs.

A specification describes the *violation*: it is a disjunction of clauses, and a clause is a conjunction of rows
``coefficients @ values + slopes·distance <= bounds``. The values are the network's outputs or their softmax
(``of``), the distance that from the centre of the ball: slopes are 0 but for Lipschitz robustness. A network is robust
where no clause can be met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """A conjunction: every row of ``coefficients @ values + slopes·distance <= bounds`` holds."""

    coefficients: NDArray[np.float64]
    bounds: NDArray[np.float64]
    slopes: NDArray[np.float64] | None = None  # None where the distance does not count

    def __post_init__(self) -> None:
        rows = np.atleast_2d(np.asarray(self.coefficients, dtype=np.float64))
        limits = np.atleast_1d(np.asarray(self.bounds, dtype=np.float64))
        if rows.shape[0] != limits.shape[0]:
            raise InputError(f"clause: expected as many bounds as rows ({rows.shape[0]}), got {limits.shape[0]}")
        object.__setattr__(self, "coefficients", rows)
        object.__setattr__(self, "bounds", limits)

    def holds(self, values: Any, distance: float = 0.0) -> bool:
        """Whether these values at this distance meet every row, in float64."""
        left = self.coefficients @ np.asarray(values, dtype=np.float64).ravel()
        return bool(np.all((left if self.slopes is None else left + self.slopes * distance) <= self.bounds))


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A disjunction of clauses; outputs that meet any of them violate the property."""

    clauses: tuple[Clause, ...]
    of: str = "outputs"  # or "probabilities": what the rows are about
    judge: Callable[[Any, float], bool] | None = None  # decides what clauses that only enclose the violation leave open

    def __post_init__(self) -> None:
        if not self.clauses:
            raise InputError("output specification: expected at least one clause, got none")

    @property
    def outputs(self) -> int:
        """How many outputs the clauses speak of."""
        return int(self.clauses[0].coefficients.shape[1])

    @property
    def by_distance(self) -> bool:
        """Whether some row speaks of the distance too."""
        return any(clause.slopes is not None for clause in self.clauses)

    def violated(self, values: Any, distance: float = 0.0) -> bool:
        """Whether these values (outputs, or probabilities where it is `of` them) meet some clause."""
        if self.by_distance and not distance > 0:
            return False  # nothing has moved yet
        if self.judge is not None:
            return self.judge(values, distance)
        return any(clause.holds(values, distance) for clause in self.clauses)


@dataclass(frozen=True, slots=True, eq=False)
class SpecQuery:
    """Is there an x with lower ≤ x ≤ upper whose outputs violate the specification? (What VNN-LIB asks.)"""

    lower: NDArray[np.float64] = field(repr=False)
    upper: NDArray[np.float64] = field(repr=False)
    spec: OutputSpec

    def __post_init__(self) -> None:
        low, high = np.asarray(self.lower, dtype=np.float64), np.asarray(self.upper, dtype=np.float64)
        if low.shape != high.shape or not np.all(low <= high):
            raise InputError("input box: expected lower ≤ upper in every coordinate")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
