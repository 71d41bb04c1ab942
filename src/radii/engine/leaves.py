"""Leaves: nodes in which every neuron has its sign, so that the network is linear and the rest is convex.

The multipliers β of its signs and λ of its clause's rows that close such a node (or the point that breaks it) are the
duals of a linear program, for L2 those of a projection or from a smooth maximisation. They are only a proposal: the
bound is computed anew from them by the certified sweep, and points are replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.bounds.shell import Shell
from radii.engine.nodes import Nodes
from radii.engine.slopes import certify
from radii.engine.subproblem import Problem

Array = NDArray[np.float64]


def settle(problem: Problem, nodes: Nodes) -> tuple[Tensor, Tensor]:
    """Proposes β and λ for leaves, bounds them anew in place; returns their lowest values and the points to replay.

    Both stay in float64: what float32 would round off the multipliers decides leaves that are nearly broken.
    """
    # Every violation inside the node also has the signs that a cut decided, so they may be fixed like those of splits.
    # Without them the leaf's linear function would differ from the network where the linear program looks.
    free = nodes.sign == 0
    nodes.sign[free & (nodes.low >= 0)] = 1
    nodes.sign[free & (nodes.high <= 0)] = -1
    proposals = [_propose(problem, nodes, i) for i in range(len(nodes))]
    nodes.beta, nodes.share, points = (torch.from_numpy(np.stack(part)) for part in zip(*proposals))
    return certify(problem, nodes), points


def _propose(problem: Problem, nodes: Nodes, i: int) -> tuple[Array, Array, Array]:
    """β, λ and a point."""
    z, z0, goals, goals0 = _linear(problem, nodes, i)
    if not all(np.isfinite(part).all() for part in (z, z0, goals, goals0)):
        return np.zeros(len(z0)), nodes.share[i].double().numpy(), np.zeros(goals.shape[1])
    sign = nodes.sign[i].numpy().astype(np.float64)
    fixed = np.flatnonzero(sign)
    # Fixed signs say sign·(z·x + z0) ≥ 0.
    rows, shift = sign[fixed, None] * z[fixed], sign[fixed] * z0[fixed]
    region, penalty = problem.fine.region, problem.tuning.trees.penalty
    down, up = (side[0].numpy() for side in region.box())
    if region.norm.name == "l2":
        if len(goals0) > 1:
            size = float(region.epsilon[0])
            beta, share, point = _projection(rows, shift, goals, goals0, (down, up), size, penalty)
        else:
            beta, point = _concave(rows, shift, goals[0], float(goals0[0]), problem)
            share = np.ones(1)
    else:
        total = float(region.epsilon[0]) if region.norm.name == "l1" else None
        beta, share, point = _program(rows, shift, goals, goals0, (down, up), total, penalty)
        if (goals @ point + goals0 <= 0).all() and not isinstance(region, Shell):  # no nearest point of a slope
            point = _nearest(rows, shift, goals, goals0, (down, up), total is not None, point)
    full = np.zeros(len(sign))
    full[fixed] = beta
    return full, share, point


def _linear(problem: Problem, nodes: Nodes, i: int) -> tuple[Array, Array, Array, Array]:
    """All pre-activations and the rows of the objective as linear functions of x inside a leaf."""
    net, side = problem.net, problem.fine
    active = (nodes.low[i] >= 0).to(torch.float64)
    z, z0 = side.neurons.a.clone(), side.neurons.b.clone()
    for first, last in net.blocks:
        if first:
            through = side.neurons.m[first:last, :first] * active[:first]
            z[first:last] += through @ z[:first]
            z0[first:last] += through @ z0[:first]
    which = nodes.objective[i : i + 1] if problem.members is None else problem.members[nodes.objective[i]]
    asked = side.objectives.pick(which)
    weights = asked.m * active
    return z.numpy(), z0.numpy(), (asked.a + weights @ z).numpy(), (asked.b + weights @ z0).numpy()


def _program(
    rows: Array,
    shift: Array,
    goals: Array,
    goals0: Array,
    box: tuple[Array, Array],
    size: float | None,
    penalty: float,
) -> tuple[Array, Array, Array]:
    """min of the greatest goal + penalty·slack with rows·x + shift + slack ≥ 0 over the box: β, λ and the point.

    And ‖x‖₁ ≤ size when it is given. The greatest goal is a variable that no goal exceeds; its duals are λ.
    """
    (down, up), (k, d), m = box, goals.shape, len(shift)
    one, ends = np.zeros(d), [*zip(-down, up)]
    if size is not None:  # x⁺ and x⁻ in place of x
        rows, goals = np.hstack([rows, -rows]), np.hstack([goals, -goals])
        one, ends = np.ones(2 * d), [*[(0, u) for u in up], *[(0, v) for v in down]]
    matrix = np.block(
        [
            [-rows, -np.eye(m), np.zeros((m, 1))],
            [goals, np.zeros((k, m)), -np.ones((k, 1))],
            [one[None], np.zeros((1, m + 1))],
        ]
    )
    limits = np.concatenate([shift, -goals0, [0.0 if size is None else size]])
    cost = np.concatenate([np.zeros(len(one)), np.full(m, penalty), [1.0]])
    from scipy.optimize import linprog  # half a second: few runs get here

    ends += [*[(0, None)] * m, (None, None)]
    result: Any = linprog(cost, A_ub=matrix, b_ub=limits, bounds=ends, method="highs")
    if result.x is None:
        return np.zeros(m), np.full(k, 1.0 / k), np.zeros(d)
    point = result.x[:d] if size is None else result.x[:d] - result.x[d : 2 * d]
    duals = np.maximum(-result.ineqlin.marginals, 0.0)
    return duals[:m], _normal(duals[m : m + k]), point


def _normal(share: Array) -> Array:
    """Weights that add up to 1; 1 itself where there is one row."""
    total = share.sum()
    return share / total if total > 0 else np.full(len(share), 1.0 / len(share))


def _nearest(
    rows: Array, shift: Array, goals: Array, goals0: Array, box: tuple[Array, Array], taxicab: bool, fallback: Array
) -> Array:
    """The point of least norm with goals·x + goals0 a little below 0 and rows·x + shift ≥ 0, in the box."""
    (k, d), m = goals.shape, len(shift)
    below = -goals0 - 1e-6 * (1.0 + np.abs(goals0))
    spread = np.concatenate([np.full(2 * d, 1.0 if taxicab else 0.0), [0.0 if taxicab else 1.0]])
    parts = [np.hstack([-rows, rows, np.zeros((m, 1))]), np.hstack([goals, -goals, np.zeros((k, 1))])]
    limits = [shift, below]
    if not taxicab:  # x⁺ + x⁻ ≤ size, coordinate by coordinate
        parts.append(np.hstack([np.eye(d), np.eye(d), -np.ones((d, 1))]))
        limits.append(np.zeros(d))
    bounds = [*[(0, u) for u in box[1]], *[(0, v) for v in box[0]], (0, None)]
    from scipy.optimize import linprog

    found: Any = linprog(spread, A_ub=np.vstack(parts), b_ub=np.concatenate(limits), bounds=bounds, method="highs")
    return fallback if found.x is None else found.x[:d] - found.x[d : 2 * d]


def _concave(rows: Array, shift: Array, goal: Array, goal0: float, problem: Problem) -> tuple[Array, Array]:
    """max over β ≥ 0 of the least value of (goal − βᵀ·rows)·x − βᵀ·shift on the L2 ball, by L-BFGS."""
    from scipy.optimize import minimize

    region = problem.fine.region

    def least(beta: Array) -> tuple[float, Array]:
        a = torch.from_numpy(goal - beta @ rows)[None, None]
        x = region.minimiser(a)[0, 0].numpy()
        value = float(a[0, 0].numpy() @ x) + goal0 - float(beta @ shift)
        return -value, rows @ x + shift

    beta = np.zeros(len(shift))
    if len(shift):
        found: Any = minimize(
            least, beta, jac=True, method="L-BFGS-B", bounds=[(0, problem.tuning.trees.penalty)] * len(shift)
        )
        beta = np.maximum(found.x, 0.0)
    a = torch.from_numpy(goal - beta @ rows)[None, None]
    return beta, region.minimiser(a)[0, 0].numpy()


def _projection(
    rows: Array, shift: Array, goals: Array, goals0: Array, box: tuple[Array, Array], epsilon: float, penalty: float
) -> tuple[Array, Array, Array]:
    """β and λ of the point of least L2 norm with goals·x + goals0 ≤ 0 and rows·x + shift ≥ 0 in the box, and the point.

    Least-distance programming by non-negative least squares (Lawson & Hanson 1974, chapter 23). With x* that point the
    multipliers make the bound ‖x*‖² − x*·x, which is positive on the ball exactly when x* is outside it. The bound of a
    clause is often least where its slope is 0, and there it is not smooth: `_concave` would stop short of it.
    """
    from scipy.optimize import nnls

    (k, d), m, (down, up) = goals.shape, len(shift), box
    ends = [side < epsilon for side in (down, up)]
    unit = np.eye(d)
    matrix = np.vstack([rows, -goals, unit[ends[0]], -unit[ends[1]]])
    limits = np.concatenate([-shift, goals0, -down[ends[0]], -up[ends[1]]])
    size = np.maximum(np.sqrt((matrix * matrix).sum(1)), 1e-12 * np.maximum(np.abs(limits), 1e-30))
    matrix, limits = matrix / size[:, None], limits / size
    try:
        found, _ = nnls(np.vstack([matrix.T, limits]), np.append(np.zeros(d), 1.0))
    except RuntimeError:  # too many steps
        return np.zeros(m), np.full(k, 1.0 / k), np.zeros(d)
    left = 1.0 - float(limits @ found)
    point = matrix.T @ found / left if left > 1e-12 else np.zeros(d)
    duals = found / size
    share = duals[m : m + k].sum()
    if share <= 0.0:  # the signs contradict each other: no row is needed
        return duals[:m] / max(duals[:m].sum(), 1e-300) * penalty, np.full(k, 1.0 / k), point
    return duals[:m] / share, duals[m : m + k] / share, np.clip(point, -down, up)
