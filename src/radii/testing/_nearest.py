"""The point of a polyhedron nearest to the origin, in L∞, L2 or L1: what exact radii are made of.

Polyhedra are {z : rows @ z <= limits, low <= z <= high}, low and high around the origin (they may be infinite).
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from radii.problem import Norm

Array = NDArray[np.float64]


def halfspace_distances(rows: Array, limits: Array, norm: Norm, low: Array, high: Array) -> Array:
    """How far the origin is from {rows[i] @ z <= limits[i]} ∩ box, for each i alone; inf where that is empty.

    Closed forms: coordinate i can lower the row at rate |g_i| until its side of the box; the need is -limit. L∞ moves
    all coordinates at one speed, L2 at speeds |g_i|, and L1 the steepest first.
    """
    need = -limits
    rate = np.abs(rows)
    room = np.where(rows > 0, -low, high)  # how far each coordinate can move down the row
    useful = rate > 0
    if norm.name == "l1":
        return _steepest_first(need, rate, np.where(useful, room, 0.0))
    speed = np.ones_like(rate) if norm.name == "linf" else rate
    with np.errstate(divide="ignore", invalid="ignore"):
        stop = np.where(useful & (room > 0), room / speed, 0.0)  # the time at which each coordinate meets its side
    time = _filling_time(need, rate * speed, stop)
    if norm.name == "linf":
        return time
    with np.errstate(invalid="ignore"):
        moved = np.where(useful, np.minimum(speed * time[:, None], room), 0.0)
    return np.where(np.isfinite(time), np.sqrt((moved**2).sum(axis=1)), np.inf)


def _filling_time(need: Array, flow: Array, stop: Array) -> Array:
    """The least t with Σ flow_i · min(t, stop_i) >= need, one for each row; inf where there is none."""
    order = np.argsort(stop, axis=1)
    stop, flow = np.take_along_axis(stop, order, 1), np.take_along_axis(flow, order, 1)
    rest = np.flip(np.cumsum(np.flip(flow, 1), 1), 1)  # the flow of those that have not stopped yet
    result = np.full(len(need), np.inf)
    start, done = np.zeros(len(need)), np.zeros(len(need))
    for i in range(stop.shape[1]):
        with np.errstate(invalid="ignore", divide="ignore"):
            reach = start + (need - done) / rest[:, i]
            here = (reach <= stop[:, i]) & (rest[:, i] > 0) & np.isinf(result)
            result[here] = np.maximum(reach[here], start[here])
            length = np.where(np.isfinite(stop[:, i]), stop[:, i] - start, 0.0)
        done, start = done + rest[:, i] * length, start + length
    result[need <= 0] = 0.0
    return result


def _steepest_first(need: Array, rate: Array, room: Array) -> Array:
    order = np.argsort(-rate, axis=1)
    rate, room = np.take_along_axis(rate, order, 1), np.take_along_axis(room, order, 1)
    left, cost = need.copy(), np.zeros(len(need))
    for i in range(rate.shape[1]):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where((left > 0) & (rate[:, i] > 0), np.minimum(left / rate[:, i], room[:, i]), 0.0)
        last = (rate[:, i] > 0) & (
            step < room[:, i]
        )  # stopped by having enough: nothing is left, whatever rounding says
        left = np.where(last, np.minimum(left, 0.0), left - rate[:, i] * step)
        cost = cost + step
    return np.where(left > 0, np.inf, cost)


class Nearest:
    """Finds nearest points of polyhedra in one box and one norm; keeps one solver for all of them."""

    def __init__(self, norm: Norm, low: Array, high: Array) -> None:
        self.norm, self.low, self.high = norm, low, high
        self.solved = 0
        if norm.name != "l2":
            self._highs = highspy.Highs()
            for option, value in (
                ("output_flag", False),
                ("presolve", "off"),
                ("threads", 1),
                ("primal_feasibility_tolerance", 1e-10),
                ("dual_feasibility_tolerance", 1e-10),
            ):
                self._highs.setOptionValue(option, value)

    def __call__(self, rows: Array, limits: Array, within: float) -> tuple[float, Array] | None:
        """The least norm and its point; None when the polyhedron is empty or farther away than `within`."""
        self.solved += 1
        size = np.linalg.norm(rows, axis=1)
        if bool(np.any((size == 0) & (limits < 0))):
            return None
        rows, limits = rows[size > 0] / size[size > 0, None], limits[size > 0] / size[size > 0]
        if bool(np.all(limits >= 0)):
            return 0.0, np.zeros(len(self.low))
        point = self._least_squares(rows, limits, within) if self.norm.name == "l2" else self._linear(rows, limits)
        if point is None:
            return None
        distance = self.norm.size(point)
        return (distance, point) if distance <= within else None

    def _least_squares(self, rows: Array, limits: Array, within: float) -> Array | None:
        """Least distance programming by non-negative least squares (Lawson and Hanson 1974, chapter 23)."""
        eye = np.eye(len(self.low))
        up, down = np.isfinite(self.high), np.isfinite(self.low)
        rows = np.vstack([rows, eye[up], -eye[down]])
        scale = within if np.isfinite(within) and within > 0 else 1.0
        limits = np.concatenate([limits, self.high[up], -self.low[down]]) / scale
        system = np.vstack([-rows.T, -limits])
        target = np.zeros(len(system))
        target[-1] = 1.0
        weights, _ = nnls(system, target, maxiter=100 * system.shape[1])
        residual = system @ weights - target
        # 1 + |z|² = -1 / residual[-1], so a point within the scale leaves at least half; no point leaves nothing
        if -residual[-1] < (0.4 if scale == within else 1e-12):
            return None
        point = -residual[:-1] / residual[-1]
        active = weights > 0
        polished, *_ = np.linalg.lstsq(rows[active], limits[active], rcond=None)
        if np.max(rows @ polished - limits) <= max(np.max(rows @ point - limits), 1e-12):
            point = polished
        return np.asarray(point * scale)

    def _linear(self, rows: Array, limits: Array) -> Array | None:
        """The linear program in HiGHS: (z, s) with |z_i| <= s for L∞, z = p - q for L1."""
        n, count = len(self.low), len(rows)
        if self.norm.name == "l1":
            matrix = np.hstack([rows, -rows])
            costs = np.ones(2 * n)
            bounds = np.zeros(2 * n), np.concatenate([self.high, -self.low])
            sides = np.full(count, -np.inf), limits
        else:
            eye, one = np.eye(n), np.ones((n, 1))
            matrix = np.block([[rows, np.zeros((count, 1))], [eye, -one], [eye, one]])
            costs = np.append(np.zeros(n), 1.0)
            bounds = np.append(self.low, 0.0), np.append(self.high, np.inf)
            sides = (
                np.concatenate([np.full(count + n, -np.inf), np.zeros(n)]),
                np.concatenate([limits, np.zeros(n), np.full(n, np.inf)]),
            )
        values = self._solve(matrix, costs, bounds, sides)
        if values is None:
            return None
        return values[:n] - values[n:] if self.norm.name == "l1" else values[:n]

    def _solve(
        self, matrix: Array, costs: Array, bounds: tuple[Array, Array], sides: tuple[Array, Array]
    ) -> Array | None:
        height, width = matrix.shape
        model: Any = highspy.HighsLp()
        model.num_col_, model.num_row_ = width, height
        model.col_cost_ = costs
        model.col_lower_, model.col_upper_ = bounds
        model.row_lower_, model.row_upper_ = sides
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.arange(0, height * width + 1, width)
        model.a_matrix_.index_ = np.tile(np.arange(width), height)
        model.a_matrix_.value_ = matrix.ravel()
        self._highs.clearModel()
        self._highs.passModel(model)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS: expected an optimal or infeasible linear program, got {status}")
        return np.array(self._highs.getSolution().col_value)
