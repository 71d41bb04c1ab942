"""Which joint radius to ask for next: a double oracle over members and sets.

At an ε let w be the defender's mix against what was witnessed. The value lies above what was witnessed by at most the
mean over points of max over possible sets of w(S) − max over fooled sets of w(S). So only sets that weigh more than
what is fooled already matter, the heaviest first: its joint radius either makes it fooled or removes it from what is
possible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from radii.ensembles.facts import Point, subsets
from radii.ensembles.matrix import bits, solve

PER_MEMBER = 4  # joint radii that may be asked of one point, for each member; what is open then stays an interval
SLACK = 1e-9  # weights that differ by less are equal


@dataclass(frozen=True, order=True)
class Wanted:
    """A joint radius worth asking for, with what it may narrow the value by, summed over the sizes of interest."""

    worth: float
    point: int
    mask: int


def questions(points: Sequence[Point], epsilons: Sequence[float], tolerance: float) -> list[Wanted]:
    """At most one joint radius per point, the most useful first; none when the value is known at these sizes.

    `tolerance` is how near the ends of a joint radius come when it counts as known.
    """
    members = points[0].members
    worth: dict[tuple[int, int], float] = defaultdict(float)
    for epsilon in epsilons:
        if epsilon <= 0:
            continue
        mix = solve([point.fooled(epsilon) for point in points], members).mix
        weights = bits(subsets(members), members) @ mix
        for place, point in enumerate(points):
            if len(point.asked) >= members * (1 + PER_MEMBER):
                continue
            found = _heaviest(point, epsilon, weights, tolerance)
            if found is not None:
                worth[place, found[0]] += found[1] / len(points)
    best: dict[int, Wanted] = {}
    for (place, mask), gain in worth.items():
        one = Wanted(gain, place, mask)
        best[place] = max(one, best.get(place, one))
    return sorted(best.values(), key=lambda one: (-one.worth, one.point))


def _heaviest(
    point: Point, epsilon: float, weights: np.ndarray[tuple[int], np.dtype[np.float64]], tolerance: float
) -> tuple[int, float] | None:
    """The heaviest set that may be fooled at ε, is not known to be, and was not asked for: it and what it adds."""
    known = float(weights[point.fooled(epsilon)].max())
    every = subsets(point.members)
    free = np.ones(len(every), dtype=bool)
    for mask, radius in point.proven.items():
        if radius >= epsilon:
            free &= (every & mask) != mask
    free &= weights > known + SLACK
    for mask in point.asked:
        free[mask] = False
    candidates = every[free]
    # Of equal weights the smaller set: its search is quicker, and what is proven of it holds for every larger one.
    order = np.lexsort((np.bitwise_count(candidates), -weights[candidates].round(9)))
    for mask in candidates[order]:
        nearest = point.nearest(int(mask))
        if nearest is None or nearest.distance - point.floor(int(mask)) > tolerance * (1 + 1e-9):
            return int(mask), float(weights[mask]) - known
    return None
