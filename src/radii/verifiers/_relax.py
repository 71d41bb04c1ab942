"""Sound bounds of the affine rows of an encoding: intervals, and linear relaxations substituted backwards.

Written for the referees on purpose: it shares no code with `radii.bounds`, so that a mistake in one shows against the
other. Everything runs in float64 and charges Higham's γ_n = n·u/(1 − n·u) for each sum of n products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from radii.logit_query import Region

if TYPE_CHECKING:
    from radii.verifiers.encoding import Block

Vector = NDArray[np.float64]
UNIT = float(np.finfo(np.float64).eps) / 2
TINY = 1e-300  # absorbs underflow, which the bound γ_n leaves out


def gamma(terms: int) -> float:
    """Higham's γ for a sum of so many products, with room for the few operations around it."""
    n = terms + 8
    return 1.01 * n * UNIT / (1 - n * UNIT)


def interval(matrix: Any, constant: Vector, error: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    """Bounds of matrix @ x + constant ± error for low ≤ x ≤ high."""
    plus, minus = matrix.maximum(0), matrix.minimum(0)
    terms = int(np.diff(matrix.indptr).max(initial=0))
    magnitude = abs(matrix) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(constant)
    slack = gamma(2 * terms) * magnitude + error * (1 + 4 * UNIT) + TINY
    return plus @ low + minus @ high + constant - slack, plus @ high + minus @ low + constant + slack


def box(low: Vector, high: Vector) -> Callable[[Any, Vector], Vector]:
    """A function that gives the least value of rows @ x over a box, rounded down."""
    size = np.maximum(np.abs(low), np.abs(high))

    def least(rows: Any, _: Vector) -> Vector:
        plus, minus = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
        return np.asarray(plus @ low + minus @ high - gamma(2 * low.size) * (np.abs(rows) @ size) - TINY)

    return least


def diamond(center: Vector, epsilon: float, low: Vector, high: Vector) -> Callable[[Any, Vector], Vector]:
    """Like `box` for an L1 ball within a box: the better of the two."""
    size = np.maximum(np.abs(low), np.abs(high))
    boxed = box(low, high)

    def least(rows: Any, extra: Vector) -> Vector:
        reach = epsilon * np.abs(rows).max(axis=1, initial=0.0)
        slack = gamma(2 * low.size) * (np.abs(rows) @ size + reach) + TINY
        return np.asarray(np.maximum(rows @ center - reach - slack, boxed(rows, extra)))

    return least


def over(region: Region) -> Callable[[Any, Vector], Vector]:
    """The least value of rows over a region, rounded down, as a function of the rows."""
    if region.center is None or region.norm.name != "l1":
        return box(region.low, region.high)  # for L2 the box around the ball: sound, if loose
    return diamond(region.center, region.epsilon, region.low, region.high)


def crown(least: Callable[[Any, Vector], Vector]) -> Callable[..., tuple[Vector, Vector]]:
    """A tightening for `encode`: backward substitution of linear relaxations (Zhang et al. 2018), then `least`."""

    def tighten(blocks: Sequence[Block], block: Block, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        if not blocks:
            # Only the input set itself can be better than the interval (an L1 ball is no box).
            rows = block.matrix.toarray()
            return _join(block, least(rows, high), least(-rows, high), low, high)
        lower = _backward(blocks, block.matrix.toarray(), least, low, high)
        upper = _backward(blocks, -block.matrix.toarray(), least, low, high)
        return _join(block, lower, upper, low, high)

    return tighten


def row_bounds(blocks: Sequence[Block], rows: Vector, least: Any, low: Vector, high: Vector) -> Vector:
    """Lower bounds of rows @ columns (all columns of the blocks)."""
    return _backward(blocks, np.asarray(rows, dtype=np.float64), least, low, high)


def _join(block: Block, lower: Vector, minus_upper: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
    slack = (
        4 * UNIT * (np.abs(lower) + np.abs(minus_upper) + np.abs(block.constant)) + block.error * (1 + 4 * UNIT) + TINY
    )
    return (
        np.maximum(block.lower, lower + block.constant - slack),
        np.minimum(block.upper, block.constant - minus_upper + slack),
    )


def _backward(blocks: Sequence[Block], rows: Vector, least: Any, low: Vector, high: Vector) -> Vector:
    """Lower bounds of rows @ columns: each block is replaced by a line below or above it, last block first."""
    total = np.zeros(rows.shape[0])
    slack = np.zeros(rows.shape[0])
    pairs = [(low, high), *(b.values for b in blocks)]
    size = np.concatenate([np.maximum(np.abs(l), np.abs(h)) for l, h in pairs])
    for block in reversed(blocks):
        head, tail = rows[:, : block.start], rows[:, block.start :]
        slope_low, slope_up, offset_up = _lines(block)
        plus, minus = np.maximum(tail, 0.0), np.minimum(tail, 0.0)
        pull = plus * slope_low + minus * slope_up
        reach = np.abs(pull)
        rows = head + pull @ block.matrix
        steps = gamma(2 * block.size + 4)
        # The rounding error of a coefficient, times the largest value of its column.
        moved = (reach @ abs(block.matrix) + np.abs(head)) @ size[: block.start]
        total = total + pull @ block.constant + minus @ offset_up
        slack = slack + reach @ block.error + np.abs(minus) @ np.abs(offset_up) * steps
        slack = slack + steps * (moved + reach @ np.abs(block.constant) + np.abs(total)) + gamma(block.start) * moved
    return np.asarray(least(rows, high) + total - slack * (1 + 1e-9) - TINY)


def _lines(block: Block) -> tuple[Vector, Vector, Vector]:
    """Slopes of a line below (through 0), and slope and offset of a line above, for each column over its z."""
    ones, zeros = np.ones(block.size), np.zeros(block.size)
    if not block.relu:
        return ones, ones, zeros
    l, u = block.lower, block.upper
    unstable = block.unstable
    on = np.where(l >= 0, 1.0, 0.0)
    below = np.where(unstable, (u > -l).astype(float), on)
    slope = np.where(unstable, u / np.where(unstable, u - l, 1.0), on)
    # The slope is rounded; the offset is chosen so that the line lies above both corners of the ReLU all the same.
    raised = np.maximum(-slope * l, u - slope * u)
    offset = np.where(unstable, raised + 4 * UNIT * (np.abs(l) + np.abs(u)), 0.0)
    return below, slope, offset
