"""CROWN-IBP: one backward pass of linear bounds through interval bounds (Zhang et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor
from radii.train.layers import Memo
from radii.train.methods.base import Lost, Method, State, box, register
from radii.train.methods.ibp import mixed
from radii.train.network import Network
from radii.train.shi import regulariser


@register
@dataclass(frozen=True)
class CrownIbp(Method):
    """As IBP, with worst-case outputs of `beta` parts backward bounds and 1 − `beta` parts interval bounds.

    Backward bounds are tight while ε is small and steady the start; interval bounds are what is certified in the end.
    """

    name = "crown_ibp"
    about = "backward linear bounds through interval bounds, giving way to them (Zhang et al. 2020)"
    judged = "certified"
    bounds = "backward"

    epsilon: float
    kappa: tuple[float, float] = (1.0, 0.0)
    beta: tuple[float, float] = (1.0, 0.0)  # while ε grows
    regulariser: float = 0.5
    tolerance: float = 0.5

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        low, high = box(x, epsilon, state.domain)
        memo: Memo = {}
        outputs = net.worst(low, high, y, memo)
        beta = state.between(self.beta)
        if beta > 0:
            outputs = beta * net.worst_linear(low, high, y, memo) + (1 - beta) * outputs
        losses = mixed(net, outputs, y, state.between(self.kappa))
        return Lost(losses, outputs, regulariser(low, high, memo, self.regulariser, self.tolerance, state.share))
