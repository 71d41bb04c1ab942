"""Slopes: the ascent of α (alpha), β (beta) and λ (lambda) on a condensed network, and the bounds of nodes.

α and β climb the bound's own gradient (α,β-CROWN, Xu et al. 2021, Wang et al. 2021), which one relaxed forward sweep
from the minimiser delivers without automatic differentiation. So do the weights λ of a clause's rows: the gradient is
the value of each row at the relaxed minimiser. The ascent runs in float32, the final sweep of a node in float64; both
charge their rounding.
"""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.bounds.activations import MaskedLines
from radii.bounds.ascent import adam
from radii.bounds.hull import through_hulls
from radii.engine.nodes import Nodes
from radii.engine.planes import Paired
from radii.engine.subproblem import Problem
from radii.engine.sweep import forward, lines_in_use, sweep
from radii.engine.tuning import Trees


def climb(problem: Problem, nodes: Nodes, steps: int) -> Tensor:
    """Improves α, β, λ, the linear bound and the scores of nodes in place; returns their lowest values.

    A lowest value above 0 closes the node: no point of the ball inside it violates the objective.
    """
    if (problem.net.size or problem.members is not None) and len(nodes):
        _ascend(problem, nodes, steps)
    return certify(problem, nodes)


def certify(problem: Problem, nodes: Nodes) -> Tensor:
    """The linear bounds of nodes in float64 for the α, β and λ they have, in place; returns their lowest values."""
    low, high = nodes.low.double(), nodes.high.double()
    rows, charge = problem.asked(problem.fine, nodes)
    planes = problem.planes_over(low, high)
    found = sweep(problem.net, problem.fine, nodes, MaskedLines.of(low, high), rows, charge, planes=planes)
    nodes.a, nodes.c = found.a, found.c
    lowest = problem.fine.region.lowest(found.a[None], found.c[None])[0]
    if problem.hulls:
        which = (~(lowest > 0) & nodes.splittable).nonzero()[:, 0]
        if len(which):
            _through_hulls(problem, nodes, which, lowest)
    return lowest


def _through_hulls(problem: Problem, nodes: Nodes, which: Tensor, lowest: Tensor) -> None:
    """Better linear bounds of these nodes, and their lowest values, in place, where hulls over the ball give them.

    Any slopes of these are sound, and each node has its own; where its signs and cuts have narrowed a neuron the
    triangle may still be better.
    """
    net, side, n = problem.net, problem.fine, problem.net.blocks[0][1]
    part = nodes.pick(which)
    relaxation = MaskedLines.of(part.low.double(), part.high.double())
    planes = problem.planes_over(part.low.double(), part.high.double())
    found = sweep(net, side, part, relaxation, *problem.asked(side, part), problem.tuning.trees.hulled, planes)
    assert found.left is not None
    rows = net.neurons.a[:n], net.neurons.b[:n], net.neurons.slack[:n]
    tuning = problem.tuning
    linear, rounds = (found.a, found.c), tuning.trees.hull_rounds
    a, c = through_hulls(net.region, rows, -found.left, linear, rounds, tuning.bounds.hull_kernel, problem.columns)
    value = side.region.lowest(a[None], c[None])[0]
    better = value > lowest[which]
    which = which[better]
    nodes.a[which], nodes.c[which], lowest[which] = a[better], c[better], value[better]


