"""Aims: what each row of an attack tries to break, as a margin that must come down to 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from radii._torch import Tensor, torch
from radii.attacks.geometry import sizes
from radii.attacks.goals import Goals
from radii.attacks.surrogate import Surface
from radii.problem import Norm


class Aims(Protocol):
    """The aims of some rows."""

    def margin(self, surface: Surface, x: Tensor) -> Tensor:
        """How far each row is from being broken at its point."""

    def slope(self, surface: Surface, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        """The margins and their (leaky) gradients."""

    @property
    def free(self) -> Tensor:
        """Which rows take any way to be broken: restarts prefer the others."""

    def take(self, index: Tensor) -> Self:
        """The aims of some of the rows."""

    def __len__(self) -> int:
        """How many rows there are."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Another class at least ties with the label: `targets` says which, −1 for any."""

    labels: Tensor
    targets: Tensor

    def margin(self, surface: Surface, x: Tensor) -> Tensor:
        return surface.margin(x, self.labels, self.targets)

    def slope(self, surface: Surface, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        return surface.slope(x, self.labels, self.targets, leak)

    @property
    def free(self) -> Tensor:
        return self.targets < 0

    def take(self, index: Tensor) -> Classes:
        return Classes(self.labels[index], self.targets[index])

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Clauses:
    """Clauses of a property around centres: every condition of a row's clause is met."""

    goals: Goals
    center: Tensor  # (rows, d)
    norm: Norm

    def margin(self, surface: Surface, x: Tensor) -> Tensor:
        with torch.no_grad():
            outputs, far = surface.outputs(x), self._distance(x)
            margins = self.goals.margins(surface.rectify(outputs, torch.zeros_like(x[:, 0])), far)
            return (
                margins if self.goals.slopes is None else torch.where(far > 0, margins, 1.0)
            )  # the centre has no slope

    def slope(self, surface: Surface, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        # The distance's own gradient is left out: it only pulls towards the centre, which the ball does anyway.
        far = self._distance(x)
        margins, grad = surface.differentiate(x, leak, lambda out: self.goals.margins(surface.rectify(out, leak), far))
        return (margins if self.goals.slopes is None else torch.where(far > 0, margins, 1.0)), grad

    @property
    def free(self) -> Tensor:
        return torch.zeros(len(self), dtype=torch.bool, device=self.center.device)

    def take(self, index: Tensor) -> Clauses:
        return Clauses(self.goals.take(index), self.center[index], self.norm)

    def __len__(self) -> int:
        return len(self.center)

    def _distance(self, x: Tensor) -> Tensor:
        return sizes(self.norm, x - self.center)
