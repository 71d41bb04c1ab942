"""The ascent of slopes and multipliers on a condensed network with curves, and the bounds of its nodes.

The bound's gradient comes from one relaxed forward pass from the minimiser, without automatic differentiation: a line's
slope gains v·(z − z*), where v is the neuron's coefficient, z its relaxed pre-activation and z* the point at which the
line touches the curve, because the offset of the best line of a slope falls by z* per unit of slope. A multiplier of an
end gains end − z. The ascent runs in float32 on estimates; the final pass runs in float64 with certified offsets.
"""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.bounds.ascent import adam
from radii.bounds.curve_lines import Slants, UnitLines, certified, gaps
from radii.engine.curve_net import CurvedNet, curved
from radii.engine.curve_nodes import CurvedNodes
from radii.engine.curve_sweep import Swept, forward, proven, sweep
from radii.engine.subproblem import Problem
from radii.engine.tuning import Tuning


def climb(problem: Problem, nodes: CurvedNodes, steps: int) -> Tensor:
    """Improves slopes, multipliers, the linear bound and the scores of nodes in place; returns their lowest values.

    A lowest value above 0 closes the node: no point of the ball inside it violates the objective.
    """
    if len(nodes):
        _ascend(problem, nodes, steps)
    return certify(problem, nodes)


def certify(problem: Problem, nodes: CurvedNodes) -> Tensor:
    """The linear bounds of nodes in float64 for their slopes and multipliers, in place; returns their lowest values."""
    net, side = curved(problem.net), problem.fine
    slope = nodes.slope.transpose(0, 1)
    lines = certified(net.relu, nodes.low, nodes.high, slope, torch.float64)
    rows, charge = side.objectives_of(nodes.objective)
    pull = nodes.pull.double()
    found = sweep(net, side, rows, lines, pull, nodes.ends.double())
    nodes.a, nodes.c = found.a, proven(found, side, lines, pull, charge)
    used = torch.where(found.v > 0, slope[0], slope[1])
    nodes.score = found.v.abs().to(torch.float32) * gaps(net.relu, nodes.low, nodes.high, used)
    return side.region.lowest(nodes.a[None], nodes.c[None])[0]


def _ascend(problem: Problem, nodes: CurvedNodes, steps: int) -> None:
    """Adam on slopes and multipliers in float32; keeps the best of what it met."""
    net, side = curved(problem.net), problem.fast
    tuning = problem.tuning
    slants = Slants.of(net.relu, nodes.low, nodes.high)
    given = nodes.slope.transpose(0, 1)
    slope = torch.where(given.isnan(), slants.start, given).clamp(slants.least, slants.most)
    span = slants.most - slants.least
    can_low, can_high = nodes.set_low.isfinite(), nodes.set_high.isfinite()
    splits = bool((can_low | can_high).any())
    pull, scale = nodes.pull, None
    rows, _ = side.objectives_of(nodes.objective)
    best = torch.full_like(nodes.c, -torch.inf, dtype=torch.float32)
    best_slope, best_pull = slope, pull
    moments = [torch.zeros_like(slope) for _ in range(2)] + [torch.zeros_like(pull) for _ in range(2)]
    rate = tuning.bounds.curve_rate
    for step in range(steps + 1):
        floor, ceiling, touch = slants.estimate(slope)
        lines = UnitLines(slope[0], slope[1], floor, ceiling)
        nodes.pull = pull
        ends = nodes.ends
        found = sweep(net, side, rows, lines, pull, ends)
        x = side.region.minimiser(found.a[None])[0]
        value = side.region.value(found.a[None], found.c[None], x[None])[0]
        better = value > best
        best = torch.where(better, value, best)
        best_slope = torch.where(better[:, None], slope, best_slope)
        best_pull = torch.where(better[:, None], pull, best_pull)
        if step == steps or bool((best > 0).all()):
            break
        z = forward(net, side, found, lines, x)
        slope = _moved(slope, found, z, touch, span, moments, rate, step, slants)
        if splits:
            scale = _scale(net, found, tuning) if scale is None else scale
            # At 0 only an end that the relaxed pre-activation is beyond gains.
            gain = (nodes.set_low - z).clamp_min_(0.0) + (nodes.set_high - z).clamp_max_(0.0)
            gain = torch.where(pull == 0, gain, ends - z)
            pull = torch.addcmul(pull, scale, adam(gain * scale, moments[2], moments[3], step, 1e-30), value=rate)
            pull = torch.where(can_low, pull, pull.clamp_max(0.0))
            pull = torch.where(can_high, pull, pull.clamp_min(0.0))
        rate *= tuning.bounds.curve_decay
    nodes.slope, nodes.pull = best_slope.transpose(0, 1).contiguous(), best_pull


def _moved(
    slope: Tensor,
    found: Swept,
    z: Tensor,
    touch: Tensor,
    span: Tensor,
    moments: list[Tensor],
    rate: float,
    step: int,
    slants: Slants,
) -> Tensor:
    """One step of the slopes, measured in the span of each."""
    above = found.v.clamp_min(0.0)
    gain = torch.stack([above * (z - touch[0]), (found.v - above) * (z + touch[1])]).mul_(span)
    move = adam(torch.nan_to_num_(gain), moments[0], moments[1], step, 1e-30)
    return torch.addcmul(slope, span, move, value=rate).clamp_(slants.least, slants.most)


def _scale(net: CurvedNet, found: Swept, tuning: Tuning) -> Tensor:
    """What size of multiplier is worth trying at each neuron: a part of the largest coefficient of its layer."""
    size, scale = found.v.abs(), torch.empty_like(found.v)
    for first, last in net.blocks:
        scale[:, first:last] = size[:, first:last].amax(1, keepdim=True)
    return scale.mul_(tuning.bounds.multiplier)
