"""Shell: the part of a ball outside a smaller one, for conditions that grow with the distance from the centre.

A Lipschitz condition asks whether a·δ + c + s·‖δ‖ can reach 0. One bound for the whole ball fails: every relaxation is
off by a constant, and at δ = 0 nothing makes up for it. On a shell r ≤ ‖δ‖ ≤ R the distance is at least r, and the
least value over the shell is that of a convex function of one number t = ‖δ‖, h(a, t) + s·t, with h the support of the
ball (see `region`): two tangents bound it from below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from radii._torch import Tensor, torch
from radii.bounds.region import Region
from radii.bounds.rounding import gamma, outward


@dataclass(frozen=True, eq=False)
class Shell(Region):
    """Balls without their inner balls; linear functions on them carry `slope`·(‖δ‖ − inner) ≥ 0 beside."""

    inner: float = 0.0
    slope: float = 0.0

    @staticmethod
    def of(ball: Region, inner: float, slope: float) -> Shell:
        """The shell of balls outside distance `inner`."""
        return Shell(ball.center, ball.epsilon, ball.norm, ball.down, ball.up, inner, slope)

    def shifted(self) -> Region:
        return replace(self, center=torch.zeros_like(self.center))

    def to(self, dtype: torch.dtype) -> Region:
        _, down = outward(self.down, self.down, dtype)
        _, up = outward(self.up, self.up, dtype)
        _, size = outward(self.epsilon, self.epsilon, dtype)
        return replace(self, center=self.center.to(dtype), epsilon=size, down=down, up=up)

    def rows(self, index: Tensor) -> Region:
        return replace(
            self,
            center=self.center[index],
            epsilon=self.epsilon[index],
            down=self.down[index],
            up=self.up[index],
        )

    def lowest(self, a: Tensor, c: Tensor) -> Tensor:
        """A lower bound on a·x + c + slope·(‖x − x0‖ − inner) over the shells."""
        outer = self.epsilon[:, None].expand(a.shape[:2])
        start = torch.minimum(torch.full_like(outer, self.inner), outer)
        width = outer - start
        near, falling = self.support(a, start)
        far, flat = self.support(a, outer)
        # Slopes of the support are sums of at most d numbers; their rounding is charged over the shell's width.
        slack = 2 * gamma(a.shape[-1] + 4, self.unit) * (falling.abs() + self.slope) * width
        far = far + self.slope * width
        falling, flat = falling + self.slope, flat + self.slope
        # The support is convex in t: no value is below the larger of the tangents at both ends.
        between = near + falling * (far - near - flat * width) / (falling - flat).clamp_max(-1e-300)
        crossing = torch.where((falling < 0) & (flat > 0), between, torch.minimum(near, far))
        least = torch.where(falling >= 0, near, torch.where(flat <= 0, far, crossing))
        return self.at_center(a, c) + torch.minimum(torch.minimum(least, near), far) - slack

    def value(self, a: Tensor, c: Tensor, x: Tensor) -> Tensor:
        """a·x + c + slope·(‖x − x0‖ − inner) at points (batch, rows, d); not certified."""
        far: Tensor = torch.linalg.vector_norm(x - self.center[:, None], ord=self.norm.order, dim=-1)
        return super().value(a, c, x) + self.slope * (far - self.inner)

    def minimiser(self, a: Tensor, epsilon: Tensor | None = None) -> Tensor:
        """A point of each shell where a·x + slope·‖x − x0‖ is least: at its inner or at its outer end.

        Between them the function can only be less where the domain clips the ball; a gradient does not need that.
        """
        if epsilon is not None:
            return super().minimiser(a, epsilon)
        outer = self.epsilon[:, None].expand(a.shape[:2])
        start = torch.minimum(torch.full_like(outer, self.inner), outer)
        ends = [Region.minimiser(self, a, size) for size in (start, outer)]
        near, far = (super(Shell, self).value(a, self.slope * size, x) for size, x in zip((start, outer), ends))
        return torch.where((near < far)[..., None], ends[0], ends[1])

    def root(self, a: Tensor, c: Tensor) -> Tensor:
        """A shell proves nothing of the ball inside it: no radius comes from one bound."""
        return torch.zeros_like(c)
