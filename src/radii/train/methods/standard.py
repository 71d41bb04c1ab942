"""Standard training: the cross entropy of the inputs as they are."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor
from radii.train.methods.base import Lost, Method, State, cross_entropy, register
from radii.train.network import Network


@register
@dataclass(frozen=True)
class Standard(Method):
    """Cross entropy, no adversary."""

    name = "standard"
    about = "cross entropy of the inputs as they are"
    epsilon = 0.0

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        return Lost(cross_entropy(net.clean, y), net.clean)
