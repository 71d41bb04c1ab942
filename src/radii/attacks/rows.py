"""Rows: the state of many attacks at once, one row for each (instance, target, restart)."""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.attacks.aims import Aims
from radii.attacks.geometry import Room, sizes
from radii.attacks.surrogate import Surface
from radii.problem import Norm


class Rows:
    """Attacks in progress: where each row may move, what breaks it, and the nearest broken point it has seen.

    `best` is infinite, and `point` the centre, while a row has not been broken.
    """

    def __init__(self, surface: Surface, norm: Norm, room: Room, aims: Aims) -> None:
        self.surface, self.norm, self.room, self.aims = surface, norm, room, aims
        self.best = torch.full((len(aims),), torch.inf, dtype=surface.dtype, device=surface.device)
        self.point = room.center.clone()

    def __len__(self) -> int:
        return len(self.aims)

    def slope(self, x: Tensor, leak: Tensor) -> tuple[Tensor, Tensor]:
        """The margins and gradients at x; broken points on the way are remembered."""
        margin, grad = self.aims.slope(self.surface, x, leak)
        self.note(x, margin)
        return margin, grad

    def note(self, x: Tensor, margin: Tensor | None = None) -> Tensor:
        """Remembers x where it is broken and nearer than what was known; returns the margins."""
        if margin is None:
            margin = self.aims.margin(self.surface, x)
        distance = sizes(self.norm, x - self.room.center)
        nearer = (margin <= 0) & (distance < self.best)
        self.best = torch.where(nearer, distance, self.best)
        self.point = torch.where(nearer[:, None], x, self.point)
        return margin

    def bisect(self, steps: int = 10) -> None:
        """Moves the broken points back along the segment to their centres, onto the decision boundary."""
        low, high = torch.zeros_like(self.best), torch.ones_like(self.best)
        delta = self.point - self.room.center
        for _ in range(steps):
            middle = (low + high) / 2
            x = self.room.clamp(self.room.center + middle[:, None] * delta)
            broken = self.aims.margin(self.surface, x) <= 0
            low, high = torch.where(broken, low, middle), torch.where(broken, middle, high)
        found = self.best.isfinite()
        x = self.room.clamp(self.room.center + torch.where(found, high, 0.0)[:, None] * delta)
        self.note(x)

    def take(self, index: Tensor) -> Rows:
        """A copy of some rows (repeats allowed), with what they have found."""
        part = Rows(self.surface, self.norm, self.room.rows(index), self.aims.take(index))
        part.best, part.point = self.best[index], self.point[index]
        return part

    def merge(self, other: Rows, index: Tensor) -> None:
        """Adopts what the rows of `other` found, where row i of `other` belongs to row index[i] of these."""
        for i in _nearest(other.best, index, len(self)):
            here = index[i]
            nearer = other.best[i] < self.best[here]
            self.best[here] = torch.where(nearer, other.best[i], self.best[here])
            self.point[here] = torch.where(nearer[:, None], other.point[i], self.point[here])


def _nearest(best: Tensor, index: Tensor, count: int) -> list[Tensor]:
    """The position of the best row of each group that `index` names, as one tensor in a list (empty when none)."""
    if not len(best):
        return []
    order = best.argsort(stable=True, descending=True)
    winner = torch.full((count,), -1, dtype=torch.long, device=best.device)
    winner[index[order]] = order  # sorted by falling distance: the last assignment, the smallest, stays
    return [winner[winner >= 0]]
