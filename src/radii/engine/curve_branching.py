"""Where nodes with curves are split: a few neurons that cost the bound most are tried (filtered smart branching).

What its lines cost says little about what splitting a tanh gains: how much of that the two halves recover depends on
where the bound is least. One pass without ascent tells, for each of a few neurons, what both parts would gain.
"""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.bounds.curve_lines import Slants, UnitLines
from radii.engine.curve_net import curved
from radii.engine.curve_nodes import CurvedNodes, divide, split_points, splittable
from radii.engine.curve_sweep import sweep
from radii.engine.subproblem import Problem


def children(problem: Problem, nodes: CurvedNodes) -> CurvedNodes:
    """Both parts of every node, split where that is estimated to gain most; all nodes can be split."""
    net, rule = curved(problem.net), problem.tuning.curves
    score = nodes.score * splittable(nodes, rule)
    best = score.topk(min(rule.candidates, score.shape[1]), dim=1)
    count, k = best.indices.shape
    at = best.indices.reshape(-1)
    if k > 1:
        every = nodes.pick(torch.arange(count).repeat_interleave(k))
        parts = divide(every, at, split_points(net, every, at, rule))
        before = estimate(problem, nodes).repeat_interleave(k)
        gains = (estimate(problem, parts).reshape(2, -1) - before).clamp_min(0.0)
        size = gains.amax().clamp_min(1e-20)
        # The product wants both parts to gain; a little of each keeps it from being 0 where one does not.
        worth = torch.nan_to_num((gains / size + rule.lone_gain).prod(0)).reshape(count, k) * (best.values > 0)
        at = best.indices.gather(1, worth.argmax(1, keepdim=True))[:, 0]
    return divide(nodes, at, split_points(net, nodes, at, rule))


def estimate(problem: Problem, nodes: CurvedNodes) -> Tensor:
    """About the least values of nodes with the slopes and multipliers they have; not certified."""
    net, side = curved(problem.net), problem.fast
    slants = Slants.of(net.relu, nodes.low, nodes.high)
    slope = nodes.slope.transpose(0, 1).clamp(slants.least, slants.most)
    floor, ceiling, _ = slants.estimate(slope)
    rows, _ = side.objectives_of(nodes.objective)
    found = sweep(net, side, rows, UnitLines(slope[0], slope[1], floor, ceiling), nodes.pull, nodes.ends)
    return side.region.lowest(found.a[None], found.c[None])[0]
