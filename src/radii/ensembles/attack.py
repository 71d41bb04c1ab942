"""From distributions over sets to a randomised attack: deterministic attacks with probabilities.

A vertex of the program mixes little: the numbers of sets with positive chance, less one per point, add up to at most
|C| − 1. Laying every point's chances end to end on [0, 1] and cutting at all their ends gives the pieces: within a
piece every point plays one set. So at most |C| deterministic attacks suffice (docs/ensembles.md has the proof).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.ensembles.matrix import DUST, Solution

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attack:
    """A randomised attack: `points[i, j]` is where deterministic attack i moves input j, with probabilities[i].

    `fooled[i, j, c]` says whether that fools member c, as replayed on the original model.
    """

    epsilon: float
    points: NDArray[np.floating[Any]]  # (attacks, inputs, …)
    probabilities: Floats  # (attacks,)
    fooled: NDArray[np.bool_]  # (attacks, inputs, members)
    distances: Floats  # (attacks, inputs)

    @property
    def losses(self) -> Floats:
        """The expected loss of each member."""
        found: Floats = self.probabilities @ self.fooled.mean(axis=1)
        return found

    @property
    def value(self) -> float:
        """The misclassification value: the least expected loss of a member."""
        return float(self.losses.min())


def pieces(solution: Solution) -> list[tuple[float, list[int]]]:
    """Probabilities, each with the set that every point plays: a coupling of the points' distributions."""
    ends = [np.cumsum(chances)[:-1] for chances in solution.chances]
    cuts = np.unique(np.concatenate([[0.0, 1.0], *ends]).clip(0.0, 1.0))
    # Ends that differ by rounding alone are one end: chances of different points are fractions of the same vertex.
    kept = [0.0]
    for cut in cuts:
        if cut - kept[-1] > DUST and (1.0 - cut > DUST or cut == 1.0):
            kept.append(float(cut))
    kept[-1] = 1.0
    found: list[tuple[float, list[int]]] = []
    for low, high in pairwise(kept):
        middle = 0.5 * (low + high)
        found.append((high - low, [_at(s, e, middle) for s, e in zip(solution.sets, ends)]))
    return _together(found)


def _at(sets: Sequence[int] | NDArray[np.int64], ends: Floats, where: float) -> int:
    return int(sets[int(np.searchsorted(ends, where))])


def _together(found: list[tuple[float, list[int]]]) -> list[tuple[float, list[int]]]:
    """The same pieces, those that play the same sets everywhere joined."""
    joined: dict[tuple[int, ...], float] = {}
    for chance, sets in found:
        joined[tuple(sets)] = joined.get(tuple(sets), 0.0) + chance
    return [(chance, list(sets)) for sets, chance in joined.items()]
