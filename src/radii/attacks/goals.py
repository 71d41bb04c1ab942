"""Goals: what attacks on queries try to reach, for every property that speaks of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from radii.models.classifier import Classifier
from radii.problem import OutputSpec, Query


@dataclass(frozen=True, eq=False)
class Goals:
    """One clause per row: the row is broken where every entry of coefficients @ outputs − bounds is at most 0.

    A query has as many rows as its property has ways to be violated; `owner` says which query a row belongs to.
    """

    coefficients: Tensor  # (rows, conditions, classes)
    bounds: Tensor  # (rows, conditions)
    owner: Tensor  # (rows,)

    @staticmethod
    def of(
        specs: Sequence[OutputSpec], device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Goals:
        """The goals of some violations; clauses with fewer conditions repeat their first one."""
        clauses = [(i, clause) for i, spec in enumerate(specs) for clause in spec.clauses]
        most = max(len(clause.bounds) for _, clause in clauses)
        take = [np.r_[np.arange(len(c.bounds)), np.zeros(most - len(c.bounds), dtype=int)] for _, c in clauses]
        rows = np.stack([c.coefficients[t] for (_, c), t in zip(clauses, take)])
        ends = np.stack([c.bounds[t] for (_, c), t in zip(clauses, take)])
        owner = torch.tensor([i for i, _ in clauses], device=device)
        return Goals(torch.tensor(rows).to(device, dtype), torch.tensor(ends).to(device, dtype), owner)

    def margins(self, outputs: Tensor) -> Tensor:
        """How far each row is from being broken."""
        return ((self.coefficients @ outputs[:, :, None])[:, :, 0] - self.bounds).amax(1)

    def take(self, index: Tensor) -> Goals:
        """Some of the rows."""
        return Goals(self.coefficients[index], self.bounds[index], self.owner[index])


def violations(classifier: Classifier, queries: Sequence[Query]) -> list[OutputSpec]:
    """What violates the property of each query; the outputs at the centres come from the original model."""
    centers = classifier.reference(np.stack([query.instance.x.reshape(classifier.input_shape) for query in queries]))
    return [
        query.property.violations(classifier.classes, query.instance.label, center)
        for query, center in zip(queries, centers)
    ]
