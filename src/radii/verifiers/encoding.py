"""Encoding: blocks of sparse affine rows and ReLUs over columns, as `encode` makes them and the solvers read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = Any  # scipy.sparse.csr_array; its stubs do not agree on operators


@dataclass(frozen=True, eq=False)
class Block:
    """Columns `start`… : z = matrix @ (earlier columns) + constant ± error; the column is max(z, 0) if relu, else z.

    `lower` and `upper` bound z (not the column).
    """

    start: int
    matrix: Matrix
    constant: Vector
    error: Vector
    relu: bool
    lower: Vector = field(repr=False)
    upper: Vector = field(repr=False)

    @property
    def size(self) -> int:
        """How many columns the block has."""
        return int(self.constant.size)

    @property
    def values(self) -> tuple[Vector, Vector]:
        """Bounds of the columns themselves."""
        if not self.relu:
            return self.lower, self.upper
        return np.maximum(self.lower, 0.0), np.maximum(self.upper, 0.0)

    @property
    def unstable(self) -> NDArray[np.bool_]:
        """Which columns are ReLUs that may be on either side of 0."""
        if not self.relu:
            return np.zeros(self.size, dtype=bool)
        return (self.lower < 0) & (self.upper > 0)


@dataclass(frozen=True, eq=False)
class Encoding:
    """A network over a box of inputs: the input bounds, the blocks in order, and which columns are the outputs."""

    low: Vector
    high: Vector
    blocks: tuple[Block, ...]
    outputs: NDArray[np.int64]

    @property
    def inputs(self) -> int:
        """How many columns are inputs."""
        return int(self.low.size)

    @property
    def columns(self) -> int:
        """How many columns there are in all."""
        return self.inputs + sum(block.size for block in self.blocks)

    @property
    def relus(self) -> int:
        """How many ReLUs may be on either side of 0."""
        return sum(int(block.unstable.sum()) for block in self.blocks)

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """Bounds of every column."""
        pairs = [(self.low, self.high), *(block.values for block in self.blocks)]
        return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])

    def __call__(self, x: Any) -> Vector:
        """The columns at one input, in float64 (for tests and warm starts)."""
        value = np.asarray(x, dtype=np.float64).ravel()
        for block in self.blocks:
            z = block.matrix @ value + block.constant
            value = np.concatenate([value, np.maximum(z, 0.0) if block.relu else z])
        return value
