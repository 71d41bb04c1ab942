"""Oracles: the value of a network without rounding, onnxruntime on the file, and the hunt for a point that refutes.

Nothing here imports radii. A claim over the reals is refuted by a point whose outputs, in fractions, break it; a claim
about float32 by a float32 point at which onnxruntime's outputs on the original file do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import onnxruntime

from fuzzing.build import Array, Constant, Network, Step
from fuzzing.regions import Region
from fuzzing.slices import corners

CURVED = Fraction(1, 10**45)  # below this a tanh of sixty digits says nothing
POINTS = 256
BEST = 3  # points that are looked at without rounding
MANY = 9  # inputs beyond which planes are left out: only linear networks, which have a closed form, have more
JITTER = 256  # float32 points near the worst ones


@dataclass(frozen=True)
class Goal:
    """What must not happen: outputs with coefficients @ outputs ≤ bounds in every row of some clause."""

    clauses: tuple[tuple[Array, Array], ...]

    @staticmethod
    def classes(count: int, label: int, target: int | None) -> Goal:
        """Another class, or the target, reaches the label's output."""
        eye, others = np.eye(count), range(count) if target is None else (target,)
        return Goal(tuple(((eye[label] - eye[t])[None], np.zeros(1)) for t in others if t != label))

    def margin(self, outputs: Array) -> Array:
        """How far outputs (points, classes) are from the nearest clause: at most 0 where one is met."""
        found = []
        for coefficients, bounds in self.clauses:
            a, b = (Constant(v).of(outputs) for v in (coefficients, bounds))
            found.append((outputs @ a.T - b).max(axis=1))
        return np.stack(found).min(axis=0)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The rows and the largest row of each clause, as steps behind a network."""
        rows = np.concatenate([c for c, _ in self.clauses])
        bounds = np.concatenate([b for _, b in self.clauses])
        ends = np.cumsum([len(b) for _, b in self.clauses])
        groups = [list(range(end - len(b), end)) for end, (_, b) in zip(ends, self.clauses)]
        pairs = [(i, j) for group in groups for i in group for j in group if i < j]
        left, right = ([p[k] for p in pairs] for k in (0, 1))
        largest = lambda v: np.stack([v[:, g].max(axis=1) for g in groups], axis=1)  # noqa: E731
        bends = (lambda v: v[:, left] - v[:, right]) if pairs else None
        return (
            Step("rows", ("outputs",), lambda v: v.reshape(len(v), -1) @ rows.T - bounds),
            Step("largest", ("rows",), largest, bends),
        )


class Runtime:
    """The original file in onnxruntime, as it comes and with every optimisation switched off."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._sessions: dict[bool, Any] = {}

    def __call__(self, x: Array, *, optimised: bool = True) -> Array:
        """The outputs of flat inputs, in the network's own precision."""
        values = np.asarray(x, dtype=np.float64 if self.network.double else np.float32)
        if not self.network.plain:
            values = self._prepared(values)
        values = values.reshape(len(values), *self.network.shape)
        parts = [values[i : i + 1] for i in range(len(values))] if self.network.single else [values]
        return np.concatenate([self._run(part, optimised).reshape(len(part), -1) for part in parts])

    def _prepared(self, values: Array) -> Array:
        """(x − mean) / std in float32, as documented."""
        shape = (-1,) + (1,) * (len(self.network.shape) - 1)
        mean, std = (np.asarray(v, dtype=np.float32) for v in (self.network.mean, self.network.std))
        if mean.size > 1:
            mean, std = mean.reshape(shape), std.reshape(shape)
        return ((values.reshape(len(values), *self.network.shape) - mean) / std).astype(np.float32)

    def _run(self, values: Array, optimised: bool) -> Array:
        if optimised not in self._sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            if not optimised:
                options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            self._sessions[optimised] = onnxruntime.InferenceSession(
                self.network.model, options, providers=["CPUExecutionProvider"]
            )
        return np.asarray(self._sessions[optimised].run(None, {"x": values})[0])