def _ascend(problem: Problem, nodes: Nodes, steps: int) -> None:
    """Adam on α and β in float32, products on λ; keeps the best of what it met."""
    side, net = problem.fast, problem.net
    relaxation = MaskedLines.of(nodes.low, nodes.high)
    rows, charge = problem.asked(side, nodes)
    sign, planes = nodes.sign.to(torch.float32), problem.planes_over(nodes.low, nodes.high)
    free = torch.cat([plane.free(relaxation.unstable) for plane in planes], 1) if planes else nodes.tilt
    nodes.tilt = nodes.tilt * free
    best = torch.full_like(nodes.c, -torch.inf, dtype=torch.float32)
    best_alpha, best_beta, best_share, best_tilt = nodes.alpha, nodes.beta, nodes.share, nodes.tilt
    moments = [torch.zeros_like(nodes.alpha) for _ in range(4)] + [torch.zeros_like(nodes.tilt) for _ in range(2)]
    trees, rate = problem.tuning.trees, problem.tuning.trees.rate
    for step in range(steps + 1):
        found = sweep(net, side, nodes, relaxation, rows, charge, planes=planes)
        x = side.region.minimiser(found.a[None])[0]
        value = side.region.value(found.a[None], found.c[None], x[None])[0]
        better = value > best
        pick = better[:, None]
        best = torch.where(better, value, best)
        best_alpha = torch.where(pick, nodes.alpha, best_alpha)
        best_beta = torch.where(pick, nodes.beta, best_beta)
        best_share = torch.where(pick, nodes.share, best_share)
        best_tilt = torch.where(pick, nodes.tilt, best_tilt) if planes else best_tilt
        if step == steps:
            break
        lines = lines_in_use(found, relaxation)
        z = forward(net, side, lines, x)
        nodes.score = torch.where(pick, _score(found.v, lines, z, relaxation, trees), nodes.score)
        if bool((best > 0).all()):
            break
        if problem.members is not None:
            _weigh(problem, nodes, torch.addcmul(lines[1], lines[0], z), x, rate * trees.share_rate)
            rows, charge = problem.asked(side, nodes)
        if net.size:
            _move(nodes, found.v, z, (relaxation.unstable, sign), moments[:4], (rate, trees.beta_rate), step)
        if planes:
            _tilt(nodes, free, found.pairs, z, moments[4:], rate * trees.tilt_rate, step)
        rate *= trees.decay
    nodes.alpha, nodes.beta, nodes.share, nodes.tilt = best_alpha, best_beta, best_share, best_tilt


def _weigh(problem: Problem, nodes: Nodes, y: Tensor, x: Tensor, rate: float) -> None:
    """One step of λ by multiplication: rows that are large at the relaxed minimiser x, y gain weight."""
    assert problem.members is not None
    rows = problem.fast.objectives
    value = (x @ rows.a.T + rows.b + y @ rows.m.T).gather(1, problem.members[nodes.objective])
    value = value - (nodes.share * value).sum(1, keepdim=True)
    size = value.abs().amax(1, keepdim=True).clamp_min(1e-30)
    share = nodes.share * torch.exp(rate * value / size)
    nodes.share = (share / share.sum(1, keepdim=True)).clamp_min(problem.tuning.trees.least_share)


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
        move = adam(g, m, s, step, 1e-12)
        if k == 0:
            nodes.alpha = torch.add(nodes.alpha, move, alpha=rates[0]).clamp_(0.0, 1.0)
        else:
            nodes.beta = torch.addcmul(nodes.beta, move, scale, value=rates[1] * rates[0]).clamp_min_(0.0)


def _tilt(
    nodes: Nodes, free: Tensor, pairs: tuple[Paired, ...], z: Tensor, moments: list[Tensor], rate: float, step: int
) -> None:
    """One step of Adam on those slopes of pair planes that are free.

    A plane gains by its slopes what the relaxed values are beyond the corner that it touches.
    """
    gains = torch.cat([z[:, pair.plane.neurons] - pair.touch for pair in reversed(pairs)], 1).mul_(free)
    nodes.tilt = torch.add(nodes.tilt, adam(gains, moments[0], moments[1], step, 1e-12), alpha=rate)


def _score(v: Tensor, lines: tuple[Tensor, Tensor], z: Tensor, relaxation: MaskedLines, trees: Trees) -> Tensor:
    """What each undecided neuron's upper line costs the bound, and a little of how far off it is at the minimiser."""
    size = v.abs()
    gap = torch.addcmul(lines[1], lines[0], z).sub_(z.clamp_min(0.0)).abs_()
    gain = gap.mul_(trees.gap_weight).add_(relaxation.lift, alpha=trees.lift_weight).mul_(size)
    gain.addcmul_(relaxation.lift, v.clamp_max(0.0), value=-1.0)
    return gain.mul_(relaxation.unstable)
