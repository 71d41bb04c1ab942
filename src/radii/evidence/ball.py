"""Ball: the perturbations δ that a proof speaks of, ‖δ‖ ≤ size with x0 + δ in the domain."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.evidence.rounding import TINY, UP, U, gamma
from radii.problem import Domain

_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball of one norm in coordinates δ = x − x0, and the smallest box around it: −down ≤ δ ≤ up."""

    center: Tensor  # (d,) x0
    norm: str
    size: float
    down: Tensor  # (d,)
    up: Tensor

    @staticmethod
    def around(center: Tensor, norm: str, size: float, domain: Domain) -> Ball:
        """The ball around a flat float64 input; nothing of it is lost by rounding."""
        wide = size * (1.0 + 4 * U)
        down = ((center - domain.low).clamp_min(0.0) * (1.0 + 4 * U)).clamp_max(wide)
        up = ((domain.high - center).clamp_min(0.0) * (1.0 + 4 * U)).clamp_max(wide)
        return Ball(center, norm, wide, down, up)

    @property
    def middle(self) -> Tensor:
        """The middle of the box."""
        return 0.5 * (self.up - self.down)

    @property
    def half(self) -> Tensor:
        """How far the box goes from its middle."""
        return 0.5 * (self.up + self.down) * (1.0 + 8 * U)

    @property
    def reach(self) -> Tensor:
        """An upper bound of |δ| in each coordinate, and of what the middle and the half add up to."""
        return (self.middle.abs() + self.half) * (1.0 + 4 * U)

    def least(self, a: Tensor, c: Tensor, size: Tensor) -> Tensor:
        """A lower bound of a·δ + c over the ball, for rows a (rows, d), c (rows,) and size ≥ |a|·reach."""
        lost = 4 * gamma(a.shape[1]) * (size + c.abs()) * UP + TINY
        box = a @ self.middle + c - a.abs() @ self.half - lost
        if self.norm == "linf":
            return box
        room = torch.where(a > 0, self.down, self.up)
        priced = _taxicab if self.norm == "l1" else _round
        value, gross = priced(a.abs(), room, self.size)
        # The box without the ball is a valid bound as well, so the better of the two counts.
        return torch.maximum(c + value - 4 * gamma(a.shape[1]) * gross - lost, box)


def _taxicab(size: Tensor, room: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Any price p ≥ 0 of ‖δ‖₁ gives −Σ(|a| − p)⁺·room − p·ε; the best is the |a| at which ε is used up."""
    order = size.sort(1, descending=True)
    spent = room.gather(1, order.indices).cumsum(1)
    first = (spent < epsilon).sum(1, keepdim=True).clamp_max(size.shape[1] - 1)
    price = torch.where(spent[:, -1:] > epsilon, order.values.gather(1, first), torch.zeros_like(spent[:, :1]))
    excess = (size - price).clamp_min(0.0)
    gross = (excess * room).sum(1) + price[:, 0] * epsilon
    return -gross, gross


def _round(size: Tensor, room: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Any price p > 0 of ‖δ‖² gives Σ min over |δ_i| ≤ room_i of (−|a_i|·δ_i + p·δ_i²/2) − p·ε²/2."""
    free = room > 0
    squares = size.square()
    price = torch.full_like(size[:, :1], 1e-280)
    for _ in range(_ROUNDS):  # coordinates that reach their room leave the rest of ε to the others
        left = epsilon**2 - torch.where(free, torch.zeros_like(room), room).square().sum(1, keepdim=True)
        price = (torch.where(free, squares, torch.zeros_like(squares)).sum(1, keepdim=True) / left).sqrt()
        price = torch.where(left > 0, price, torch.full_like(price, torch.inf)).clamp(1e-280, 1e280)
        still = free & (size <= price * room)
        if bool((still == free).all()):
            break
        free = still
    reach = torch.minimum(room, size / price)
    gross = (size * reach).sum(1) + price[:, 0] * epsilon**2
    value = (reach * (0.5 * price * reach - size)).sum(1) - 0.5 * price[:, 0] * epsilon**2
    # With all multipliers at 0 the sum above is the bound of the box.
    return value, gross
