"""Weights that are meant to hurt: tiny, huge, at the end of float32, equal, dead, sparse, whole numbers that tie."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fuzzing.build import Array

PROFILES = (
    "plain", "plain", "plain", "ties", "ties", "sparse", "tiny", "huge", "enormous", "brink", "swing", "steep",
    "equal", "dead", "wide",
)  # fmt: skip


@dataclass
class Weights:
    """Draws weights and biases of one profile; `scale` is what earlier layers have multiplied values by."""

    profile: str
    rng: np.random.Generator
    scale: float = 1.0
    _factor: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        rng = self.rng
        self._factor = {
            "tiny": 10.0 ** -rng.uniform(8, 30),
            "huge": 10.0 ** rng.uniform(4, 18),
            "enormous": 10.0 ** rng.uniform(25, 37),
            "swing": 10.0 ** rng.uniform(2, 15),
            "steep": 10.0 ** rng.uniform(1, 4),
        }.get(self.profile, 1.0)

    def layer(self, outputs: int, inputs: int) -> tuple[Array, Array]:
        """A weight (outputs, inputs) and a bias."""
        rng, profile = self.rng, self.profile
        if profile == "ties":
            return rng.integers(-2, 3, (outputs, inputs)) / 2, rng.integers(-2, 3, outputs) / 4 * self.scale
        if profile == "brink" and self.scale == 1.0:  # a sum of positive terms that float32 may not hold
            self.scale = float(np.finfo(np.float32).max) / inputs * rng.uniform(0.9, 1.4)
            return rng.uniform(0.8, 1.0, (outputs, inputs)) * self.scale, np.zeros(outputs)
        weight = rng.normal(size=(outputs, inputs)) * math.sqrt(2 / inputs)
        bias = rng.normal(size=outputs) * 0.3
        if profile == "sparse":
            weight *= rng.random(weight.shape) < 0.4
        elif profile == "wide":
            weight *= 10.0 ** rng.uniform(-30, 1, weight.shape) ** (rng.random(weight.shape) < 0.3)
        elif profile == "equal" and outputs > 1:
            weight[1:] = np.where(rng.random((outputs - 1, 1)) < 0.5, weight[:1], weight[1:])
            bias[1:] = np.where(rng.random(outputs - 1) < 0.7, bias[0], bias[1:])
        elif profile == "dead" and rng.random() < 0.4:
            bias -= 10.0 ** rng.uniform(1, 4)
        factor = self._next()
        self.scale *= factor
        return weight * factor, bias * self.scale

    def _next(self) -> float:
        """What this layer multiplies values by: once for tiny and huge, up and down again for swing."""
        factor = self._factor
        if self.profile == "swing":
            self._factor = 1.0 / factor
        elif self.profile != "steep":
            self._factor = 1.0
        return factor
