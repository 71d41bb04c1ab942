"""TRADES: accuracy on clean inputs, and outputs that stay what they are in the ball (Zhang et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import number
from radii._torch import Tensor, functional, torch
from radii.train.attack import ascend
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network

NUDGE = 0.1  # of ε: the divergence has no slope at the input itself, so the ascent starts beside it


@register
@dataclass(frozen=True)
class Trades(Method):
    """Cross entropy plus `beta` times the Kullback–Leibler divergence to the outputs of an attacked point."""

    name = "trades"
    about = "clean cross entropy + β · divergence to an attacked point (Zhang et al. 2019)"
    judged = "attacked"

    epsilon: float
    beta: float = 6.0
    steps: int = 10
    step: float = 0.25  # times ε

    def __post_init__(self) -> None:
        number(self.step, "step", low=0.0, strict=True)

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        losses = cross_entropy(net.clean, y)
        if state.share == 0:
            return Lost(losses, net.clean)
        low, high = box(x, epsilon, state.domain)
        fixed = net.detached()
        noise = 2 * torch.rand(x.shape, generator=state.generator, dtype=x.dtype) - 1
        first = torch.minimum(torch.maximum(x + NUDGE * epsilon * noise, low), high)
        target = fixed.clean
        point = ascend(lambda at: divergence(target, fixed(at)), first, low, high, self.step * epsilon, self.steps)
        outputs = net(point)
        return Lost(losses + self.beta * divergence(net.clean, outputs), outputs)


def divergence(first: Tensor, second: Tensor) -> Tensor:
    """The Kullback–Leibler divergence of the second softmax from the first: (batch,)."""
    return functional.kl_div(
        functional.log_softmax(second, 1), functional.log_softmax(first, 1), reduction="none", log_target=True
    ).sum(1)
