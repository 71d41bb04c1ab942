"""SABR: interval bounds over a small box around an attacked point instead of the whole ball (Müller et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from radii._check import number
from radii._torch import Tensor, torch
from radii.train.attack import ascend, start
from radii.train.layers import Memo
from radii.train.methods.base import Lost, Method, State, box, cross_entropy, register
from radii.train.methods.ibp import mixed
from radii.train.network import Network
from radii.train.shi import regulariser


@register
@dataclass(frozen=True)
class Sabr(Method):
    """The worst case over a box of `share` times ε around a point that PGD finds where that box fits into the ball."""

    name = "sabr"
    about = "interval bounds over a small box around an attacked point (Müller et al. 2023)"
    judged = "attacked"
    bounds = "interval"

    epsilon: float
    share: float = 0.4  # λ: the small box's size as a share of the ball's
    steps: int = 8
    step: float = 0.5  # times the room that is left for the point
    kappa: tuple[float, float] = (1.0, 0.0)
    regulariser: float = 0.5
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        number(self.share, "share", low=0.0, high=1.0, strict=True)
        number(self.step, "step", low=0.0, strict=True)

    def loss(self, net: Network, x: Tensor, y: Tensor, epsilon: Tensor, state: State) -> Lost:
        low, high = box(x, epsilon, state.domain)
        small = self.share * epsilon
        centre = x
        if state.share > 0 and self.share < 1:
            room = epsilon - small
            inner = box(x, room, state.domain)
            fixed, size = net.detached(), self.step * room
            first = start(*inner, state.generator)
            centre = ascend(lambda at: cross_entropy(fixed(at), y), first, *inner, size, self.steps)
        low, high = torch.maximum(centre - small, low), torch.minimum(centre + small, high)
        memo: Memo = {}
        outputs = net.worst(low, high, y, memo)
        losses = mixed(net, outputs, y, state.between(self.kappa))
        return Lost(losses, outputs, regulariser(low, high, memo, self.regulariser, self.tolerance, state.share))
