"""Boundary projection: jumps to the nearest point of the linearised decision boundary, inside the domain.

The step of DeepFool (Moosavi-Dezfooli et al. 2016) with the exact box-constrained projections of FAB (Croce and Hein
2020), biased towards the centre.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.attacks.batches import Move
from radii.attacks.geometry import Room, descend_to, sizes
from radii.attacks.rows import Rows

_BACK = 0.9
_BIAS = 0.1
_OVERSHOOT = 1.05


def project(rows: Rows, x: Tensor, leak: Tensor, steps: int) -> None:
    """Minimises the distance of the rows from starts x by projections onto the linearised boundary."""
    room, norm, center = rows.room, rows.norm, rows.room.center
    for _ in range(steps):
        margin, grad = rows.slope(x, leak)
        around = Room(x, room.low, room.high)
        here = descend_to(norm, grad, margin, around) + descend_to(norm, -grad, -margin, around)
        home = descend_to(norm, grad, margin + (grad * (center - x)).sum(1), room)
        near, far = sizes(norm, here), sizes(norm, home)
        bias = (near / (near + far).clamp_min(1e-12)).clamp_max(_BIAS)[:, None]
        x = room.clamp((1 - bias) * (x + _OVERSHOOT * here) + bias * (center + _OVERSHOOT * home))
        outside = rows.note(x) <= 0
        x = torch.where(outside[:, None], center + _BACK * (x - center), x)


def projecting(steps: int) -> Move:
    """`project` with a number of steps, as a move for `in_batches`."""
    return lambda rows, x, leak, cap: project(rows, x, leak, steps)
