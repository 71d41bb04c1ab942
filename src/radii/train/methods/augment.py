"""Data augmentation: further inputs from the ball around each, uniform or by FGSM (Casadio et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import choice
from radii._torch import Tensor, torch
from radii.train.attack import ascend, start
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class Augment(Method):
    """The mean cross entropy of each input and of `samples` more from its ball, drawn anew in every step."""

    name = "augment"
    about = "each input with further samples of its ball, uniform or by FGSM (Casadio et al. 2022)"
    judged = "attacked"

    epsilon: float
    sampling: str = "uniform"  # or fgsm
    samples: int = 2

    def __post_init__(self) -> None:
        choice(self.sampling, "sampling", ("uniform", "fgsm"))

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        low, high = (end.repeat(self.samples, *(1 for _ in x.shape[1:])) for end in box(x, epsilon, state.domain))
        points, labels = start(low, high, state.generator), y.repeat(self.samples)
        if self.sampling == "fgsm" and state.share > 0:
            fixed = net.detached()
            points = ascend(lambda point: cross_entropy(fixed(point), labels), points, low, high, high - low, 1)
        outputs = net(points)
        losses = torch.cat([cross_entropy(net.clean, y), cross_entropy(outputs, labels)])
        return Lost(losses.reshape(1 + self.samples, -1).mean(0), outputs[-len(y) :])
