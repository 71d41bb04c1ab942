"""IBP: the cross entropy of worst-case outputs by interval bounds (Gowal et al. 2018; Shi et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor
from radii.train.layers import Memo
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.network import Network
from radii.train.shi import regulariser


@register
@dataclass(frozen=True)
class Ibp(Method):
    """κ times the clean cross entropy plus 1 − κ times the worst case; κ goes from its first to its last value."""

    name = "ibp"
    about = "worst-case outputs by interval bounds (Gowal et al. 2018), with Shi et al.'s regularisers"
    judged = "certified"
    bounds = "interval"

    epsilon: float
    kappa: tuple[float, float] = (1.0, 0.0)  # while ε grows
    regulariser: float = 0.5  # of tightness and ReLU balance, fading out while ε grows; 0 for none
    tolerance: float = 0.5

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        low, high = box(x, epsilon, state.domain)
        memo: Memo = {}
        outputs = net.worst(low, high, y, memo)
        losses = mixed(net, outputs, y, state.between(self.kappa))
        return Lost(losses, outputs, regulariser(low, high, memo, self.regulariser, self.tolerance, state.share))


def mixed(net: Network, outputs: Tensor, y: Tensor, kappa: float) -> Tensor:
    """κ times the clean cross entropy plus 1 − κ times that of worst-case outputs."""
    if kappa == 0:
        return cross_entropy(outputs, y)
    return kappa * cross_entropy(net.clean, y) + (1 - kappa) * cross_entropy(outputs, y)
