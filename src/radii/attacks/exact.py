"""Exact ends of an attack: points in the model's own floats, replayed on the original model, measured in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.models.classifier import Classifier
from radii.problem import Domain, Norm

Floats = NDArray[np.floating[Any]]
NUDGES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""By how much a step that does not replay is enlarged, one after the other, before it is given up."""


def broken(outputs: NDArray[Any], labels: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows of outputs are finite and have their target (any other class if it is −1) at least tied."""
    rows = np.arange(len(outputs))
    own = outputs[rows, labels]
    others = outputs.astype(np.float64).copy()
    others[rows, labels] = -np.inf
    rival = np.where(targets < 0, others.max(axis=1), outputs[rows, np.maximum(targets, 0)])
    return np.asarray(np.isfinite(outputs).all(axis=1) & (rival >= own))


def rivals(outputs: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class with the largest output other than the label, row by row."""
    others = outputs.astype(np.float64).copy()
    others[np.arange(len(outputs)), labels] = -np.inf
    return np.asarray(others.argmax(axis=1), dtype=np.int64)


def distances(norm: Norm, points: Floats, centers: Floats) -> NDArray[np.float64]:
    """The exact distances of points from centres, infinite where a point holds NaN."""
    return np.array(
        [norm.distance(a, b) if np.isfinite(a).all() else math.inf for a, b in zip(points, centers)], dtype=np.float64
    )


def settle(
    classifier: Classifier,
    centers: Floats,
    labels: NDArray[np.int64],
    targets: NDArray[np.int64],
    points: Floats,
) -> tuple[Floats, NDArray[np.int64]]:
    """The points as they replay on the original model, and the class each goes to; NaN and −1 where one does not.

    A point that just misses is nudged away from its centre. Rows whose points hold NaN are left alone.
    """
    low, high = classifier.domain.ends(points.dtype)
    result = np.full_like(points, np.nan)
    classes = np.full(len(points), -1, dtype=np.int64)
    pending = np.flatnonzero(np.isfinite(points.reshape(len(points), -1)).all(axis=1))
    for nudge in NUDGES:
        if not len(pending):
            break
        away = points[pending].astype(np.float64) - centers[pending]
        moved = points[pending] if nudge == 0 else (centers[pending] + (1 + nudge) * away).astype(points.dtype)
        moved = np.clip(moved, low, high)
        outputs = classifier.reference(moved)
        good = broken(outputs, labels[pending], targets[pending])
        result[pending[good]] = moved[good]
        classes[pending[good]] = rivals(outputs[good], labels[pending[good]])
        pending = pending[~good]
    return result, classes


def pull_in(norm: Norm, points: Floats, centers: Floats, epsilons: NDArray[np.float64], domain: Domain) -> Floats:
    """The points moved into the domain and, by their last digits, into the balls, as float64 measures them."""
    low, high = domain.ends(points.dtype)
    result = np.clip(points, low, high)
    if norm.name == "linf":
        return np.clip(result, *_sides(centers, epsilons[:, None], points.dtype))
    for scale in (1.0, 1 - 2e-7, 1 - 1e-6, 1 - 1e-5, 0.0):
        over = distances(norm, result, centers) > epsilons
        if not over.any():
            break
        shorter = centers[over] + scale * (result[over].astype(np.float64) - centers[over])
        result[over] = shorter
    return result


def _sides(centers: Floats, epsilons: NDArray[np.float64], dtype: np.dtype[Any]) -> tuple[Floats, Floats]:
    """The least and the greatest numbers of `dtype` within ε of the centres, coordinate by coordinate.

    Stepping back by last digits would not do: near 0 these are far finer than what rounded at the centre's size.
    """
    exact = centers.astype(np.float64)
    found = []
    for side in (exact - epsilons, exact + epsilons):
        inside = np.nextafter(side, exact)  # the sum was rounded once
        end = inside.astype(dtype)
        outside = np.abs(end.astype(np.float64) - exact) > np.abs(inside - exact)
        found.append(np.where(outside, np.nextafter(end, exact.astype(dtype)), end))
    return found[0], found[1]
