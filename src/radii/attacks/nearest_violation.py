"""The nearest violation of any property: the minimum-norm attack on clauses instead of classes.

Rows of one input aim at one clause each (for standard robustness: one output up, or one down); the nearest point that
breaks any of them counts. What is found here is judged by the attack's own arithmetic: replay it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.attacks.aims import Clauses
from radii.attacks.batches import in_batches, known_surface
from radii.attacks.effort import Effort
from radii.attacks.exact import Floats
from radii.attacks.geometry import Room, into_ball
from radii.attacks.goals import Goals
from radii.attacks.min_norm import Hunt, noise_of
from radii.attacks.rows import Rows
from radii.attacks.shrink import Schedule, shrinking
from radii.models.classifier import Classifier
from radii.problem import Norm, OutputSpec

MOST_CLAUSES = 64  # of one input: those whose margins are least at the centre
CANDIDATES = 6  # points per input to be replayed, nearest first


def nearest_violation(
    classifier: Classifier,
    x: Floats,
    spec: OutputSpec,
    norm: Norm,
    effort: Effort | str = "standard",
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> list[Floats]:
    """Points near one input that break the specification as the attack sees it, nearest first; flat float32 arrays."""
    surface, effort = known_surface(classifier, device), Effort.of(effort)
    center = torch.from_numpy(np.array(x, dtype=classifier.dtype).reshape(1, -1)).to(surface.device)
    goals = goals_of(classifier, spec, device)
    if len(goals.owner) > MOST_CLAUSES:
        outputs = surface.rectify(surface.outputs(center), center.new_zeros(1))
        margins = goals.margins(outputs.expand(len(goals.owner), -1), center.new_zeros(len(goals.owner)))
        goals = goals.take(margins.argsort()[:MOST_CLAUSES])
    copies = max(1, -(-effort.free // len(goals.owner)))  # one clause alone gets several scouts, leaking differently
    index = torch.arange(len(goals.owner), device=surface.device).repeat(copies)
    hunt = Hunt(classifier, surface, norm, effort, noise_of(surface, effort, seed), math.inf)
    rows = _rows(hunt, center, goals.take(index))
    hunt.run(rows, 1, len(rows))
    return _found(rows)


def refine_violation(
    classifier: Classifier,
    x: Floats,
    points: Tensor,
    spec: OutputSpec,
    norm: Norm,
    within: float | None,
    steps: int = 12,
) -> list[Floats]:
    """Points reached from candidates by a few steps onto the boundary of their nearest clauses, nearest first."""
    surface = known_surface(classifier)
    goals = goals_of(classifier, spec)
    center = torch.from_numpy(np.array(x, dtype=classifier.dtype).reshape(1, -1)).expand(len(points), -1)
    room = Room(center, *classifier.domain.ends(classifier.dtype))
    start = room.clamp(torch.nan_to_num(points.to(surface.dtype)))
    cap = None if within is None else torch.full((len(points),), within, dtype=surface.dtype)
    if cap is not None:
        start = room.clamp(center + into_ball(norm, start - center, cap, room))
    outputs = surface.rectify(surface.outputs(start), start.new_zeros(len(start)))
    distance = torch.linalg.vector_norm(start - center, ord=norm.order, dim=1)
    each = torch.stack(
        [goals.take(torch.full((len(start),), k)).margins(outputs, distance) for k in range(len(goals.owner))]
    )
    rows = Rows(surface, norm, room, Clauses(goals.take(each.argmin(0)), center, norm))
    schedule = Schedule(steps, step=(0.3, 0.02), change=(0.05, 0.002))
    in_batches(rows, start, torch.zeros_like(rows.best), shrinking(schedule), cap)
    rows.bisect(8)
    return _found(rows)


def goals_of(classifier: Classifier, spec: OutputSpec, device: torch.device | str = "cpu") -> Goals:
    """The clauses of one specification as goals over the logits of a classifier."""
    return Goals.of(
        [spec], device, classifier.torch_dtype, softmax=spec.of == "outputs" and not ordered(classifier, spec)
    )


def ordered(classifier: Classifier, spec: OutputSpec) -> bool:
    """Whether the specification may be read off the logits: the network has no softmax, or only order is asked."""
    if classifier.graph.logits is classifier.graph:
        return True
    return all(not c.bounds.any() and not c.coefficients.sum(1).any() for c in spec.clauses)


def _rows(hunt: Hunt, center: Tensor, goals: Goals) -> Rows:
    room = Room(center.expand(len(goals.owner), -1), hunt.low, hunt.high)
    return Rows(hunt.surface, hunt.norm, room, Clauses(goals, room.center, hunt.norm))


def _found(rows: Rows) -> list[NDArray[np.float32]]:
    order = rows.best.argsort()[:CANDIDATES]
    return [rows.point[i].cpu().numpy() for i in order if bool(rows.best[i].isfinite())]
