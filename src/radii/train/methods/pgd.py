"""PGD training: the cross entropy of the worst point that projected gradient ascent finds (Madry et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import number
from radii._torch import Tensor
from radii.train.attack import ascend, start
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class Pgd(Method):
    """The cross entropy at the end of `steps` steps of `step` times ε, mixed with that of clean inputs by `clean`."""

    name = "pgd"
    about = "projected gradient ascent from a random point of the ball (Madry et al. 2018)"
    judged = "attacked"

    epsilon: float
    steps: int = 10
    step: float = 0.25  # times ε
    clean: float = 0.0  # the weight of clean inputs

    def __post_init__(self) -> None:
        number(self.step, "step", low=0.0, strict=True)
        number(self.clean, "clean", low=0.0, high=1.0)

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        if state.share == 0:
            return Lost(cross_entropy(net.clean, y), net.clean)
        outputs = net(attacked(net, x, y, epsilon, state, self.steps, self.step))
        losses = cross_entropy(outputs, y)
        if self.clean:
            losses = self.clean * cross_entropy(net.clean, y) + (1 - self.clean) * losses
        return Lost(losses, outputs)


def attacked(net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State, steps: int, step: float) -> Tensor:
    """The points of the balls that PGD on the cross entropy ends at."""
    low, high = box(x, epsilon, state.domain)
    fixed = net.detached()
    first = start(low, high, state.generator)
    return ascend(lambda at: cross_entropy(fixed(at), y), first, low, high, step * epsilon, steps)
