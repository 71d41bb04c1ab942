"""Cost-weighted risk: what an adversary limited to ε can make a user pay, for a misclassification-cost matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import InputError
from radii.stats._arrays import ANY_TARGET, FloatArray, IntArray, eps_array, level
from radii.stats.confidence_intervals import mean_interval

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution


@dataclass(frozen=True)
class Risk:
    """The mean worst cost at ε: in [`lower`, `upper`] for this sample, in [`low`, `high`] for unseen inputs."""

    eps: float
    lower: float
    upper: float
    low: float
    high: float
    confidence: float
    per_class: dict[int, tuple[float, float]]


def cost_matrix(costs: Any) -> FloatArray:
    """A square matrix of finite costs of at least 0 with a zero diagonal; row = true class, column = predicted."""
    array = np.asarray(costs, dtype=np.float64)
    square = array.ndim == 2 and array.shape[0] == array.shape[1] and array.shape[0] >= 2
    if not square or not np.all(np.isfinite(array)) or np.any(array < 0) or np.any(np.diag(array) != 0):
        raise InputError(
            "costs: expected a square matrix of numbers of at least 0 with zeros on the diagonal, "
            f"got an array of shape {array.shape}"
        )
    return array


def cost_risk(dist: Distribution, costs: Any, eps: Any, confidence: float = 0.95) -> Risk:
    """The expected cost if an adversary picks the most expensive reachable class for every input.

    With one row per target, a target is surely reachable where a witness is known and possibly reachable where it
    is not excluded by proof. With untargeted rows only, a broken input costs between the cheapest and the most
    expensive wrong class. A misclassified input costs between those two as well.
    """
    matrix, point = cost_matrix(costs), float(eps_array(eps).reshape(()))
    if np.any(dist.label < 0) or max(int(dist.label.max()), int(dist.target.max())) >= len(matrix):
        raise InputError(f"costs: expected a class below {len(matrix)} for every label and target")
    if np.any(dist.target >= 0) and dist.ids is None:
        raise InputError("cost_risk: expected ids that tell which rows are the same input, got none")
    label, low, high = _costs(dist, matrix, point)
    top = float(matrix.max()) or 1.0
    limits = mean_interval(low, high, (0.0, top), confidence) if low.size > 1 else (0.0, top)
    classes = {int(y): (float(low[label == y].mean()), float(high[label == y].mean())) for y in np.unique(label)}
    return Risk(point, float(low.mean()), float(high.mean()), *limits, 1.0 - level(confidence), classes)


def _costs(dist: Distribution, matrix: FloatArray, eps: float) -> tuple[IntArray, FloatArray, FloatArray]:
    """The label and the least and greatest cost of every input."""
    ends = dist.ends()
    broken, open_ = ends.high <= eps, ends.low < eps
    open_ |= broken
    off = np.where(np.eye(len(matrix), dtype=np.bool_), np.inf, matrix)
    cheapest, dearest = off.min(axis=1), matrix.max(axis=1)
    targeted = (dist.target != ANY_TARGET) & dist.correct
    exact = matrix[dist.label, np.where(targeted, dist.target, 0)]
    least = np.where(broken, np.where(targeted, exact, cheapest[dist.label]), 0.0)
    most = np.where(open_, np.where(targeted, exact, dearest[dist.label]), 0.0)
    if dist.ids is None:
        return dist.label, least, most
    ids, rows, which = np.unique(dist.ids, return_index=True, return_inverse=True)
    low, high = np.zeros(ids.size), np.zeros(ids.size)
    np.maximum.at(low, which, least)
    np.maximum.at(high, which, most)
    missing = _missing_targets(dist, which, ids.size, len(matrix))
    high = np.where(missing, dearest[dist.label[rows]], high)
    return dist.label[rows], low, high


def _missing_targets(dist: Distribution, which: IntArray, inputs: int, classes: int) -> np.ndarray[Any, Any]:
    """Inputs for which not every wrong class was asked about, and no untargeted row speaks for all of them."""
    asked = np.zeros((inputs, classes), np.bool_)
    targeted = dist.target != ANY_TARGET
    asked[which[targeted], dist.target[targeted]] = True
    asked[which[~targeted]] = True
    asked[which, dist.label] = True
    return np.asarray(~asked.all(axis=1))
