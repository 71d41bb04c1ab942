"""Boundary projection, the step of DeepFool: to the nearest point of the linearised decision boundary, in the domain.

The step of DeepFool (Moosavi-Dezfooli et al. 2016) with the exact box-constrained projections of FAB (Croce and Hein
2020), biased towards the centre.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from radii._check import whole
from radii._torch import Tensor, torch
from radii.attacks.aims import Classes
from radii.attacks.base import Attack
from radii.attacks.batches import Move, in_batches, known_surface
from radii.attacks.exact import Floats, settle
from radii.attacks.geometry import Room, descend_to, sizes
from radii.attacks.rows import Rows
from radii.models.classifier import Classifier
from radii.problem import Query
from radii.problem.property import target_of

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


@dataclass(frozen=True)
class BoundaryProjection(Attack):
    """Projections from the input itself, one run for each class that counts; nothing in it is random."""

    name = "boundary_projection"
    takes = ("classes",)
    steps: int = 20
    leak: float = 0.0

    def __post_init__(self) -> None:
        whole(self.steps, "steps", low=1)

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        surface = known_surface(classifier)
        labels = np.array([query.instance.label for query in queries])
        wanted = [target_of(query.property) for query in queries]
        # A network that ends in a ReLU has one more way to tie: number `classes`.
        every = range(classifier.classes + surface.rectified)
        goals = [[t for t in every if t != y] if one is None else [one] for one, y in zip(wanted, labels.tolist())]
        owner = torch.tensor([i for i, mine in enumerate(goals) for _ in mine])
        flat = np.stack([query.instance.x.reshape(-1) for query in queries]).astype(classifier.dtype)
        center = torch.from_numpy(flat)
        room = Room(center[owner], *classifier.domain.ends(classifier.dtype))
        targets = torch.tensor([target for mine in goals for target in mine])
        rows = Rows(surface, queries[0].norm, room, Classes(torch.from_numpy(labels)[owner], targets))
        rows.note(rows.room.center)
        in_batches(rows, rows.room.center, torch.full_like(rows.best, self.leak), projecting(self.steps))
        rows.bisect(14)
        points = np.full_like(flat, np.nan)
        for i in rows.best.argsort(descending=True).tolist():  # the nearest of each query comes last
            if rows.best[i].isfinite():
                points[owner[i]] = rows.point[i].numpy()
        aims = np.array([-1 if one is None else one for one in wanted])
        yield settle(classifier, flat, labels, aims, points)[0]
