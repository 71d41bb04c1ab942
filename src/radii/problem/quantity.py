"""Quantity: the number that a property bounds, as rows over a network's outputs or its softmax probabilities.

A quantity is the greatest of ``coefficients @ values + offsets``, where the values are the outputs or, for
``of="probabilities"``, their softmax; divided by the distance from the centre when it is ``per_distance`` (a slope).
Its *reach* is how large it gets in a ball. A property with a threshold is violated where its quantity reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import InputError
from radii.problem.spec import Clause, OutputSpec

Vector = NDArray[np.float64]
RANGES = {"probability": (0.0, 1.0)}  # by unit: what no value of a quantity leaves, where there is such a thing


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """The greatest of some rows; `least` says that the *smallest* value of −quantity is what is reported."""

    coefficients: Vector = field(repr=False)  # (rows, outputs)
    offsets: Vector = field(repr=False)  # (rows,)
    of: str = "outputs"
    per_distance: bool = False
    least: bool = False  # the label's output or probability: its rows are negated, and the least value is reported
    unit: str = "output"
    inside: float = 1.0  # all rows below inside·threshold imply that the quantity is below the threshold
    order: float = np.inf  # the norm that joins the rows: inf takes the greatest

    def __post_init__(self) -> None:
        if self.of not in ("outputs", "probabilities"):
            raise InputError(f"quantity: expected of outputs or probabilities, got {self.of!r}")

    def rows(self, values: Any, distance: Any = 1.0) -> Vector:
        """Every row at some values (…, outputs), at some distances (…) from the centre: (…, rows)."""
        with np.errstate(invalid="ignore"):  # infinite outputs give rows that are no numbers
            found = np.asarray(values, dtype=np.float64) @ self.coefficients.T + self.offsets
        if not self.per_distance:
            return np.asarray(found)
        far = np.asarray(distance, dtype=np.float64)[..., None]
        return np.where(far > 0, found / np.where(far > 0, far, 1.0), -np.inf)

    def of_values(self, values: Any, distance: Any = 1.0) -> Any:
        """The quantity at some values: (…)."""
        rows = self.rows(values, distance)
        if np.isinf(self.order):
            return rows.max(axis=-1)
        return np.linalg.norm(np.maximum(rows, 0.0), ord=self.order, axis=-1)

    def reported(self, value: float) -> float:
        """The number that people read: the least output of the label is a minimum, not a maximum of its negative."""
        return -value if self.least else value

    def exceeding(self, threshold: float) -> OutputSpec:
        """The values that reach a threshold, one clause per row.

        Where rows are joined by a norm other than the greatest, the clauses only enclose what reaches it: proofs about
        them hold, and a witness is judged by the norm itself.
        """
        limit = threshold * self.inside
        slopes = np.array([limit]) if self.per_distance else None
        return OutputSpec(
            tuple(
                Clause(-row[None], np.array([offset - (0.0 if self.per_distance else limit)]), slopes)
                for row, offset in zip(self.coefficients, self.offsets, strict=True)
            ),
            of=self.of,
            judge=None if np.isinf(self.order) else lambda values, far: bool(self.of_values(values, far) >= threshold),
        )


def softmax(outputs: Any) -> Vector:
    """The softmax along the last axis, in float64."""
    values = np.asarray(outputs, dtype=np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def signed(unit: Vector, center: Vector) -> tuple[Vector, Vector]:
    """Rows ±(value − value at the centre) for every row of `unit`: coefficients and offsets."""
    both = np.concatenate([unit, -unit])
    return both, -(both @ center)
