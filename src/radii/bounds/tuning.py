"""Bounding: the numbers that steer bounds: how much is bounded at once, how precisely, and how far slopes climb.

A group of the engine's `Tuning`, here because bounds know nothing of the engine. None of them changes what is true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounding:
    """Sizes and steps of bounds that are not branched on."""

    coefficients: int = 2**20  # of the rows of ReLU networks that are bounded at once: few enough for the caches
    curve_coefficients: int = 2**23  # the same for networks with curves: 64 MiB of float64
    heavy: int = 2**20  # rows times convolution outputs on their way back, a tenth of a second of float64: more of them
    # are bounded in float32
    cut_steps: int = 7  # of Kelley's method, which finds the multiplier of a cut
    cut_kernel: int = 2**16  # coefficients of rows under cuts, which torch bounds in a millisecond: with fewer the
    # compiled kernel is not loaded, which takes more than a second
    hull_kernel: int = 2**15  # the same for slopes of hulls in nodes of trees
    ball_hull_kernel: int = 2**18  # and in the bounds of a ball, of which there are few: torch takes 7 ms for them
    steps: int = 8  # of ascent of the slopes
    rate: float = 0.5  # of the first step in ReLU networks, whose slopes lie in [0, 1]
    decay: float = 0.7  # times which every later step is as long
    curve_rate: float = 0.25  # of the first step in networks with curves, in units of each slope's range
    curve_decay: float = 0.9  # times which every later step is as long
    halvings: int = 8  # of an interval, to where a line touches a tanh: slopes of nodes are free and climb from there
    multiplier: float = 0.3  # of the largest coefficient of a layer: the unit of the steps of its multipliers


DEFAULT = Bounding()
