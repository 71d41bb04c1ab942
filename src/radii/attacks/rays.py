"""Rays: points between an input and the ends of a few directions, judged by the original model alone.

The gradients of an attack belong to radii's own graph, which rounds otherwise than the runtime: where large numbers
cancel, the runtime may break where the graph does not. Points on a few rays find that, nearer than what is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from radii._torch import torch
from radii.attacks.exact import Floats, broken, distances, rivals
from radii.attacks.geometry import Room, lowest_in_ball
from radii.attacks.surrogate import Surface
from radii.models.classifier import Classifier
from radii.problem import Norm

STOPS = np.arange(1, 10) / 10  # of a ray's length: where it is tried
NOISE = 2  # rays of random directions, beside the ones against the margin, along it and to the point that is known
HALVINGS = 8  # of the step of the ray on which the model breaks first


@dataclass(frozen=True, eq=False)
class Rays:
    """The rays of some inputs, flat (inputs, d)."""

    classifier: Classifier
    norm: Norm
    centers: Floats
    labels: NDArray[np.int64]
    targets: NDArray[np.int64]  # −1 for any other class

    def search(self, surface: Surface, points: Floats) -> tuple[Floats, NDArray[np.int64]]:
        """The points (NaN where none is known), or broken ones that are nearer, and the class that each goes to."""
        best = points.copy()
        classes = np.full(len(points), -1, dtype=np.int64)
        for end in self._ends(surface, points):
            found = self._first(end)
            nearer = distances(self.norm, found, self.centers) < distances(self.norm, best, self.centers)
            best[nearer] = found[nearer]
        known = np.isfinite(best).all(1)
        if known.any():
            classes[known] = rivals(self.classifier.reference(best[known]), self.labels[known])
        return best, classes

    def _first(self, end: Floats) -> Floats:
        """The first broken points on the way to one end each, NaN where there is none."""
        bad = np.stack([self._broken(end, np.full(len(end), stop)) for stop in STOPS], axis=1)
        place = bad.argmax(1)
        low, high = np.where(place > 0, STOPS[place - 1], 0.0), STOPS[place]
        for _ in range(HALVINGS if bad.any() else 0):
            middle = 0.5 * (low + high)
            less = self._broken(end, middle)
            low, high = np.where(less, low, middle), np.where(less, middle, high)
        found = self._at(end, high)
        found[~bad.any(axis=1)] = np.nan
        return found

    def _at(self, end: Floats, share: NDArray[np.float64]) -> Floats:
        return np.asarray(self.centers + share[:, None] * (end - self.centers), dtype=end.dtype)

    def _broken(self, end: Floats, share: NDArray[np.float64]) -> NDArray[np.bool_]:
        return broken(self.classifier.reference(self._at(end, share)), self.labels, self.targets)

    def _ends(self, surface: Surface, points: Floats) -> list[Floats]:
        """The known points, and the ends of rays that are as long as these are far, or as the domain is wide."""
        domain = self.classifier.domain
        start, marks, goals = (torch.from_numpy(np.array(a)) for a in (self.centers, self.labels, self.targets))
        leak = torch.full_like(start[:, 0], 0.02)
        grad = surface.slope(*(a.to(surface.device) for a in (start, marks, goals, leak)))[1].cpu()
        noise = np.random.default_rng(0).uniform(-1, 1, (NOISE, start.shape[1]))
        widest = self.norm.size(np.full(start.shape[1], domain.high - domain.low)) if domain.bounded else 1.0
        length = distances(self.norm, points, self.centers)
        radius = torch.from_numpy(np.where(np.isfinite(length), length, widest)).to(start)
        room = Room(start, *domain.ends(self.centers.dtype))
        ways = [grad, -grad, *(torch.from_numpy(row).to(grad).expand_as(grad) for row in noise)]
        ends = [room.clamp(start + lowest_in_ball(self.norm, way, radius, room)).numpy() for way in ways]
        return [np.where(np.isfinite(points), points, self.centers), *ends]
