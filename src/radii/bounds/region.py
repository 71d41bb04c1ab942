"""Region: a batch of balls (one per image) intersected with the domain, and what linear functions do on them.

A linear function a·x + c on the ball of size ε around x0 has its least value at a·x0 + c + h(a, ε), where the support
h(a, ε) = min of a·δ over ‖δ‖ ≤ ε, −down ≤ δ ≤ up is convex and decreasing in ε. So Newton's method from ε = 0 finds the
certified radius (the root) from below. Every number returned is on the safe side of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.rounding import UP, gamma, outward, unit_of
from radii.problem import LINF, Domain, Instance, Norm

_STEPS = 40


@dataclass(frozen=True, eq=False)
class Region:
    """Balls of one norm around a batch of flat inputs; `down` and `up` are the room to the domain's ends."""

    center: Tensor  # (batch, d) float64
    epsilon: Tensor  # (batch,) float64: the largest size of interest
    norm: Norm
    down: Tensor  # (batch, d), inf where the domain does not end
    up: Tensor

    @staticmethod
    def around(center: Tensor, epsilon: Tensor, norm: Norm, domain: Domain) -> Region:
        """The balls around a batch of inputs of any shape (flattened), on the device of `center`."""
        flat = center.reshape(center.shape[0], -1).to(torch.float64)
        inflate = 1.0 + 2.0**-50
        down = ((flat - domain.low).clamp_min(0.0)) * inflate
        up = ((domain.high - flat).clamp_min(0.0)) * inflate
        size = epsilon.to(device=flat.device, dtype=torch.float64)
        # On a line all norms are one, and boxes have what balls have not: linear programs at leaves, hulls, cuts.
        return Region(flat, size, norm if flat.shape[1] > 1 else LINF, down, up)

    @staticmethod
    def of_input(instance: Instance, epsilon: float, norm: Norm, domain: Domain) -> Region:
        """The ball of one size around one input."""
        center = torch.from_numpy(instance.x[None].copy())
        return Region.around(center, torch.tensor([epsilon], dtype=torch.float64), norm, domain)

    def shifted(self) -> Region:
        """The same balls in coordinates δ = x − x0."""
        return Region(torch.zeros_like(self.center), self.epsilon, self.norm, self.down, self.up)

    def to(self, dtype: torch.dtype) -> Region:
        """The same balls, not smaller, in another precision; the centre must be 0 or exact in it."""
        _, down = outward(self.down, self.down, dtype)
        _, up = outward(self.up, self.up, dtype)
        _, size = outward(self.epsilon, self.epsilon, dtype)
        return Region(self.center.to(dtype), size, self.norm, down, up)

    @property
    def unit(self) -> float:
        """The unit roundoff of the region's precision."""
        return unit_of(self.center.dtype)

    def rows(self, index: Tensor) -> Region:
        """The balls at these positions of the batch."""
        return Region(self.center[index], self.epsilon[index], self.norm, self.down[index], self.up[index])

    def box(self) -> tuple[Tensor, Tensor]:
        """Room below and above the centre in each coordinate: a box that holds the ball ∩ domain."""
        size = self.epsilon[:, None] * (1.0 + 4 * self.unit)
        return torch.minimum(self.down, size), torch.minimum(self.up, size)

    def magnitude(self) -> Tensor:
        """An upper bound on |x| in each coordinate."""
        down, up = self.box()
        return torch.maximum((self.center - down).abs(), (self.center + up).abs()) * UP

    def support(self, a: Tensor, epsilon: Tensor) -> tuple[Tensor, Tensor]:
        """A lower bound on h(a, ε) and its slope in ε, for coefficients (batch, rows, d) and ε (batch, rows)."""
        # Moving down is useful where a > 0: the room that matters is the one the coefficient points away from.
        room = torch.where(a > 0, self.down[:, None], self.up[:, None])
        size = a.abs()
        if self.norm.name == "linf":
            reach = torch.minimum(room, epsilon[..., None] * (1.0 + 4 * self.unit))
            value = -(size * reach).sum(-1)
            slope = -(size * (room > epsilon[..., None])).sum(-1)
        elif self.norm.name == "l1":
            value, slope = _support_l1(size, room, epsilon)
        else:
            value, slope = _support_l2(size, room, epsilon)
        return value * (1.0 + 2 * gamma(a.shape[-1], self.unit)), slope

    def lowest(self, a: Tensor, c: Tensor) -> Tensor:
        """A lower bound on a·x + c over the balls, for coefficients (batch, rows, d) and constants (batch, rows)."""
        if self.norm.name == "linf":
            # Two products with vectors: choosing a side for every coefficient takes many times as long.
            down, up = self.box()
            above = a.clamp_min(0.0)
            value = (times(a - above, up) - times(above, down)) * (1.0 + 2 * gamma(a.shape[-1], self.unit))
        else:
            value, _ = self.support(a, self.epsilon[:, None].expand(a.shape[:2]))
        return self.at_center(a, c) + value

    def at_center(self, a: Tensor, c: Tensor) -> Tensor:
        """A lower bound on a·x0 + c."""
        slack = gamma(a.shape[-1] + 1, self.unit) * (times(a.abs(), self.center.abs()) + c.abs())
        return times(a, self.center) + c - slack

    def root(self, a: Tensor, c: Tensor) -> Tensor:
        """A certified radius: a·x + c > 0 on the whole ball of that size; at most the region's own ε, at least 0."""
        start = self.at_center(a, c)
        limit = self.epsilon[:, None].expand(start.shape)
        best = torch.zeros_like(start)
        epsilon = torch.zeros_like(start)
        for _ in range(_STEPS):
            value, slope = self.support(a, epsilon)
            value = start + value
            good = value > 0
            best = torch.where(good & (epsilon > best), epsilon, best)
            step = torch.where(slope < 0, value / -slope.clamp_max(-1e-300), torch.full_like(value, torch.inf))
            following = torch.minimum(epsilon + step * (1.0 - 1e-12), limit)
            moved = good & (following > epsilon * (1.0 + 1e-13))
            if not bool(moved.any()):
                break
            epsilon = torch.where(moved, following, epsilon)
        return torch.where(start > 0, best, torch.zeros_like(best))

    def value(self, a: Tensor, c: Tensor, x: Tensor) -> Tensor:
        """a·x + c at points (batch, rows, d); not certified."""
        return (a * x).sum(-1) + c

    def minimiser(self, a: Tensor, epsilon: Tensor | None = None) -> Tensor:
        """A point of each ball where a·x is least (batch, rows, d); not certified, for attacks and gradients."""
        if epsilon is None and self.norm.name == "linf":
            size = self.epsilon[:, None]
            down, up = torch.minimum(self.down, size), torch.minimum(self.up, size)
            return torch.addcmul(
                (self.center + 0.5 * (up - down))[:, None], torch.sign(a), (0.5 * (up + down))[:, None], value=-1.0
            )
        size = (self.epsilon[:, None].expand(a.shape[:2]) if epsilon is None else epsilon)[..., None]
        room = torch.where(a > 0, self.down[:, None], self.up[:, None])
        if self.norm.name == "linf":
            reach = torch.minimum(room, size)
        elif self.norm.name == "l1":
            reach = _reach_l1(a.abs(), room, size)
        else:
            reach = _reach_l2(a.abs(), room, size)
        return self.center[:, None] - torch.sign(a) * reach


