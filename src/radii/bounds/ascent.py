"""Ascent: the step of Adam that slopes and multipliers take along a bound's gradient."""

from __future__ import annotations

from radii._torch import Tensor


def adam(gradient: Tensor, first: Tensor, second: Tensor, step: int, least: float) -> Tensor:
    """The direction of step `step` (from 0); moves both moments in place. `least` keeps it from dividing by 0."""
    first.mul_(0.9).add_(gradient, alpha=0.1)
    second.mul_(0.99).addcmul_(gradient, gradient, value=0.01)
    return (first / (1 - 0.9 ** (step + 1))).div_((second / (1 - 0.99 ** (step + 1))).sqrt_().add_(least))
