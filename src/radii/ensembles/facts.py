"""What is known of one point of the data: sets of members that were fooled, and sets that were proven not to be.

A set of members is a whole number: bit c stands for member c. A witness at distance d fools a set and all its parts in
every ball of size d or more; a proof up to r keeps a set, and every larger one, from being fooled in balls of size r or
less. So at any ε there are the sets known to be fooled, and the sets still possible, which hold the former.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import Contradiction
from radii.problem import Radius

Masks = NDArray[np.int64]
SLACK = 1e-5  # of a radius: how far roundings of float32 move a border


@dataclass(frozen=True, eq=False)
class Seen:
    """A replayed input: how far it is from the point and which members it fools."""

    fooled: int
    distance: float
    x: NDArray[np.floating[Any]] = field(repr=False)


@dataclass
class Point:
    """The facts of one point."""

    members: int
    seen: list[Seen] = field(default_factory=list)
    proven: dict[int, float] = field(
        default_factory=dict
    )  # set → it is fooled nowhere within this radius (inf: nowhere at all)
    asked: dict[int, Radius] = field(default_factory=dict)  # set → what a search for its joint radius gave

    def see(self, found: Seen) -> None:
        """Takes note of a witness, unless a nearer one fools as many; it must not contradict a proof."""
        for mask, radius in self.proven.items():
            if not mask & ~found.fooled and found.distance <= radius:
                self.proven[mask] = _below(found.distance, radius, mask)
        if any(not found.fooled & ~one.fooled and one.distance <= found.distance for one in self.seen):
            return
        self.seen = [one for one in self.seen if one.fooled & ~found.fooled or one.distance < found.distance] + [found]

    def prove(self, mask: int, radius: float | None) -> None:
        """Takes note that a set is fooled by no input within a radius."""
        if radius is None or radius <= self.floor(mask):
            return
        nearest = self.nearest(mask)
        if nearest is not None and nearest.distance <= radius:
            radius = _below(nearest.distance, radius, mask)
        self.proven = {m: r for m, r in self.proven.items() if mask & ~m or r > radius}
        self.proven[mask] = radius

    def floor(self, mask: int) -> float:
        """The largest radius within which the set is proven not to be fooled, by any of its parts."""
        return max((r for m, r in self.proven.items() if not m & ~mask), default=0.0)

    def nearest(self, mask: int) -> Seen | None:
        """The nearest witness that fools the whole set."""
        able = [one for one in self.seen if not mask & ~one.fooled]
        return min(able, key=lambda one: one.distance, default=None)

    def fooled(self, epsilon: float) -> Masks:
        """The largest sets that a witness within ε fools; the empty set when there is none."""
        found = {one.fooled for one in self.seen if one.distance <= epsilon}
        return maximal(np.array(sorted(found | {0}), dtype=np.int64))

    def possible(self, epsilon: float) -> Masks:
        """The largest sets that no proof excludes at ε."""
        free = np.ones(1 << self.members, dtype=bool)
        every = subsets(self.members)
        for mask, radius in self.proven.items():
            if radius >= epsilon:
                free &= (every & mask) != mask
        if epsilon <= 0:  # nothing moves: what the point itself fools is known
            return self.fooled(0.0)
        return largest(free, self.members)

    def steps(self) -> set[float]:
        """The sizes of balls at which what is known changes."""
        return {one.distance for one in self.seen} | {r for r in self.proven.values() if np.isfinite(r)}


@cache
def subsets(members: int) -> Masks:
    """All sets of members."""
    return np.arange(1 << members, dtype=np.int64)


def largest(free: NDArray[np.bool_], members: int) -> Masks:
    """The maximal sets of a family that holds every part of each of its sets."""
    inner = np.zeros_like(free)
    every = subsets(members)
    for c in range(members):
        without = (every >> c & 1) == 0
        inner[without] |= free[every[without] | (1 << c)]
    found: Masks = every[free & ~inner]
    return found


def maximal(masks: Masks) -> Masks:
    """Those of some sets that are part of no other."""
    inside = (masks[:, None] & ~masks[None, :]) == 0
    np.fill_diagonal(inside, False)
    found: Masks = masks[~inside.any(1)]
    return found


def named(mask: int) -> list[int]:
    """The members of a set."""
    return [c for c in range(mask.bit_length()) if mask >> c & 1]


def _below(distance: float, radius: float, mask: int) -> float:
    """A proven radius that a witness undercuts, shortened to it; more than roundings of float32 is a contradiction.

    Proofs are about real numbers and replays about float32: on the border itself the two may differ by so much.
    """
    if radius - distance > SLACK * radius:
        raise Contradiction(
            f"proven up to {radius!r} that members {_named(mask)} are not fooled together but an input at "
            f"{distance!r} fools them: one of the two is wrong"
        )
    return float(np.nextafter(distance, 0.0))


def _named(mask: int) -> str:
    return " and ".join(map(str, named(mask)))
