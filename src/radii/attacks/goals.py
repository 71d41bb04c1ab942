"""Goals: what attacks on queries try to reach, for every property."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from radii._torch import Tensor, torch
from radii.decide import violation
from radii.models.classifier import Classifier
from radii.problem import OutputSpec, Query


@dataclass(frozen=True, eq=False)
class Goals:
    """One clause per row: broken where every entry of coefficients @ values + slopes·distance − bounds is at most 0.

    A query has as many rows as its property has ways to be violated; `owner` says which query a row belongs to. The
    values are the outputs, or their softmax.
    """

    coefficients: Tensor  # (rows, conditions, classes)
    bounds: Tensor  # (rows, conditions)
    owner: Tensor  # (rows,)
    slopes: Tensor | None = None  # (rows, conditions)
    softmax: bool = False

    @staticmethod
    def of(
        specs: Sequence[OutputSpec],
        device: torch.device | str,
        dtype: torch.dtype,
        softmax: bool = False,
    ) -> Goals:
        """The goals of some violations; clauses with fewer conditions repeat their first one.

        `softmax` says that the network ends in one, which the surface of an attack leaves off.
        """
        clauses = [(i, clause) for i, spec in enumerate(specs) for clause in spec.clauses]
        most = max(len(clause.bounds) for _, clause in clauses)
        take = [np.r_[np.arange(len(c.bounds)), np.zeros(most - len(c.bounds), dtype=int)] for _, c in clauses]

        def stacked(parts: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> Tensor:
            return torch.tensor(np.stack([p[t] for p, t in zip(parts, take)])).to(device, dtype)

        slopes = None
        if any(spec.by_distance for spec in specs):
            slopes = stacked([np.zeros(len(c.bounds)) if c.slopes is None else c.slopes for _, c in clauses])
        return Goals(
            stacked([c.coefficients for _, c in clauses]),
            stacked([c.bounds for _, c in clauses]),
            torch.tensor([i for i, _ in clauses], device=device),
            slopes,
            softmax or any(spec.of == "probabilities" for spec in specs),
        )

    def margins(self, outputs: Tensor, distance: Tensor | None = None) -> Tensor:
        """How far each row is from being broken, one row of outputs (logits) and one distance per row."""
        values = torch.softmax(outputs, 1) if self.softmax else outputs
        found = (self.coefficients @ values[:, :, None])[:, :, 0] - self.bounds
        if self.slopes is not None and distance is not None:
            found = found + self.slopes * distance[:, None]
        return found.amax(1)

    def least(self, outputs: Tensor, distance: Tensor) -> Tensor:
        """How far points are from breaking any row, for goals of one query: (points,)."""
        values = torch.softmax(outputs, 1) if self.softmax else outputs
        found = torch.einsum("rck,pk->prc", self.coefficients, values) - self.bounds
        if self.slopes is not None:
            found = found + self.slopes * distance[:, None, None]
        return found.amax(2).amin(1)

    def take(self, index: Tensor) -> Goals:
        """Some of the rows."""
        slopes = None if self.slopes is None else self.slopes[index]
        return replace(
            self,
            coefficients=self.coefficients[index],
            bounds=self.bounds[index],
            owner=self.owner[index],
            slopes=slopes,
        )


def violations(classifier: Classifier, queries: Sequence[Query]) -> list[OutputSpec]:
    """What violates the property of each query; the outputs at the centres come from the original model."""
    centers = classifier.reference(np.stack([query.instance.x.reshape(classifier.input_shape) for query in queries]))
    return [
        violation(classifier, query.property, query.instance.label, center) for query, center in zip(queries, centers)
    ]
