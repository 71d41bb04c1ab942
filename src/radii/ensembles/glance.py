"""A first look at an ensemble at fixed sizes: what bounds and a short attack on all points at once settle.

For tiny balls linear bounds prove most members right, for huge ones a few steps of DeepFool (Moosavi-Dezfooli et al.
2016) on the largest margin fool all the others together. What both leave open is left to the searches. Nothing of it
is stored: it costs milliseconds per point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.attacks.batches import known_surface
from radii.attacks.geometry import Room, descend_to, dual_sizes, into_ball
from radii.bounds.bound import bound
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.engine.output_rows import margins
from radii.ensembles.facts import Point
from radii.ensembles.members import Merged
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm

AT_ONCE = 32  # points that are bounded or attacked together
STEPS = 12  # of the attack
OVERSHOOT = 1.1  # of what a step aims at: the margin, linearised
LEAK = 0.02  # of the ReLUs' slopes, so that silent ones have a gradient

HOPELESS = 1.0  # times the size: borders that the gradient sees farther away are not attacked before bounds are known

Inputs = list[tuple[int, NDArray[np.floating[Any]]]]  # each with the place of its point
See = Callable[[Inputs], None]


def glance(
    points: Sequence[Point],
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    sizes: Sequence[float],
    see: See,
) -> None:
    """Takes note of what bounds prove, and shows `see` inputs that may fool the members that they leave open.

    Bounds cost more than the attack: where it fools all members at once they are not needed.
    """
    positive = sorted({one for one in sizes if one > 0})
    merged = Merged.of(members)
    for hope in (HOPELESS, np.inf):
        for size in positive:
            reachable = [[c for c in range(len(members)) if point.floor(1 << c) < size] for point in points]
            open_ones = [j for j, point in enumerate(points) if reachable[j] and not _known(point, reachable[j], size)]
            for part in _parts(open_ones):
                aims = [{members[c].fingerprint for c in reachable[j]} for j in part]
                found = _attack(merged, [instances[j] for j in part], norm, size, aims, hope)
                if found:
                    see([(part[k], x) for k, x in found])
        if not np.isinf(hope):
            for size in reversed(positive):
                for c, member in enumerate(members):
                    _prove(points, c, member, instances, norm, size)


def _parts(places: Sequence[int]) -> list[Sequence[int]]:
    return [places[start : start + AT_ONCE] for start in range(0, len(places), AT_ONCE)]


def _known(point: Point, reachable: Sequence[int], size: float) -> bool:
    """Whether one input fools all members that can be reached."""
    nearest = point.nearest(sum(1 << c for c in reachable))
    return nearest is not None and nearest.distance <= size


def _prove(
    points: Sequence[Point], c: int, member: Classifier, instances: Sequence[Instance], norm: Norm, size: float
) -> None:
    """Radii of one member from linear bounds on balls of a size, where they cover them."""
    open_ones = [j for j, one in enumerate(points) if one.floor(1 << c) < size and one.nearest(1 << c) is None]
    for part in _parts(open_ones):
        for j, radius in zip(part, _certified(member, [instances[j] for j in part], norm, size)):
            if radius >= size:
                points[j].prove(1 << c, size)


def _certified(member: Classifier, instances: Sequence[Instance], norm: Norm, size: float) -> list[float]:
    """The radii that linear bounds on balls of a size give to inputs."""
    asked = [margins(member, one.label, Classification()) for one in instances]
    with proving():
        center = torch.from_numpy(np.stack([one.x.ravel() for one in instances]))
        epsilon = torch.full((len(instances),), size, dtype=torch.float64)
        bounded = bound(asked[0].graph, Region.around(center, epsilon, norm, member.domain))
        linear = bounded.margins(torch.stack([one.rows for one in asked]))
        shift = torch.stack([one.shift for one in asked])
        radii: list[float] = bounded.region.root(linear.a, linear.shifted() - shift).amin(1).tolist()
    return radii


def _attack(
    merged: Merged, instances: Sequence[Instance], norm: Norm, size: float, aims: Sequence[set[str]], hope: float
) -> Inputs:
    """Inputs in the ball of each point, found by steps towards where all members that are aimed at err.

    Points whose border lies beyond `hope` times the size, as the first gradient sees it, are left alone.
    """
    surface = known_surface(merged)
    aimed = torch.tensor([[one.fingerprint in names for one in merged.members] for names in aims])
    center = torch.from_numpy(np.stack([one.x.ravel() for one in instances]).astype(merged.dtype))
    labels = torch.tensor([one.label for one in instances])
    room = Room(center, merged.domain.low, merged.domain.high)
    x, limit = center.clone(), torch.full((len(center),), size * (1 - 1e-6), dtype=center.dtype)
    left = torch.ones(len(center), dtype=torch.bool)

    def value(outputs: Tensor) -> Tensor:
        each = outputs[:, : merged.classes].reshape(len(outputs), len(merged.members), -1)
        at = labels[:, None, None].expand(-1, each.shape[1], 1)
        own = each.gather(2, at)[:, :, 0]
        rival = each.scatter(2, at, -torch.inf).amax(2)
        lead: Tensor = torch.where(aimed, own - rival, -torch.inf).amax(1)
        return lead

    found: Inputs = []
    for step in range(STEPS):
        lead, slope = surface.differentiate(x, torch.full((len(x),), LEAK, dtype=x.dtype), value)
        if step == 0:
            left &= lead <= hope * size * dual_sizes(norm, slope)
        found += [(k, x[k].numpy()) for k in (left & (lead <= 0)).nonzero()[:, 0].tolist()]
        left &= lead > 0
        if not bool(left.any()):
            return found
        moved = descend_to(norm, slope, OVERSHOOT * lead, Room(x, room.low, room.high))
        x = torch.where(left[:, None], center + into_ball(norm, x + moved - center, limit, room), x)
    # Some of the members may be fooled all the same.
    return found + [(k, x[k].numpy()) for k in left.nonzero()[:, 0].tolist()]
