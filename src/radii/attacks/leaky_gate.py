"""LeakyGate: a clamp whose gradient does not die; the surface of attacks is made of it (`surrogate.py`)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class LeakyGate(torch.autograd.Function):
    """The clamp to [low, high], with gradients that pass the clamped entries with slope `leak`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, leak: Tensor, low: float, high: float) -> Tensor:
        value = x.clamp(low, high)
        ctx.save_for_backward(value == x, leak)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        inside, leak = ctx.saved_tensors
        (grad,) = grads
        slope = leak.reshape(-1, *([1] * (grad.dim() - 1)))
        return torch.where(inside, grad, grad * slope), None, None, None
