"""Attained: what values inside a network are at points of a ball: random vertices, and points moved along gradients.

No part of a proof: it says what is worth asking.
"""

from __future__ import annotations

from collections.abc import Callable

from radii._torch import Tensor, torch
from radii.bounds.region import Region


class Attained:
    """Some values at points of one image's ball (of the box around it); `at` gives those of a batch of points."""

    def __init__(self, at: Callable[[Tensor], Tensor], region: Region, samples: int) -> None:
        self._at = at
        down, up = (side.to(torch.float32) for side in region.box())
        center = region.center.to(torch.float32)
        self.low, self.high = center - down, center + up
        coin = torch.rand((samples, center.shape[1]), generator=torch.Generator().manual_seed(0)) < 0.5
        self.points = torch.where(coin, self.low, self.high)
        self.values = self._at(self.points).double()

    def least(self, directions: Tensor, starts: int, pushes: int, shrink: float = 1.0) -> Tensor:
        """The least w·values met for each direction w, from its best points on down the gradients.

        The first push goes all the way to a vertex, each later one `shrink` times as far as the one before.
        """
        best, start = (self.values @ directions.T).topk(starts, dim=0, largest=False)
        least, x, w = best[0], self.points[start.flatten()], directions.float().repeat(starts, 1)
        for step in range(pushes):
            with torch.enable_grad():
                x = x.detach().requires_grad_(True)
                (gradient,) = torch.autograd.grad((self._at(x) * w).sum(), x)
            x = (x.detach() - (self.high - self.low) * shrink**step * gradient.sign()).clamp(self.low, self.high)
            met = (self._at(x).double() * w.double()).sum(1).reshape(starts, -1).amin(0)
            least = torch.minimum(least, met)
        return least
