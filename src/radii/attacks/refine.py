"""Refine: candidate points pushed onto the decision boundary and towards their centres, quickly and in one batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import whole
from radii._torch import torch
from radii.attacks.aims import Classes
from radii.attacks.batches import in_batches, known_surface
from radii.attacks.exact import Floats, distances, settle
from radii.attacks.geometry import Room, into_ball
from radii.attacks.rows import Rows
from radii.attacks.shrink import Schedule, shrinking
from radii.attacks.targets import check_inputs, check_targets
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import LINF, Norm


def refine(
    classifier: Classifier,
    centers: Any,
    labels: Any,
    candidates: Any,
    norm: Norm | str = LINF,
    steps: int = 12,
    targets: Any = None,
    within: Any = None,
) -> tuple[Floats, NDArray[np.float64]]:
    """The nearest broken points reached from the candidates, and their distances: NaN and infinite where none is.

    `within` (one radius per row) says what is of interest: no point farther than that is looked for. Repeat a centre to
    try several candidates on it. What is returned was replayed on the original model.
    """
    norm = Norm.of(norm)
    batch, marks = check_inputs(classifier, centers, labels)
    goals, each = check_targets(classifier, marks, targets)
    starts = np.asarray(candidates, dtype=batch.dtype)
    if each or starts.size != batch.size:
        raise InputError(f"candidates: expected one a centre, {batch.shape}, got shape {starts.shape}")
    surface = known_surface(classifier)
    low, high = classifier.domain.ends(batch.dtype)
    flat = torch.from_numpy(np.array(batch.reshape(len(batch), -1)))
    room = Room(flat, low, high)
    x = room.clamp(torch.from_numpy(np.nan_to_num(starts.reshape(flat.shape))))
    cap = None
    if within is not None:
        cap = torch.from_numpy(np.broadcast_to(np.asarray(within, dtype=batch.dtype), marks.shape).copy())
        x = room.clamp(flat + into_ball(norm, x - flat, cap, room))
    rows = Rows(surface, norm, room, Classes(torch.from_numpy(marks), torch.from_numpy(goals)))
    schedule = Schedule(whole(steps, "steps"), step=(0.3, 0.02), change=(0.05, 0.002))
    in_batches(rows, x, torch.zeros_like(rows.best), shrinking(schedule), cap)
    rows.bisect(8)
    points = rows.point.where(rows.best.isfinite()[:, None], torch.nan).numpy()
    points, _ = settle(classifier, flat.numpy(), marks, goals, points)
    return points.reshape(batch.shape), distances(norm, points, flat.numpy())
