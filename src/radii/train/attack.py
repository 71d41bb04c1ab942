"""FGSM and PGD for training: a batch of points in L∞ balls that raise an objective; inputs in, points out.

The attacks of `radii.attacks` find witnesses for one question after the other and replay them; these give the inner
maximum of a training step, for a whole batch, from the weights of the moment.
"""

from __future__ import annotations

from collections.abc import Callable

from radii._torch import Tensor, torch

Objective = Callable[[Tensor], Tensor]  # points (batch, …) to the values that they should raise: (batch,)


def start(low: Tensor, high: Tensor, generator: torch.Generator) -> Tensor:
    """A random point of each box: FGSM from the centre learns to hide gradients instead (Wong et al. 2020)."""
    share = torch.rand(low.shape, generator=generator, dtype=low.dtype)
    return low + share * (high - low)


def ascend(objective: Objective, point: Tensor, low: Tensor, high: Tensor, size: Tensor, steps: int) -> Tensor:
    """Steps along the gradient's sign of `size` each, cut to the box (Madry et al. 2018); the last point."""
    for _ in range(steps):
        point = point.detach().requires_grad_()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(objective(point).sum(), point)
        point = torch.minimum(torch.maximum(point.detach() + size * slope.sign(), low), high)
    return point.detach()
