"""FGSM training from a random start that is never the input itself (Wong, Rice and Kolter 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import number
from radii._torch import Tensor
from radii.train.attack import ascend, start
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class Fgsm(Method):
    """The cross entropy after one step of `step` times ε along the gradient's sign, from a random point of the ball."""

    name = "fgsm"
    about = "one gradient step from a random point of the ball (Wong et al. 2020)"
    judged = "attacked"

    epsilon: float
    step: float = 1.25  # times ε

    def __post_init__(self) -> None:
        number(self.step, "step", low=0.0, strict=True)

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        if state.share == 0:  # a step of size 0 would be standard training in disguise, and pay for a gradient
            return Lost(cross_entropy(net.clean, y), net.clean)
        low, high = box(x, epsilon, state.domain)
        fixed = net.detached()
        first = start(low, high, state.generator)
        point = ascend(lambda at: cross_entropy(fixed(at), y), first, low, high, self.step * epsilon, 1)
        outputs = net(point)
        return Lost(cross_entropy(outputs, y), outputs)
