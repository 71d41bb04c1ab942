"""Mip: an encoding, a region and a clause as a mixed-integer linear program (Tjeng et al. 2019, "MIPVerify").

A ReLU y = max(z, 0) with L ≤ z ≤ U, L < 0 < U, takes a binary d:   y ≥ z,  y ≤ z − L·(1 − d),  y ≤ U·d,  y ≥ 0.
Every row is written so that each real input of the region is feasible: the program is a relaxation of the truth,
whatever was rounded on the way, and a bound on its optimum is a bound on the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from radii.logit_query import Region
from radii.problem import Clause
from radii.verifiers.encoding import Block, Encoding

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Mip:
    """minimise cost·v with low ≤ v ≤ high, row_low ≤ rows @ v ≤ row_high, and `integer` columns whole."""

    cost: Vector
    low: Vector
    high: Vector
    integer: NDArray[np.bool_]
    rows: Any
    row_low: Vector
    row_high: Vector
    inputs: int

    @property
    def scale(self) -> float:
        """Σ of the widths of all columns: what one unit of a solver's tolerance can cost in the objective."""
        return float(np.sum(self.high - self.low)) + 1.0


@dataclass
class _Rows:
    parts: list[Any] = field(default_factory=list)
    low: list[Vector] = field(default_factory=list)
    high: list[Vector] = field(default_factory=list)

    def add(self, matrix: Any, low: Any, high: Any) -> None:
        count = matrix.shape[0]
        self.parts.append(scipy.sparse.csr_array(matrix))
        self.low.append(np.broadcast_to(np.asarray(low, float), count))
        self.high.append(np.broadcast_to(np.asarray(high, float), count))


def least_margin(encoding: Encoding, region: Region, clause: Clause) -> Mip:
    """The program whose optimum is the least, over the region, of the clause's largest row: broken iff ≤ 0."""
    low, high = _row_range(encoding, clause)
    frame = _Frame(encoding, region, float(low.max()), float(high.max()))
    count = len(clause.bounds)
    rows = scipy.sparse.hstack([-frame.outputs(clause), scipy.sparse.csr_array(np.ones((count, 1)))])  # t ≥ every row
    frame.rows.add(_place(rows, frame, count), -clause.bounds, np.inf)
    return frame.finish()


def least_epsilon(encoding: Encoding, region: Region, clause: Clause) -> Mip:
    """The program whose optimum is the least ε with an input that meets the clause (within the region)."""
    if region.center is None:
        raise ValueError("least ε needs a ball")
    frame = _Frame(encoding, region, 0.0, region.epsilon, measure=True)
    count = len(clause.bounds)
    rows = scipy.sparse.hstack([frame.outputs(clause), scipy.sparse.csr_array((count, 1))])
    frame.rows.add(_place(rows, frame, count), -np.inf, clause.bounds)
    return frame.finish()


def network(encoding: Encoding, region: Region) -> Mip:
    """The program whose solutions are the network's columns at the inputs of the region; nothing is minimised."""
    return _Frame(encoding, region, 0.0, 0.0).finish()


