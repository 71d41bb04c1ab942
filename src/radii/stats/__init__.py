"""Distributions of radii, tests and guarantees: arrays in, small results out (numpy and scipy only)."""

from __future__ import annotations

from radii.stats.distribution import Distribution, RobustAccuracy
from radii.stats.guarantee import Guarantee

__all__ = ["Distribution", "Guarantee", "RobustAccuracy"]
