"""Planes: pairs of undecided neurons of one layer that are bounded together in a tree (`bounds/planes.py`).

Octagons hold on the whole ball; a node cuts its own box out of them. Pairs are disjoint, so that every neuron still has
one linear bound: its own line or its part of a plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii._torch import Tensor, torch
from radii.bounds.planes import corners, least_offset, offset_charge

if TYPE_CHECKING:
    from radii.engine.matrices import Matrices


@dataclass(frozen=True, eq=False)
class Planes:
    """The pairs of a tree, by layer, and their octagons on the ball."""

    blocks: tuple[tuple[int, int], ...]
    neurons: tuple[Tensor, ...]  # of each block (2·pairs,): all first partners, then all second ones
    octagons: tuple[Tensor, ...]  # of each block (pairs, 4) float32, outward

    @property
    def count(self) -> int:
        """How many slopes a node has, two for every pair."""
        return sum(len(n) for n in self.neurons)

    def inside(self, low: Tensor, high: Tensor) -> tuple[Plane, ...]:
        """The planes of a batch of nodes with these bounds (nodes, n)."""
        found, start = [], 0
        for block, which, octagons in zip(self.blocks, self.neurons, self.octagons):
            pairs = len(which) // 2
            (l, r), (u, t) = (end[:, which].chunk(2, 1) for end in (low, high))
            points = corners((l, u), (r, t), octagons.to(low.dtype))
            found.append(Plane(block, which, slice(start, start + 2 * pairs), points))
            start += 2 * pairs
        return tuple(found)


@dataclass(frozen=True, eq=False)
class Plane:
    """The pair planes of one layer, for a batch of nodes."""

    block: tuple[int, int]
    neurons: Tensor  # (2·pairs,)
    columns: slice  # where their slopes are among all of a node
    points: Tensor  # (nodes, pairs, 13, 2)

    def free(self, undecided: Tensor) -> Tensor:
        """1 for the slopes of pairs of undecided neurons, else 0, (nodes, 2·pairs): others are best as lines."""
        one, other = undecided[:, self.neurons].chunk(2, 1)
        return (one * other).repeat(1, 2)

    def over(self, v: Tensor, through: Tensor, floor: Tensor, steep: Tensor, tilt: Tensor) -> Paired:
        """Puts the planes' slopes in place of those of lines into `through`, the block's coefficients of z."""
        pairs, which = self.points.shape[1], self.neurons
        cost = v[:, which]
        line = torch.where(cost > 0, floor[:, which], steep[:, which])
        size = cost[:, :pairs].abs() + cost[:, pairs:].abs()
        slopes = cost * line + tilt[:, self.columns].to(cost.dtype) * torch.cat([size, size], 1)
        through[:, which - self.block[0]] = slopes
        c, s = ((rows[:, :pairs], rows[:, pairs:]) for rows in (cost, slopes))
        offset, touch = least_offset(self.points, c, s)
        return Paired(self, offset, torch.cat([touch[..., 0], touch[..., 1]], 1), c, s)


@dataclass(frozen=True, eq=False)
class Paired:
    """What the pair planes of one layer gave in one sweep."""

    plane: Plane
    offset: Tensor  # (nodes, pairs)
    touch: Tensor  # (nodes, 2·pairs): the corners where the planes touch
    c: tuple[Tensor, Tensor]
    s: tuple[Tensor, Tensor]

    def charge(self, side: Matrices, terms: int) -> Tensor:
        """What rounding may have added to the offsets of each node, in a sum of so many, and to slopes less pulls."""
        one, other = side.span[self.plane.neurons].chunk(2)
        return offset_charge(self.c, self.s, one + other, side.unit, terms)
