"""A mix of points and boxes in fixed parts, as DiffAI trains it (Mirman et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class DiffAI(Method):
    """`point` times the clean cross entropy plus `ball` times the worst case by interval bounds, the same all along."""

    name = "diffai"
    about = "points and boxes in fixed parts (Mirman et al. 2018)"
    judged = "certified"
    bounds = "interval"

    epsilon: float
    point: float = 1.0
    ball: float = 0.1

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        outputs = net.worst(*box(x, epsilon, state.domain), y)
        return Lost(self.point * cross_entropy(net.clean, y) + self.ball * cross_entropy(outputs, y), outputs)
