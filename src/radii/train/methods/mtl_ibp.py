"""MTL-IBP: an attacked loss and an interval loss side by side (De Palma et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import number
from radii._torch import Tensor
from radii.train.layers import Memo
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.methods.pgd import attacked
from radii.train.network import Network
from radii.train.shi import regulariser


@register
@dataclass(frozen=True)
class MtlIbp(Method):
    """1 − α times the cross entropy of an attacked point plus α times the worst case by interval bounds."""

    name = "mtl_ibp"
    about = "attacked and interval losses in parts 1 − α and α (De Palma et al. 2024)"
    judged = "attacked"
    bounds = "interval"

    epsilon: float
    alpha: float = 0.5
    steps: int = 8
    step: float = 0.25  # times ε
    wider: float = 1.0  # the attack's ε as a multiple of the bounds'
    regulariser: float = 0.5
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", low=0.0, high=1.0)
        number(self.step, "step", low=0.0, strict=True)

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        low, high = box(x, epsilon, state.domain)
        memo: Memo = {}
        outputs = net.worst(low, high, y, memo)
        hit = net.clean
        if state.share > 0:
            hit = net(attacked(net, x, y, self.wider * epsilon, state, self.steps, self.step))
        losses = (1 - self.alpha) * cross_entropy(hit, y) + self.alpha * cross_entropy(outputs, y)
        return Lost(losses, hit, regulariser(low, high, memo, self.regulariser, self.tolerance, state.share))
