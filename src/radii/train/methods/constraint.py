"""Constraint loss: any property as a loss in the translation of DL2 (Fischer et al. 2019; Casadio et al. 2022).

A property bounds a quantity by a threshold (`radii.problem`): the loss is by how much the quantity exceeds it, at a
point of the ball where projected gradient ascent makes it large. The reference is the network's *current* output at the
centre and not the true label: a robust network that is wrong is not to be punished by a loss for robustness.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from radii._check import number
from radii._torch import Tensor, torch
from radii.errors import InputError
from radii.problem import Property
from radii.problem.property import known_property
from radii.problem.quantity import Quantity
from radii.train.attack import ascend, start
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class Constraint(Method):
    """α times the cross entropy plus β times the constraint loss of a property, as text such as "standard:delta=10"."""

    name = "constraint"
    about = "cross entropy + β · DL2 loss of any property: classification, strong, standard, lipschitz, …"
    judged = "clean"

    epsilon: float
    property: Any
    alpha: float = 1.0
    beta: float = 0.2
    steps: int = 10
    step: float = 0.25  # times ε

    def __post_init__(self) -> None:
        object.__setattr__(self, "property", str(known_property(self.property, "method property")))
        number(self.step, "step", low=0.0, strict=True)

    @cached_property
    def _tables(self) -> dict[int, Table]:
        return {}

    def check(self, classes: int) -> None:
        self._table(classes)

    def _table(self, classes: int) -> Table:
        if classes not in self._tables:
            self._tables[classes] = Table.of(known_property(self.property), classes)
        return self._tables[classes]

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        losses = self.alpha * cross_entropy(net.clean, y)
        if state.share == 0 or self.beta == 0:
            return Lost(losses, net.clean)
        table = self._table(net.clean.shape[1]).to(x)
        low, high = box(x, epsilon, state.domain)
        fixed = net.detached()

        def excess(at: Tensor, now: Network) -> Tensor:
            return table.excess(now(at), now.clean, y, (at - x).flatten(1).abs().amax(1))

        first = start(low, high, state.generator)
        point = ascend(lambda at: excess(at, fixed), first, low, high, self.step * epsilon, self.steps)
        outputs = net(point)
        distance = (point - x).flatten(1).abs().amax(1)
        lost = table.excess(outputs, net.clean, y, distance).clamp_min(0.0)
        return Lost(losses + self.beta * lost, outputs)


@dataclass(frozen=True, eq=False)
class Table:
    """A property's quantity for every label: rows over values and over those at the centre; and its threshold.

    Quantities are affine in the values at the centre; the table is made from what a property says at 0 and at the unit
    vectors, so that properties of other packages are trained for as well.
    """

    rows: Tensor  # (labels, rows, outputs)
    offsets: Tensor  # (labels, rows)
    centre: Tensor  # (labels, rows, outputs): what the values at the centre add
    threshold: Tensor  # (labels, rows)
    probabilities: bool
    per_distance: bool
    order: float

    @staticmethod
    def of(property: Property, classes: int) -> Table:
        """The table of a property for networks of so many outputs."""
        zero, unit = np.zeros(classes), np.eye(classes)
        quantities, moved = [], []
        for label in range(classes):
            if not property.asks(label):
                raise InputError(f"constraint: expected a property of every class, got {property} which skips {label}")
            base = property.quantity(classes, label, zero)
            quantities.append(base)
            moved.append(np.stack([property.quantity(classes, label, row).offsets - base.offsets for row in unit], -1))
        table = Table(
            torch.tensor(np.stack([one.coefficients for one in quantities])),
            torch.tensor(np.stack([one.offsets for one in quantities])),
            torch.tensor(np.stack(moved)),
            torch.tensor(np.stack([np.full_like(one.offsets, _limit(property, one)) for one in quantities])),
            quantities[0].of == "probabilities",
            quantities[0].per_distance,
            float(quantities[0].order),
        )
        _agree(table, property, classes)
        return table

    def to(self, like: Tensor) -> Table:
        """The same in the floats of a tensor."""
        names = ("rows", "offsets", "centre", "threshold")
        return replace(self, **{name: getattr(self, name).to(like.dtype) for name in names})

    def excess(self, outputs: Tensor, clean: Tensor, y: Tensor, distance: Tensor) -> Tensor:
        """By how much the quantity exceeds its threshold: (batch,); what a slope allows grows with the distance."""
        values, centre = (part.softmax(1) if self.probabilities else part for part in (outputs, clean))
        found = (self.rows[y] @ values[:, :, None] + self.centre[y] @ centre[:, :, None])[..., 0] + self.offsets[y]
        allowed = self.threshold[y]
        if self.per_distance:
            allowed = allowed * distance[:, None]
        if np.isinf(self.order):
            return (found - allowed).amax(1)
        size: Tensor = torch.linalg.vector_norm(found.clamp_min(0.0), self.order, 1)
        return size - allowed[:, 0]


def _limit(property: Property, quantity: Quantity) -> float:
    """What the quantity is held against: the field that the property names, with its sign; 0 where it names none."""
    value = 0.0 if property.threshold is None else float(getattr(property, property.threshold))
    return -value if quantity.least else value


def _agree(table: Table, property: Property, classes: int) -> None:
    """Refuses a property whose violations are not what its quantity and threshold say, or that is not affine."""
    rng = np.random.default_rng(0)
    values, centre = rng.random((2, classes))
    for label in range(classes):
        quantity = property.quantity(classes, label, centre)
        mine = table.rows[label].numpy() @ values + table.centre[label].numpy() @ centre + table.offsets[label].numpy()
        if not np.allclose(mine, quantity.rows(values)):
            raise InputError(
                f"constraint: expected a property that is affine in the outputs at the centre, got {property}"
            )
