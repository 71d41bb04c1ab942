"""FGSM, the fast gradient sign method: one move to the point of the ball where the linearised margin is least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from radii._torch import torch
from radii.attacks.base import Attack
from radii.attacks.batches import known_surface
from radii.attacks.exact import Floats
from radii.attacks.geometry import lowest_in_ball
from radii.attacks.goals import Goals, violations
from radii.attacks.pgd import Balls, batches, keep_least
from radii.models.classifier import Classifier
from radii.problem import Query


@dataclass(frozen=True)
class Fgsm(Attack):
    """FGSM (Goodfellow et al. 2015) for every clause of the property, in any norm, inside the domain.

    Exact for linear networks: the step minimises the linearised margin over ball ∩ domain.
    """

    name = "fgsm"
    leak: float = 0.0

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        surface = known_surface(classifier)
        goals = Goals.of(violations(classifier, queries), surface.device, surface.dtype)
        ball = Balls.of(classifier, queries)
        best = torch.full((len(queries),), torch.inf, dtype=surface.dtype)
        points = torch.full((len(queries), surface.size), torch.nan, dtype=surface.dtype)
        for index in batches(surface, len(goals.owner)):
            part = goals.take(index)
            rows = ball.rows(part.owner)
            leak = torch.full_like(rows.radius, self.leak)

            def margins(out: torch.Tensor, part: Goals = part, leak: torch.Tensor = leak) -> torch.Tensor:
                return part.margins(surface.rectify(out, leak))

            _, grad = surface.differentiate(rows.center, leak, margins)
            x = rows.center + lowest_in_ball(rows.norm, grad, rows.radius, rows.room)
            with torch.no_grad():
                keep_least(best, points, part.owner, margins(surface.outputs(x)), x)
        yield ball.inside(points.numpy(), classifier)
