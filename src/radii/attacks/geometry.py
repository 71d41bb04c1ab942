"""Geometry: the closed forms the attacks need, for L∞, L2 and L1, batched over flat rows.

A row moves by δ with −down ≤ δ ≤ up, where `down` and `up` are the room that the domain leaves in each coordinate
(both ≥ 0, so δ = 0 is always allowed).
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.problem import Norm

_NEWTON = 12
_BISECT = 26


def sizes(norm: Norm, delta: Tensor) -> Tensor:
    """The norm of each row."""
    size: Tensor = torch.linalg.vector_norm(delta, ord=norm.order, dim=1)
    return size


def dual_sizes(norm: Norm, grad: Tensor) -> Tensor:
    """The dual norm of each row: how fast a linear function can fall."""
    size: Tensor = torch.linalg.vector_norm(grad, ord=norm.dual.order, dim=1)
    return size


@dataclass(frozen=True, eq=False)
class Room:
    """The centres of the rows and the box they may move in."""

    center: Tensor
    low: float
    high: float

    def clamp(self, x: Tensor) -> Tensor:
        """The nearest point of the domain."""
        return x.clamp(self.low, self.high)

    def along(self, direction: Tensor) -> Tensor:
        """How far each coordinate can move in the sign of `direction`."""
        return torch.where(direction > 0, self.high - self.center, self.center - self.low)

    def rows(self, index: Tensor) -> Room:
        """The room of some of the rows."""
        return Room(self.center[index], self.low, self.high)


def descend_to(norm: Norm, grad: Tensor, need: Tensor, room: Room) -> Tensor:
    """The δ of least norm with grad·δ ≤ −need inside the room; the steepest vertex where there is none.

    For L∞ and L2 the decrease is piecewise linear and concave in the multiplier, so Newton's method from 0
    approaches the root from below and ends after a few steps; L1 fills coordinates by decreasing gradient.
    """
    size = grad.abs()
    space = room.along(-grad)
    need = need.clamp_min(0.0)[:, None]
    if norm.name == "l1":
        return _fill(grad, size, space, need)
    rate = torch.ones_like(size) if norm.name == "linf" else size
    level = torch.zeros_like(need)
    for _ in range(_NEWTON):
        moved = torch.minimum(level * rate, space)
        missing = need - (size * moved).sum(1, keepdim=True)
        free = torch.where(moved < space, size * rate, 0.0).sum(1, keepdim=True)
        step = torch.where((missing > 0) & (free > 0), missing / free.clamp_min(1e-30), 0.0)
        if not bool((step > level * 1e-6).any()):
            break
        level = level + step
    return -grad.sign() * torch.minimum(level * rate, space)


def _fill(grad: Tensor, size: Tensor, space: Tensor, need: Tensor) -> Tensor:
    order = size.argsort(dim=1, descending=True)
    gain = torch.where(size > 0, size * space, 0.0).gather(1, order)
    before = torch.nn.functional.pad(gain.cumsum(1), (1, -1))
    part = ((need - before) / size.gather(1, order).clamp_min(1e-30)).clamp_min(0.0)
    moved = torch.minimum(part, space.gather(1, order))
    return -grad.sign() * torch.zeros_like(size).scatter(1, order, moved)


def into_ball(norm: Norm, delta: Tensor, radius: Tensor, room: Room) -> Tensor:
    """δ moved into the ball of the given radii and into the room (L∞: the nearest such point)."""
    limit = radius[:, None]
    if norm.name == "linf":
        delta = torch.maximum(torch.minimum(delta, limit), -limit)
        return room.clamp(room.center + delta) - room.center
    delta = room.clamp(room.center + delta) - room.center
    if norm.name == "l2":
        return delta * (limit / sizes(norm, delta)[:, None].clamp_min(1e-30)).clamp_max(1.0)
    size = delta.abs()
    low, high = torch.zeros_like(limit), size.amax(1, keepdim=True)
    inside = size.sum(1, keepdim=True) <= limit
    for _ in range(_BISECT):
        middle = (low + high) / 2
        large = (size - middle).clamp_min(0.0).sum(1, keepdim=True) > limit
        low, high = torch.where(large, middle, low), torch.where(large, high, middle)
    return torch.where(inside, delta, delta.sign() * (size - high).clamp_min(0.0))


def steepest(norm: Norm, grad: Tensor) -> Tensor:
    """A direction along which a linear function falls fast: the sign for L∞, else the gradient at length 1 in L2.

    The steepest direction in L1 moves one coordinate only; a dense step followed by the projection onto the ball, which
    is sparse, gets much further.
    """
    if norm.name == "linf":
        return -grad.sign()
    direction: Tensor = -grad / torch.linalg.vector_norm(grad, dim=1, keepdim=True).clamp_min(1e-30)
    return direction


def lowest_in_ball(norm: Norm, grad: Tensor, radius: Tensor, room: Room) -> Tensor:
    """The δ of the ball and the room at which grad·δ is least: the best answer to a linear function."""
    space, size = room.along(-grad), grad.abs()
    limit = radius[:, None]
    if norm.name == "linf":
        return -grad.sign() * torch.minimum(limit, space)
    if norm.name == "l1":
        order = size.argsort(dim=1, descending=True)
        wide = torch.where(size > 0, torch.minimum(space, limit), 0.0).gather(1, order)
        left = (limit - torch.nn.functional.pad(wide.cumsum(1), (1, -1))).clamp_min(0.0)
        return -grad.sign() * torch.zeros_like(size).scatter(1, order, torch.minimum(wide, left))
    space = torch.minimum(space, limit)
    # δ = min(t·|grad|, room) with the t at which its length is the radius; t = √d·radius over the largest entry is
    # enough, and where even the whole room is shorter than the radius, bisection ends at it.
    unit = size / size.amax(1, keepdim=True).clamp_min(1e-30)
    low, high = torch.zeros_like(limit), (space / unit.clamp_min(1e-6)).amax(1, keepdim=True)
    for _ in range(2 * _BISECT):
        middle = (low + high) / 2
        inside = sizes(norm, torch.minimum(middle * unit, space))[:, None] <= limit
        low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
    return -grad.sign() * torch.minimum(low * unit, space)
