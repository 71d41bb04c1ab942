"""A recipe that trains in a second, and a method that fails on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from radii.train.methods.base import Lost, Method, State, cross_entropy, register
from radii.train.network import Network

RECIPE: dict[str, Any] = {
    "name": "small",
    "architecture": {"name": "dense:20x1", "batch_norm": True, "initialisation": "ibp"},
    "data": {"source": "mnist5k", "first": 600},
    "method": {"name": "sabr", "epsilon": 0.05, "steps": 2},
    "optimiser": {"learning_rate": 0.005, "l1": "1e-6", "clip": 10},
    "schedule": {"ramp": [0, 2], "at": [4]},
    "evaluation": {"inputs": 50, "steps": 3},
    "balance": {"name": "similarity", "epsilon": True},
    "epochs": 6,
    "batch": 50,
}


def recipe(**changes: Any) -> dict[str, Any]:
    return {**RECIPE, **changes}


@register
@dataclass(frozen=True)
class Explodes(Method):
    """Standard training whose loss is infinite, or grows instead of falling, from a given call on."""

    name = "test-explodes"
    epsilon: float
    after: int
    factor: float

    def loss(self, net: Network, x: torch.Tensor, y: torch.Tensor, epsilon: torch.Tensor, state: State) -> Lost:
        state.calls = getattr(state, "calls", 0) + 1
        factor = self.factor if state.calls > self.after else 1.0
        return Lost(cross_entropy(net.clean, y) * factor, net.clean)
