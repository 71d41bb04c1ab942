"""Where a claim holds: a ball within a domain, or a box; points of it exactly, at random, in float32, and in planes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fuzzing.build import Array, fractions
from fuzzing.slices import side

ROUND = 48  # corners of a polygon inside a disc


@dataclass(frozen=True)
class Region:
    """All x within `radius` of `center` in a norm and within [low, high]; norm "box" is the box alone."""

    center: Array
    radius: float
    norm: str
    low: Array
    high: Array

    @staticmethod
    def box(low: Array, high: Array) -> Region:
        """A box of inputs."""
        return Region(low + (high - low) / 2, float((high - low).max()), "box", low, high)

    @property
    def inputs(self) -> int:
        """How many numbers an input has."""
        return len(self.center)

    def exact(self, point: Array) -> list[Fraction]:
        """The point of the region that is next to this one, without rounding."""
        center, radius = fractions(self.center), Fraction(self.radius)
        step = [Fraction(float(v)) - c for v, c in zip(point, center)]
        if self.norm == "linf":
            step = [max(-radius, min(radius, s)) for s in step]
        elif self.norm == "l1" and (size := sum(map(abs, step))) > radius:
            step = [s * radius / size for s in step]
        elif self.norm == "l2":
            while sum(s * s for s in step) > radius * radius:
                step = [s * (1 - Fraction(1, 2**48)) if abs(s) > 0 else s for s in self._shrunk(step)]
        sides = zip(self.low, self.high)
        moved = [c + s for c, s in zip(center, step)]
        return [_between(v, float(low), float(high)) for v, (low, high) in zip(moved, sides)]

    def _shrunk(self, step: list[Fraction]) -> list[Fraction]:
        """The step at about the radius, if it is far beyond it."""
        size = float(np.linalg.norm([float(s) for s in step]))
        return [s * Fraction(self.radius / size) for s in step] if size > self.radius * (1 + 1e-12) else step

    def contains(self, point: Any) -> bool:
        """Whether floats lie in the region, without rounding."""
        values = fractions(point)
        if any(v < low or v > high for v, low, high in zip(values, self.low, self.high)):
            return False
        step = [abs(v - c) for v, c in zip(values, fractions(self.center))]
        radius = Fraction(self.radius)
        if self.norm == "l2":
            return sum(s * s for s in step) <= radius * radius
        return self.norm == "box" or (max(step) if self.norm == "linf" else sum(step)) <= radius

    def pulled(self, points: Array) -> Array:
        """Points in float64 moved into the region, or next to it."""
        step = points - self.center
        if self.norm == "linf":
            step = np.clip(step, -self.radius, self.radius)
        elif self.norm != "box":
            size = np.linalg.norm(step, 1 if self.norm == "l1" else 2, axis=1, keepdims=True)
            step = np.where(size > self.radius, step * (self.radius / np.where(size > 0, size, 1.0)), step)
        return np.clip(self.center + step, self.low, self.high)

    def deployed(self, points: Array) -> Array:
        """The float32 points next to these that lie in the region, as float64 sees it."""
        shrunk = self.center + (self.pulled(points) - self.center) * (1.0 if self.norm in ("linf", "box") else 1 - 1e-6)
        near = shrunk.astype(np.float32)
        low, high = self.low, self.high
        if self.norm == "linf":
            low, high = np.maximum(low, self.center - self.radius), np.minimum(high, self.center + self.radius)
        near = np.where(near < low, np.nextafter(near, np.float32(np.inf)), near)
        near = np.where(near > high, np.nextafter(near, np.float32(-np.inf)), near)
        found = near.astype(np.float32)
        inside = (found >= self.low) & (found <= self.high)
        if self.norm != "box":
            order = {"linf": np.inf, "l1": 1, "l2": 2}[self.norm]
            size = np.linalg.norm(found.astype(np.float64) - self.center, order, axis=1)
            inside &= (size <= self.radius)[:, None]
        return np.asarray(found[inside.all(axis=1)])

    def reach(self) -> Array:
        """How far each coordinate can go from the centre, where the region is bounded."""
        wide = np.full(self.inputs, self.radius)
        return np.minimum(wide, np.maximum(self.high - self.center, self.center - self.low))

    def points(self, rng: np.random.Generator, count: int) -> Array:
        """Corners, points of the surface and of the inside."""
        n, reach = self.inputs, self.reach()
        signs = np.array(list(product((-1.0, 1.0), repeat=n))) if n <= 6 else _signs(rng, n)
        spread = rng.uniform(-1, 1, (count, n)) * rng.choice([1.0, 1.0, 0.3, 0.01], (count, 1))
        surface = np.sign(spread[: count // 2]) * np.abs(spread[: count // 2]) ** rng.uniform(0, 1, (count // 2, 1))
        axes = np.concatenate([np.eye(n), -np.eye(n)])
        return self.pulled(self.center + np.concatenate([np.zeros((1, n)), signs, axes, spread, surface]) * reach)

    def polygon(self, one: Array, two: Array) -> Array:
        """The corners, in order, of the part of the plane center + a·one + b·two that lies in the region."""
        one = one / np.linalg.norm(one)
        two = two - (two @ one) * one
        if self.inputs == 1 or np.linalg.norm(two) < 1e-9:
            found = self.center + np.array([[-1.0], [1.0]]) * one * self.radius * np.sqrt(self.inputs)
        else:
            two = two / np.linalg.norm(two)
            angle = np.linspace(0, 2 * np.pi, ROUND if self.norm == "l2" else 4, endpoint=False) + np.pi / 4
            wide = self.radius * (1.0 if self.norm == "l2" else 2.0 * np.sqrt(self.inputs))
            found = self.center + wide * (np.cos(angle)[:, None] * one + np.sin(angle)[:, None] * two)
        for normal, limit in self._sides():
            if np.isfinite(limit) and len(found):
                found = side(limit - found @ normal) @ found
        return found

    def _sides(self) -> list[tuple[Array, float]]:
        """normal · x ≤ limit for every flat side."""
        eye = np.eye(self.inputs)
        sides = [(e, float(h)) for e, h in zip(eye, self.high)] + [(-e, -float(l)) for e, l in zip(eye, self.low)]
        if self.norm == "linf":
            both = np.concatenate([eye, -eye])
            sides += [(e, float(e @ self.center) + self.radius) for e in both]
        elif self.norm == "l1":
            signs = (np.array(s) for s in product((-1.0, 1.0), repeat=self.inputs))
            sides += [(s, float(s @ self.center) + self.radius) for s in signs]
        return sides


def _signs(rng: np.random.Generator, count: int) -> Array:
    """Some corners of many: the two farthest apart among them."""
    return np.concatenate([np.ones((1, count)), -np.ones((1, count)), np.sign(rng.normal(size=(62, count)))])


def _between(value: Fraction, low: float, high: float) -> Fraction:
    if np.isfinite(low):
        value = max(value, Fraction(low))
    return min(value, Fraction(high)) if np.isfinite(high) else value
