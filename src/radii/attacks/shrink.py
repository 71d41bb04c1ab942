"""Gradient descent in a ball that follows the boundary: it shrinks when the row is broken and grows when it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.attacks.batches import Move
from radii.attacks.geometry import dual_sizes, into_ball, sizes, steepest
from radii.attacks.rows import Rows


@dataclass(frozen=True, slots=True)
class Schedule:
    """How steps and radii develop: steps and radius changes are shares of the radius and fall along a cosine.

    The leak of the gradients falls linearly to 0 and reaches it after `cool` of the steps.
    """

    steps: int = 30
    step: tuple[float, float] = (1.0, 0.05)
    change: tuple[float, float] = (0.3, 0.005)
    momentum: float = 0.3
    cool: float = 0.6

    def at(self, k: int) -> tuple[float, float, float]:
        """Step, radius change and leak factor of iteration k."""
        wave = (1 + math.cos(math.pi * k / max(1, self.steps))) / 2
        step = self.step[1] + (self.step[0] - self.step[1]) * wave
        change = self.change[1] + (self.change[0] - self.change[1]) * wave
        return step, change, max(0.0, 1.0 - k / max(1.0, self.steps * self.cool))


def shrink(rows: Rows, x: Tensor, leak: Tensor, schedule: Schedule, cap: Tensor | None = None) -> None:
    """Minimises the distance of the rows from starts x, a projected gradient method with a moving radius.

    Where a row has not been broken yet, its radius grows by what the linearised margin asks for (as in the fast
    minimum-norm attack, Pintor et al. 2021). `cap` bounds the radii: what is farther is of no interest.
    """
    center, norm = rows.room.center, rows.norm
    speed = torch.zeros_like(x)
    limit = torch.full_like(rows.best, torch.inf) if cap is None else cap
    radius = torch.minimum(rows.best, limit)
    for k in range(schedule.steps):
        step, change, warmth = schedule.at(k)
        margin, grad = rows.slope(x, leak * warmth)
        steepness = dual_sizes(norm, grad).clamp_min(1e-12)
        distance = sizes(norm, x - center)
        known = torch.minimum(rows.best * (1 - change), limit)
        wanted = torch.where(rows.best.isfinite(), 0.0, distance + margin.clamp_min(0) / steepness)
        grown = torch.maximum(torch.where(radius.isfinite(), radius * (1 + change), 0.0), wanted)
        shrunk = torch.minimum(radius, distance) * (1 - change)
        radius = torch.where(margin <= 0, shrunk, torch.minimum(known, grown))
        speed = schedule.momentum * speed + (1 - schedule.momentum) * grad / steepness[:, None]
        x = x + step * radius[:, None] * steepest(norm, speed)
        x = rows.room.clamp(center + into_ball(norm, x - center, radius, rows.room))
    rows.note(x)


def shrinking(schedule: Schedule) -> Move:
    """`shrink` with one schedule, as a move for `in_batches`."""
    return lambda rows, x, leak, cap: shrink(rows, x, leak, schedule, cap)
