"""PGD: projected gradient descent on the margin of every way to break a property (Madry et al. 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from radii._check import whole
from radii._torch import Tensor, torch
from radii.attacks.base import Attack
from radii.attacks.batches import known_surface
from radii.attacks.exact import Floats, pull_in
from radii.attacks.geometry import Room, dual_sizes, into_ball, steepest
from radii.attacks.goals import Goals, violations
from radii.attacks.surrogate import Surface
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, Query

_BATCH_VALUES = 2**21


@dataclass(frozen=True)
class Pgd(Attack):
    """PGD with momentum and restarts: one run for every clause of the property, the first from the centre.

    Steps are a share of ε that falls from `step` to a twentieth of it along a cosine. Even restarts use true
    gradients, odd ones let them leak through inactive neurons.
    """

    name = "pgd"
    steps: int = 40
    restarts: int = 4
    step: float = 0.5
    momentum: float = 0.75
    leak: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.steps, "steps", low=1)
        whole(self.restarts, "restarts", low=1)

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        surface = known_surface(classifier)
        goals = Goals.of(violations(classifier, queries), surface.device, surface.dtype)
        ball = Balls.of(classifier, queries)
        rng = np.random.default_rng(self.seed)
        for restart in range(self.restarts):
            noise = torch.from_numpy(rng.uniform(-1, 1, surface.size)).to(surface.dtype)
            best = torch.full((len(queries),), torch.inf, dtype=surface.dtype)
            points = torch.full((len(queries), surface.size), torch.nan, dtype=surface.dtype)
            for index in batches(surface, len(goals.owner)):
                part = goals.take(index)
                leak = torch.full((len(part.owner),), self.leak if restart % 2 else 0.0, dtype=surface.dtype)
                start = noise if restart else 0 * noise
                x, margin = self.descend(surface, _judge(surface, part, leak), ball.rows(part.owner), start, leak)
                keep_least(best, points, part.owner, margin, x)
            yield ball.inside(points.numpy(), classifier)

    def descend(
        self, surface: Surface, value: Callable[[Tensor], Tensor], ball: Balls, start: Tensor, leak: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The points with the least values of their outputs that were seen, and these values.

        `start` says where to begin, as a move in units of the ball's radius.
        """
        center, room = ball.center, ball.room
        x = center + into_ball(ball.norm, ball.radius[:, None] * start, ball.radius, room)
        best, point, speed = torch.full_like(ball.radius, torch.inf), x, torch.zeros_like(x)
        for k in range(self.steps + 1):
            margin, grad = surface.differentiate(x, leak, value)
            less = margin < best
            best, point = torch.where(less, margin, best), torch.where(less[:, None], x, point)
            share = self.step * (0.05 + 0.95 * (1 + math.cos(math.pi * k / self.steps)) / 2)
            speed = self.momentum * speed + grad / dual_sizes(ball.norm, grad)[:, None].clamp_min(1e-12)
            x = x + share * ball.radius[:, None] * steepest(ball.norm, speed)
            x = center + into_ball(ball.norm, x - center, ball.radius, room)
        return point, best


@dataclass(frozen=True, eq=False)
class Balls:
    """The balls of some queries of one norm, as flat rows."""

    norm: Norm
    room: Room
    radius: Tensor
    exact: np.ndarray[tuple[int], np.dtype[np.float64]]

    @property
    def center(self) -> Tensor:
        """The centres, one per row."""
        return self.room.center

    @staticmethod
    def of(classifier: Classifier, queries: Sequence[Query]) -> Balls:
        """The balls of queries that share a norm."""
        sizes = [query.epsilon for query in queries]
        return Balls.around(classifier, [query.instance for query in queries], queries[0].norm, sizes)

    @staticmethod
    def around(classifier: Classifier, instances: Sequence[Instance], norm: Norm, sizes: Sequence[float]) -> Balls:
        """The balls of these sizes around instances."""
        flat = np.stack([one.x.reshape(-1) for one in instances])
        center = torch.from_numpy(flat.astype(classifier.dtype))
        exact = np.array(sizes, dtype=np.float64)
        room = Room(center, *classifier.domain.ends(classifier.dtype))
        return Balls(norm, room, torch.from_numpy(exact).to(center.dtype), exact)

    def rows(self, index: Tensor) -> Balls:
        """Some of the rows (repeats allowed)."""
        return Balls(self.norm, self.room.rows(index), self.radius[index], self.exact[index.numpy()])

    def inside(self, points: Floats, classifier: Classifier) -> Floats:
        """The points as members of their balls to the last digit."""
        return pull_in(self.norm, points, self.center.numpy(), self.exact, classifier.domain)


def _judge(surface: Surface, goals: Goals, leak: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda outputs: goals.margins(surface.rectify(outputs, leak))


def batches(surface: Surface, rows: int) -> Iterator[Tensor]:
    """The indices of rows in pieces that stay in cache and in memory."""
    size = max(16, _BATCH_VALUES // (surface.values + 4 * surface.size))
    return iter(torch.split(torch.arange(rows), size))


def keep_least(best: Tensor, points: Tensor, owner: Tensor, margin: Tensor, x: Tensor) -> None:
    """Writes the rows with the least margin of each owner into `best` and `points`."""
    for i in margin.argsort(descending=True, stable=True).tolist():
        if margin[i] < best[owner[i]]:
            best[owner[i]], points[owner[i]] = margin[i], x[i]