class _Frame:
    """Columns: the encoding's · one binary for each unstable ReLU · for L1 the two parts of x − center · the goal."""

    def __init__(self, encoding: Encoding, region: Region, low: float, high: float, measure: bool = False) -> None:
        self.encoding, self.region = encoding, region
        lows, highs = encoding.bounds
        self.binaries = encoding.relus
        self.split = encoding.inputs if not region.is_box else 0
        self.goal = encoding.columns + self.binaries + 2 * self.split
        zeros, ones = np.zeros(self.binaries), np.ones(self.binaries)
        above, below = self._parts()
        self.low = np.concatenate([lows, zeros, np.zeros(2 * self.split), [low]])
        self.high = np.concatenate([highs, ones, above, below, [high]])
        self.rows = _Rows()
        self._blocks()
        self._ball(measure)

    def outputs(self, clause: Clause) -> Any:
        """The clause's rows over all columns but the goal."""
        pick = scipy.sparse.csr_array(
            (np.ones(self.encoding.outputs.size), (np.arange(self.encoding.outputs.size), self.encoding.outputs)),
            shape=(self.encoding.outputs.size, self.goal),
        )
        return scipy.sparse.csr_array(clause.coefficients) @ pick

    def finish(self) -> Mip:
        cost = np.zeros(self.goal + 1)
        cost[-1] = 1.0
        integer = np.zeros(self.goal + 1, dtype=bool)
        integer[self.encoding.columns : self.encoding.columns + self.binaries] = True
        rows = scipy.sparse.csr_array(scipy.sparse.vstack(self.rows.parts))
        rows.eliminate_zeros()
        return Mip(
            cost, self.low, self.high, integer, rows,
            np.concatenate(self.rows.low), np.concatenate(self.rows.high), self.encoding.inputs,
        )  # fmt: skip

    def _parts(self) -> tuple[Vector, Vector]:
        if not self.split or self.region.center is None:
            return np.zeros(0), np.zeros(0)
        center = self.region.center
        above = np.nextafter(self.region.high - center, np.inf)
        below = np.nextafter(center - self.region.low, np.inf)
        return np.maximum(above, 0.0), np.maximum(below, 0.0)

    def _blocks(self) -> None:
        binary = self.encoding.columns
        for block in self.encoding.blocks:
            unstable = block.unstable
            fixed = ~unstable & ~(block.relu & (block.upper <= 0))
            own = _own(block, self.goal + 1)
            at = np.flatnonzero(fixed)
            self.rows.add(own[at], (block.constant - block.error)[at], (block.constant + block.error)[at])
            at = np.flatnonzero(unstable)
            if at.size:
                switch = _switch(at.size, binary, self.goal + 1)
                c, e, l, u = (v[at] for v in (block.constant, block.error, block.lower, block.upper))
                self.rows.add(own[at], c - e, np.inf)
                self.rows.add(own[at] + scipy.sparse.diags_array(-l) @ switch, -np.inf, np.nextafter(c + e - l, np.inf))
                column = _switch(at.size, 0, self.goal + 1, block.start + at)
                self.rows.add(column - scipy.sparse.diags_array(u) @ switch, -np.inf, 0.0)
                binary += at.size

    def _ball(self, measure: bool) -> None:
        center, n, width = self.region.center, self.encoding.inputs, self.goal + 1
        if center is None or (self.region.is_box and not measure):
            return
        x = _switch(n, 0, width)
        goal = scipy.sparse.csr_array((np.ones(n), (np.arange(n), np.full(n, self.goal))), shape=(n, width))
        if self.region.is_box:
            self.rows.add(x - goal, -np.inf, center)
            self.rows.add(x + goal, center, np.inf)
            return
        first = self.encoding.columns + self.binaries
        above, below = _switch(n, first, width), _switch(n, first + n, width)
        self.rows.add(x - above + below, center, center)
        total = np.zeros((1, width))
        total[0, first : first + 2 * n] = 1.0
        if measure:
            total[0, self.goal] = -1.0
        self.rows.add(scipy.sparse.csr_array(total), -np.inf, 0.0 if measure else self.region.epsilon)


def _own(block: Block, width: int) -> Any:
    """y − matrix @ earlier, over all columns."""
    n = block.size
    matrix = scipy.sparse.csr_array((block.matrix.data, block.matrix.indices, block.matrix.indptr), shape=(n, width))
    return scipy.sparse.csr_array(_switch(n, block.start, width) - matrix)


def _switch(count: int, first: int, width: int, columns: Any = None) -> Any:
    at = np.arange(first, first + count) if columns is None else columns
    return scipy.sparse.csr_array((np.ones(count), (np.arange(count), at)), shape=(count, width))


def _place(rows: Any, frame: _Frame, count: int) -> Any:
    return scipy.sparse.csr_array(rows, shape=(count, frame.goal + 1))


def _row_range(encoding: Encoding, clause: Clause) -> tuple[Vector, Vector]:
    """A range that holds every value of the clause's rows minus their bounds, with room for rounding."""
    lows, highs = (side[encoding.outputs] for side in encoding.bounds)
    plus, minus = np.maximum(clause.coefficients, 0), np.minimum(clause.coefficients, 0)
    low, high = plus @ lows + minus @ highs - clause.bounds, plus @ highs + minus @ lows - clause.bounds
    room = 1e-6 * (1.0 + np.abs(low) + np.abs(high))
    return low - room, high + room
