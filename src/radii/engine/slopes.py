"""Slopes: the ascent of α and β on a condensed network, and the bounds that nodes end up with.

α and β climb the bound's own gradient (α,β-CROWN, Xu et al. 2021, Wang et al. 2021), which one relaxed forward sweep
from the minimiser delivers without automatic differentiation. The ascent runs in float32, the final sweep of a node in
float64; both charge their rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.engine.nodes import Nodes
from radii.engine.subproblem import Problem
from radii.engine.sweep import Relaxation, forward, lines_in_use, sweep


def climb(problem: Problem, nodes: Nodes, steps: int) -> Tensor:
    """Improves α, β, the linear bound and the scores of nodes in place; returns their lowest values.

    A lowest value above 0 closes the node: no point of the ball inside it violates the objective.
    """
    if problem.net.size and len(nodes):
        _ascend(problem, nodes, steps)
    return certify(problem, nodes)


def certify(problem: Problem, nodes: Nodes) -> Tensor:
    """The linear bounds of nodes in float64 for the α and β they have, in place; returns their lowest values."""
    low, high = nodes.low.double(), nodes.high.double()
    rows, charge = problem.fine.objectives_of(nodes.objective)
    found = sweep(problem.net, problem.fine, nodes, Relaxation.of(low, high), rows, charge)
    nodes.a, nodes.c = found.a, found.c
    return problem.fine.region.lowest(found.a[None], found.c[None])[0]


def _ascend(problem: Problem, nodes: Nodes, steps: int) -> None:
    """Adam on α and β in float32; keeps the best of what it met."""
    side, net = problem.fast, problem.net
    relaxation = Relaxation.of(nodes.low, nodes.high)
    rows, charge = side.objectives_of(nodes.objective)
    sign = nodes.sign.to(torch.float32)
    best = torch.full_like(nodes.c, -torch.inf, dtype=torch.float32)
    best_alpha, best_beta = nodes.alpha, nodes.beta
    moments = [torch.zeros_like(nodes.alpha) for _ in range(4)]
    trees, rate = problem.tuning.trees, problem.tuning.trees.rate
    for step in range(steps + 1):
        found = sweep(net, side, nodes, relaxation, rows, charge)
        x = side.region.minimiser(found.a[None])[0]
        value = (found.a * x).sum(1) + found.c
        better = value > best
        pick = better[:, None]
        best = torch.where(better, value, best)
        best_alpha = torch.where(pick, nodes.alpha, best_alpha)
        best_beta = torch.where(pick, nodes.beta, best_beta)
        if step == steps:
            break
        lines = lines_in_use(found, relaxation)
        z = forward(net, side, lines, x)
        nodes.score = torch.where(pick, _score(found.v, lines, z, relaxation), nodes.score)
        if bool((best > 0).all()):
            break
        _move(nodes, found.v, z, (relaxation.unstable, sign), moments, (rate, trees.beta_rate), step)
        rate *= trees.decay
    nodes.alpha, nodes.beta = best_alpha, best_beta


def _move(
    nodes: Nodes,
    v: Tensor,
    z: Tensor,
    masks: tuple[Tensor, Tensor],
    moments: list[Tensor],
    rates: tuple[float, float],
    step: int,
) -> None:
    """One step of Adam; the masks say which neurons are undecided and which signs are fixed.

    The rates are that of α, and that of β beside it.
    """
    unstable, sign = masks
    gains = v.clamp_min(0.0).mul_(unstable).mul_(z), (sign * z).neg_()
    scale = v.abs().amax(1, keepdim=True)
    for k, (g, m, s) in enumerate(((gains[0], *moments[:2]), (gains[1], *moments[2:]))):
        m.mul_(0.9).add_(g, alpha=0.1)
        s.mul_(0.99).addcmul_(g, g, value=0.01)
        move = (m / (1 - 0.9 ** (step + 1))).div_((s / (1 - 0.99 ** (step + 1))).sqrt_().add_(1e-12))
        if k == 0:
            nodes.alpha = torch.add(nodes.alpha, move, alpha=rates[0]).clamp_(0.0, 1.0)
        else:
            nodes.beta = torch.addcmul(nodes.beta, move, scale, value=rates[1] * rates[0]).clamp_min_(0.0)


def _score(v: Tensor, lines: tuple[Tensor, Tensor], z: Tensor, relaxation: Relaxation) -> Tensor:
    """What each undecided neuron's upper line costs the bound, and a little of how far off it is at the minimiser."""
    size = v.abs()
    gap = torch.addcmul(lines[1], lines[0], z).sub_(z.clamp_min(0.0)).abs_()
    gain = gap.mul_(0.01).add_(relaxation.lift, alpha=1e-3).mul_(size)
    gain.addcmul_(relaxation.lift, v.clamp_max(0.0), value=-1.0)
    return gain.mul_(relaxation.unstable)
