"""Initialisation and regularisers for training with interval bounds (Shi et al. 2021).

With common initialisations the boxes grow from layer to layer, and ReLUs fall asleep while ε grows. Weights of a
smaller spread keep the boxes' widths; the regularisers keep them so, and active and inactive ReLUs in balance.
"""

from __future__ import annotations

import math

from radii._torch import Tensor, torch
from radii.train.layers import Memo

TINY = 1e-12


def initialise(module: torch.nn.Module) -> None:
    """Weights from N(0, (√(2π) / fan in)²): the expected width of a box then stays from layer to layer; biases 0."""
    for part in module.modules():
        if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d)):
            fan_in = part.weight[0].numel()
            torch.nn.init.normal_(part.weight, std=math.sqrt(2 * math.pi) / fan_in)
            if part.bias is not None:
                torch.nn.init.zeros_(part.bias)


def regulariser(low: Tensor, high: Tensor, memo: Memo, weight: float, tolerance: float, share: float) -> Tensor | float:
    """Weight · (1 − share of ε) · (tightness + ReLU balance), means over the layers before each ReLU."""
    if weight == 0 or share >= 1 or not memo:
        return 0.0
    first = ((high - low) / 2).mean()
    total = low.new_zeros(())
    for a, b in memo.values():
        total = total + _tightness(first, a, b, tolerance) + _balance(a, b, tolerance)
    return weight * (1 - share) * total / len(memo)


def _tightness(first: Tensor, low: Tensor, high: Tensor, tolerance: float) -> Tensor:
    """How far the boxes are wider than the inputs' boxes, beyond 1 / tolerance times."""
    return torch.relu(tolerance - first / ((high - low) / 2).mean().clamp_min(TINY)) / tolerance


def _balance(low: Tensor, high: Tensor, tolerance: float) -> Tensor:
    """How far active and inactive ReLUs are from the same mean and the same spread of their centres."""
    centre = (low + high) / 2
    on, off = (low > 0).to(low.dtype), (high < 0).to(low.dtype)
    spread = (centre - centre.mean()).square()
    total = low.new_zeros(())
    for active, inactive in (
        ((centre * on).mean(), -(centre * off).mean()),
        ((spread * on).mean(), (spread * off).mean()),
    ):
        if (
            float(active.detach()) > TINY and float(inactive.detach()) > TINY
        ):  # without either there is no ratio to speak of
            ratio = torch.minimum(active / inactive, inactive / active)
            total = total + torch.relu(tolerance - ratio) / tolerance
    return total
