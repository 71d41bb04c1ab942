"""Leaves: nodes in which every neuron has its sign, so that the network is linear and the rest is convex.

The multipliers β that close such a node (or the point that breaks it) come from a linear program, for L2 from a smooth
concave maximisation. Either is only a proposal: the bound is computed anew from β by the certified sweep, and points
are replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from radii.engine.nodes import Nodes
from radii.engine.slopes import certify
from radii.engine.subproblem import Problem

Array = NDArray[np.float64]


def settle(problem: Problem, nodes: Nodes) -> tuple[Tensor, Tensor]:
    """Proposes β for leaves, bounds them anew in place, and returns their lowest values and the points to replay.

    β stays in float64: what float32 would round off the multipliers decides leaves that are nearly broken.
    """
    # Neurons that a cut decided have their sign at every violation inside the node too: as good as a split, and without
    # them the linear function of a leaf is not the network's where the program looks.
    free = nodes.sign == 0
    nodes.sign[free & (nodes.low >= 0)] = 1
    nodes.sign[free & (nodes.high <= 0)] = -1
    proposals = [_propose(problem, nodes, i) for i in range(len(nodes))]
    nodes.beta = torch.from_numpy(np.stack([beta for beta, _ in proposals]))
    return certify(problem, nodes), torch.from_numpy(np.stack([point for _, point in proposals]))


def _propose(problem: Problem, nodes: Nodes, i: int) -> tuple[Array, Array]:
    z, z0, goal, goal0 = _linear(problem, nodes, i)
    if not all(np.isfinite(part).all() for part in (z, z0, goal, goal0)):
        return np.zeros(len(z0)), np.zeros(len(goal))
    sign = nodes.sign[i].numpy().astype(np.float64)
    fixed = np.flatnonzero(sign)
    # Fixed signs say sign·(z·x + z0) ≥ 0.
    rows, shift = sign[fixed, None] * z[fixed], sign[fixed] * z0[fixed]
    region, penalty = problem.fine.region, problem.tuning.trees.penalty
    down, up = (side[0].numpy() for side in region.box())
    if region.norm.name == "l2":
        beta, point = _concave(rows, shift, goal, goal0, problem)
    else:
        size = float(region.epsilon[0]) if region.norm.name == "l1" else None
        beta, point = _program(rows, shift, goal, (down, up), size, penalty)
        if goal @ point + goal0 <= 0:
            point = _nearest(rows, shift, goal, goal0, (down, up), size is not None, point)
    full = np.zeros(len(sign))
    full[fixed] = beta
    return full, point


def _linear(problem: Problem, nodes: Nodes, i: int) -> tuple[Array, Array, Array, float]:
    """All pre-activations and the objective as linear functions of x inside a leaf."""
    net, side = problem.net, problem.fine
    active = (nodes.low[i] >= 0).to(torch.float64)
    z, z0 = side.neurons.a.clone(), side.neurons.b.clone()
    for first, last in net.blocks:
        if first:
            through = side.neurons.m[first:last, :first] * active[:first]
            z[first:last] += through @ z[:first]
            z0[first:last] += through @ z0[:first]
    row = side.objectives.pick(nodes.objective[i : i + 1])
    weights = row.m[0] * active
    return z.numpy(), z0.numpy(), (row.a[0] + weights @ z).numpy(), float(row.b[0] + weights @ z0)


def _program(
    rows: Array, shift: Array, goal: Array, box: tuple[Array, Array], size: float | None, penalty: float
) -> tuple[Array, Array]:
    """min goal·x + penalty·slack with rows·x + shift + slack ≥ 0 over the box, and ‖x‖₁ ≤ size when it is given."""
    (down, up), d, m = box, len(goal), len(shift)
    if size is None:
        matrix, cost = np.hstack([-rows, -np.eye(m)]), np.concatenate([goal, np.full(m, penalty)])
        bounds = [*zip(-down, up), *[(0, None)] * m]
        limits = shift
    else:
        matrix = np.hstack([-rows, rows, -np.eye(m)])
        matrix = np.vstack([matrix, np.concatenate([np.ones(2 * d), np.zeros(m)])])
        cost = np.concatenate([goal, -goal, np.full(m, penalty)])
        bounds = [*[(0, u) for u in up], *[(0, v) for v in down], *[(0, None)] * m]
        limits = np.append(shift, size)
    from scipy.optimize import linprog  # half a second: few runs get here

    result: Any = linprog(cost, A_ub=matrix, b_ub=limits, bounds=bounds, method="highs")
    if result.x is None:
        return np.zeros(m), np.zeros(d)
    point = result.x[:d] if size is None else result.x[:d] - result.x[d : 2 * d]
    return np.maximum(-result.ineqlin.marginals[:m], 0.0), point


def _nearest(
    rows: Array, shift: Array, goal: Array, goal0: float, box: tuple[Array, Array], taxicab: bool, fallback: Array
) -> Array:
    """The point of least norm with goal·x + goal0 a little below 0 and rows·x + shift ≥ 0, in the box."""
    d, m = len(goal), len(shift)
    below = -goal0 - 1e-6 * (1.0 + abs(goal0))
    spread = np.concatenate([np.full(2 * d, 1.0 if taxicab else 0.0), [0.0 if taxicab else 1.0]])
    parts = [np.hstack([-rows, rows, np.zeros((m, 1))]), np.concatenate([goal, -goal, [0.0]])[None]]
    limits = [shift, np.array([below])]
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