def worst(network: Network, region: Region, goal: Goal, rng: np.random.Generator, hints: Array) -> Array:
    """Points of the region, the likeliest to break the goal first, as float64 sees them."""
    points = [region.points(rng, POINTS), region.pulled(hints)]
    planes = [] if network.curved or region.inputs > MANY else _planes(network, region, goal, rng, hints)
    for one, two in planes:
        polygon = region.polygon(one, two)
        if len(polygon) >= 2:
            steps = (Step("outputs", (network.last,), lambda v: v.reshape(len(v), -1)), *goal.steps)
            for found, margins in corners(network, polygon, steps):
                points.append(found[margins.min(1).argsort()[:2]])
    near = region.pulled(np.concatenate(points))
    for wide in (0.3, 0.1, 0.03, 0.005):
        near = _sorted(network, goal, near)[:8]
        noise = rng.normal(size=(6, *near.shape)) * wide * region.reach()
        near = np.concatenate([near, region.pulled((near[None] + noise).reshape(-1, region.inputs))])
    return _sorted(network, goal, near)


def _sorted(network: Network, goal: Goal, points: Array) -> Array:
    margins = goal.margin(network.run(points))
    return points[np.where(np.isnan(margins), -np.inf, margins).argsort(kind="stable")]


def _planes(
    network: Network, region: Region, goal: Goal, rng: np.random.Generator, hints: Array
) -> list[tuple[Array, Array]]:
    """Pairs of directions: the whole region for one or two inputs, some planes for more."""
    n = region.inputs
    if n <= 2:
        return [(np.eye(n)[0], np.eye(n)[-1])]
    step = 1e-4 * region.reach().max()
    around = goal.margin(network.run(region.center + np.concatenate([np.eye(n), -np.eye(n)]) * step))
    slope = around[:n] - around[n:]
    steep = slope if np.isfinite(slope).all() and np.abs(slope).max() > 0 else rng.normal(size=n)
    axes = np.eye(n)[rng.permutation(n)[:2]]
    towards = [hint - region.center for hint in hints[:1] if np.abs(hint - region.center).max() > 0]
    pairs = [(axes[0], axes[1]), (steep, rng.normal(size=n)), (np.sign(rng.normal(size=n)), np.sign(steep) + 0.1)]
    return [*pairs, *((t, steep) for t in towards)]


def refuted(network: Network, region: Region, goal: Goal, points: Array) -> str | None:
    """A point of the region, among the first ones, that breaks the goal over the reals; None if none does."""
    for point in points[:BEST]:
        exact = region.exact(point)
        outputs = network.run(np.array([exact], dtype=object))
        margin = goal.margin(outputs)[0]
        if margin <= (-CURVED if network.curved else 0):
            return f"over the reals the margin is {float(margin):.3g} at {[float(v) for v in exact]}"
    return None


def refuted_deployed(
    runtime: Runtime, region: Region, goal: Goal, points: Array, rng: np.random.Generator
) -> str | None:
    """A float32 point of the region at which onnxruntime breaks the goal; None if none does."""
    best, more = points[:12], region.points(rng, 16)
    noise = rng.normal(size=(JITTER, region.inputs)) * region.reach() * 10.0 ** -rng.uniform(0, 7, (JITTER, 1))
    tried = region.deployed(
        np.concatenate([best, best[rng.integers(len(best), size=JITTER)] + noise, points[12:40], more])
    )
    if not len(tried):
        return None
    for optimised in (True, False):
        outputs = runtime(tried, optimised=optimised).astype(np.float64)
        margins = goal.margin(outputs)
        bad = np.flatnonzero(~(margins > 0) | ~np.isfinite(outputs).all(axis=1))
        for at in map(int, bad):
            if region.contains(tried[at]):
                how = "" if optimised else " without optimisations"
                return f"onnxruntime{how} gives {outputs[at].tolist()} at {tried[at].tolist()}"
    return None
