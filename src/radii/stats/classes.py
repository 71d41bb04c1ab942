"""Per class: robust recall, one-to-one distributions, KS matrices in the paper's layout, nearest targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from radii._check import choice, number
from radii.errors import InputError
from radii.stats._arrays import ANY_TARGET, IntArray, eps_array
from radii.stats.jair_tests import ks_two_sample
from radii.stats.ks import two_sample
from radii.stats.multiple_testing import bonferroni_confidence, holm

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution

Cells = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Recall:
    """Robust recall of one class at one ε: [proven, not_broken] in the sample, [low, high] for unseen inputs."""

    label: int
    n: int
    proven: float
    not_broken: float
    low: float
    high: float


def robust_recall(dist: Distribution, eps: Any, confidence: float = 0.95, among: str = "all") -> tuple[Recall, ...]:
    """The share of each class that is robust at ε; the intervals hold for all classes together (Bonferroni)."""
    point = float(eps_array(eps).reshape(()))
    parts = dist.by_class()
    each = bonferroni_confidence(confidence, len(parts))
    rows = []
    for label, part in parts.items():
        share = part.robust_accuracy(point, among)
        low, high = part.guarantee(each, among).at_one(point)
        rows.append(Recall(label, len(part.ends(among)), share.proven, share.not_broken, low, high))
    return tuple(rows)


def one_to_one(dist: Distribution) -> dict[tuple[int, int], Distribution]:
    """The distribution of every original class towards every target class."""
    if np.all(dist.target == ANY_TARGET):
        raise InputError("one_to_one: expected a target class for every row, got none; measure with target: all")
    pairs = np.unique(np.stack([dist.label, dist.target]), axis=1).T
    return {(int(y), int(t)): dist.select((dist.label == y) & (dist.target == t)) for y, t in pairs}


@dataclass(frozen=True)
class KsMatrix:
    """KS statistics in the paper's layout: train below the diagonal, test above, train against test on it.

    Cells are None where a sample is empty. `p_value` is adjusted over the whole matrix (Holm) unless the method is
    the paper's, which adjusts nothing.
    """

    names: tuple[str, ...]
    statistic: Cells
    p_value: Cells
    method: str

    def significant(self, alpha: float = 0.05) -> tuple[tuple[bool, ...], ...]:
        """Which cells differ significantly."""
        limit = number(alpha, "alpha", low=0.0, high=1.0)
        return tuple(tuple(p is not None and p <= limit for p in row) for row in self.p_value)


def ks_matrix(
    train: Mapping[str, Distribution],
    test: Mapping[str, Distribution],
    method: str = "permutation",
    permutations: int = 2_000,
) -> KsMatrix:
    """All pairwise KS tests of classes (or targets, or networks) over correctly classified inputs.

    `method="paper"` runs the plain test on lower ends as the paper did; `"permutation"` handles ties and gaps (its
    p-value holds wherever the radii lie) and corrects for the number of cells.
    """
    kind = choice(method, "method", ("permutation", "paper"))
    names = tuple(str(key) for key in train)
    if tuple(str(key) for key in test) != names:
        raise InputError(f"ks_matrix: expected the same names in train and test, got {names} and {tuple(test)}")
    rows, columns = list(train.values()), list(test.values())
    size = len(names)
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for i in range(size):
        for j in range(size):
            first, second = (rows[i], rows[j]) if i > j else (columns[i], columns[j])
            if i == j:
                first, second = rows[i], columns[i]
            cell = _cell(first, second, kind, permutations)
            if cell is not None:
                found[i, j] = cell
    adjusted = [p for _, p in found.values()]
    if kind == "permutation" and adjusted:
        adjusted = holm(adjusted).tolist()
    values = dict(zip(found, adjusted))
    return KsMatrix(
        names,
        tuple(tuple(found[i, j][0] if (i, j) in found else None for j in range(size)) for i in range(size)),
        tuple(tuple(values.get((i, j)) for j in range(size)) for i in range(size)),
        kind,
    )


def _cell(a: Distribution, b: Distribution, kind: str, permutations: int) -> tuple[float, float] | None:
    if not a.correct.any() or not b.correct.any():
        return None
    if kind == "paper":
        plain = ks_two_sample(a.lower[a.correct], b.lower[b.correct])
        return None if plain.statistic is None or plain.p_value is None else (plain.statistic, plain.p_value)
    sound = two_sample(a.ends("correct"), b.ends("correct"), permutations)
    return sound.statistic, sound.p_high


@dataclass(frozen=True)
class NearestTargets:
    """How often each target class is the nearest one: `sure` at least, `possible` at most, by original class."""

    labels: tuple[int, ...]
    targets: tuple[int, ...]
    sure: IntArray
    possible: IntArray
    inputs: IntArray


def nearest_targets(dist: Distribution) -> NearestTargets:
    """The confusion of nearest targets from one-to-one radii: one row per input and target, paired by ids."""
    if dist.ids is None or np.any(dist.target == ANY_TARGET):
        raise InputError("nearest_targets: expected ids and a target for every row; measure with target: all")
    rows = dist.select(dist.correct)
    ids, which = np.unique(np.asarray(rows.ids), return_inverse=True)
    targets, column = np.unique(rows.target, return_inverse=True)
    if np.unique(which * targets.size + column).size != which.size:
        raise InputError("nearest_targets: expected each input and target once, got repeated rows; select one run")
    ends = rows.ends()
    low, high = np.full((2, ids.size, targets.size), np.inf)
    low[which, column], high[which, column] = ends.low, ends.high
    label = np.zeros(ids.size, np.int64)
    label[which] = rows.label
    others_low = _least_of_others(low)
    unasked = np.any(np.isinf(low) & (targets != label[:, None]), axis=1, keepdims=True)
    sure = (high <= others_low) & ~unasked
    possible = np.isfinite(low) & (low < high.min(axis=1, keepdims=True))
    labels, group = np.unique(label, return_inverse=True)
    shape = (labels.size, targets.size)
    counts = np.zeros((2, *shape), np.int64)
    np.add.at(counts[0], group, sure & np.isfinite(low))
    np.add.at(counts[1], group, possible)
    return NearestTargets(
        tuple(labels.tolist()), tuple(targets.tolist()), counts[0], counts[1], np.bincount(group, minlength=labels.size)
    )


def _least_of_others(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """For every cell the least value of the other cells in its row."""
    if values.shape[1] < 2:
        return np.full_like(values, np.inf)
    two = np.partition(values, 1, axis=1)[:, :2]
    return np.where(values == two[:, :1], two[:, 1:], two[:, :1])