def times(rows: Tensor, vector: Tensor) -> Tensor:
    """Each ball's rows times its vector: (batch, rows)."""
    return torch.matmul(rows, vector[..., None])[..., 0]


def _support_l1(size: Tensor, room: Tensor, epsilon: Tensor) -> tuple[Tensor, Tensor]:
    """Greedy: spend ε on the largest coefficients first. By duality any λ gives −Σ(|a|−λ)⁺·room − λε ≤ h."""
    order = size.sort(-1, descending=True)
    sizes, rooms = order.values, room.gather(-1, order.indices)
    spent = rooms.cumsum(-1)
    first = (spent >= epsilon[..., None]).to(torch.int8).argmax(-1, keepdim=True)
    enough = spent[..., -1:] >= epsilon[..., None]
    price = torch.where(enough, sizes.gather(-1, first), torch.zeros_like(sizes[..., :1]))
    excess = (size - price).clamp_min(0.0)
    value = -torch.where(excess > 0, excess * room, torch.zeros_like(excess)).sum(-1) - price[..., 0] * epsilon
    return value, -price[..., 0]


def _reach_l1(size: Tensor, room: Tensor, epsilon: Tensor) -> Tensor:
    order = size.sort(-1, descending=True)
    rooms = room.gather(-1, order.indices).clamp_max(1e30)
    before = rooms.cumsum(-1) - rooms
    used = torch.minimum(rooms, (epsilon - before).clamp_min(0.0))
    return torch.zeros_like(room).scatter(-1, order.indices, used)


def _support_l2(size: Tensor, room: Tensor, epsilon: Tensor) -> tuple[Tensor, Tensor]:
    """By duality any τ > 0 gives Σ min over |δ_i| ≤ room_i of (a_i δ_i + τ δ_i²/2) − τ ε²/2 ≤ h; τ by bisection."""
    price = _price_l2(size, room, epsilon)
    reach = torch.minimum(room, size / price[..., None])
    inner = (-size * reach + 0.5 * price[..., None] * reach * reach).sum(-1)
    free = -(size.square().sum(-1).sqrt()) * epsilon
    value = torch.maximum(inner - 0.5 * price * epsilon * epsilon, free)
    magnitude = (size * reach).sum(-1) + price * epsilon * epsilon
    return value - 4 * gamma(size.shape[-1], unit_of(size.dtype)) * magnitude, -price * epsilon.clamp_min(1e-30)


def _price_l2(size: Tensor, room: Tensor, epsilon: Tensor) -> Tensor:
    """τ with ‖clip(a/τ, room)‖ = ε, up to the bisection's precision."""
    length = size.square().sum(-1).sqrt()
    high = length / epsilon.clamp_min(1e-30) + 1e-30
    low = torch.full_like(high, 0.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        reach = torch.minimum(room, size / middle.clamp_min(1e-300)[..., None])
        over = reach.square().sum(-1) > epsilon * epsilon
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    return high.clamp_min(1e-290)


def _reach_l2(size: Tensor, room: Tensor, epsilon: Tensor) -> Tensor:
    price = _price_l2(size, room, epsilon[..., 0])
    return torch.minimum(room, size / price[..., None])
