"""Hidden neurons of networks with curves: branch and bound narrows their intervals before any margin is asked.

Layer by layer, every end of an interval becomes an objective of one batched tree, "z > t", with t near the least value
seen; nodes have cuts of their own. What is proven is t, or the least value left in any open node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from radii._torch import Tensor, torch
from radii.engine.condensed import Rows
from radii.engine.curve_branching import children
from radii.engine.curve_cutting import refine
from radii.engine.curve_net import CurvedNet
from radii.engine.curve_nodes import CurvedNodes, splittable
from radii.engine.curve_slopes import climb
from radii.engine.curve_tuning import CurvedTrees
from radii.engine.subproblem import Problem
from radii.engine.tuning import DEFAULT, Tuning


def narrowed(
    net: CurvedNet, nodes: int, go_on: Callable[[], bool] = lambda: True, tuning: Tuning = DEFAULT
) -> tuple[CurvedNet, int]:
    """The network with tighter intervals of hidden neurons, and how many nodes that took.

    Each end's bound climbs slopes of its own, and then gets up to so many `nodes`.
    """
    visited = 0
    for first, last in net.blocks[1:]:
        if not go_on():
            break
        least, count = _layer(net, (first, last), nodes, go_on, tuning)
        least, visited = torch.nan_to_num(least, nan=-torch.inf), visited + count
        low, high = net.low.clone(), net.high.clone()
        low[first:last] = torch.maximum(low[first:last], least[: last - first])
        high[first:last] = torch.minimum(high[first:last], -least[last - first :])
        if bool((low > high).any()):
            break  # a single point, but for rounding: nothing is left to gain
        net = replace(net, low=low, high=high)
    return net, visited


def _layer(
    net: CurvedNet, block: tuple[int, int], most: int, go_on: Callable[[], bool], tuning: Tuning
) -> tuple[Tensor, int]:
    """Lower bounds of z of all neurons of a layer, then of −z, and how many nodes they took."""
    first, last = block
    rows, before, rule = net.layer(first, last), net.before(first), tuning.curves
    problem = Problem.of(before, rows, tuning)
    nodes = CurvedNodes.roots(before, torch.arange(len(rows.b)))
    least = climb(problem, nodes, rule.first_steps)
    known = torch.cat([net.low[first:last], -net.high[first:last]])
    least = torch.fmax(least, known)
    if most <= 1 or not before.size:
        return least, 0
    seen = _seen(net, problem, nodes, last)[first:last]
    seen = torch.cat([seen[:, 0], -seen[:, 1]])
    target = least + (1.0 - rule.hidden_slack) * (seen - least)
    width = (net.high - net.low)[first:last].repeat(2)
    worth = target - least > rule.hidden_worth * width
    # The target is one float64 number: taking it off rounds once.
    slack = rows.slack + 2.0**-51 * (rows.b.abs() + target.abs())
    problem = Problem.of(before, Rows(rows.a, rows.b - target, rows.m, slack), tuning)
    nodes = nodes.pick(worth.nonzero()[:, 0])
    nodes.c = nodes.c - target[nodes.objective] - 2.0**-51 * (nodes.c.abs() + target[nodes.objective].abs())
    left, visited = _search(problem, nodes, most, go_on, rule)
    left = left.clamp_max(0.0)  # +inf where all nodes are closed: then the target itself is proven
    proven = target + left - 2.0**-51 * (target.abs() + left.abs())
    return torch.where(worth, torch.fmax(least, proven), least), visited


def _search(
    problem: Problem, nodes: CurvedNodes, most: int, go_on: Callable[[], bool], rule: CurvedTrees
) -> tuple[Tensor, int]:
    """The least values (objectives,) left in open nodes, +inf where none is open, after up to `most` nodes each."""
    count, visited = len(problem.fine.objectives.b), len(nodes)
    spent, final = torch.ones(count), torch.full((count,), torch.inf, dtype=torch.float64)
    nodes, value = _bounded(problem, nodes, 0, rule)
    while len(nodes) and go_on():
        able = splittable(nodes, rule).any(1)
        stuck = torch.zeros(count, dtype=torch.bool)
        stuck[nodes.objective[~able]] = True
        over = (stuck | (spent >= most))[nodes.objective]
        final.scatter_reduce_(0, nodes.objective[over], value[over], "amin")
        nodes, value = nodes.where(~over), value[~over]
        if not len(nodes):
            break
        # The worst node of every objective: its bound is that of the worst.
        order = torch.argsort(value, stable=True)
        order = order[torch.argsort(nodes.objective[order], stable=True)]
        lead = torch.ones(len(order), dtype=torch.bool)
        lead[1:] = nodes.objective[order][1:] != nodes.objective[order][:-1]
        # Where there are more than fit into a batch, those come first that had fewest nodes.
        chosen = order[lead]
        chosen = chosen[torch.argsort(spent[nodes.objective[chosen]], stable=True)][: rule.hidden_batch]
        others = torch.ones(len(order), dtype=torch.bool)
        others[chosen] = False
        take, rest = chosen, others.nonzero()[:, 0]
        parts = children(problem, nodes.pick(take))
        visited += len(parts)
        spent.index_add_(0, parts.objective, torch.ones(len(parts)))
        parts, worse = _bounded(problem, parts, rule.hidden_steps, rule)
        nodes, value = CurvedNodes.join([nodes.pick(rest), parts]), torch.cat([value[rest], worse])
    if len(nodes):
        final.scatter_reduce_(0, nodes.objective, value, "amin")
    return final, visited


def _bounded(problem: Problem, nodes: CurvedNodes, steps: int, rule: CurvedTrees) -> tuple[CurvedNodes, Tensor]:
    """Those of these nodes that stay open, and their least values."""
    if steps:
        nodes = nodes.where(~(nodes.low > nodes.high).any(1))
        # Written so that NaN stays open: only a bound above 0 closes a node.
        nodes = nodes.where(~(climb(problem, nodes, steps) > 0))
    if not len(nodes):
        return nodes, nodes.c
    nodes = nodes.where(~refine(problem, nodes))
    value = climb(problem, nodes, rule.hidden_steps)
    left = ~(value > 0)
    return nodes.where(left), torch.nan_to_num(value[left], nan=-torch.inf)


def _seen(net: CurvedNet, problem: Problem, nodes: CurvedNodes, last: int) -> Tensor:
    """The least and the largest values (last, 2) that the first neurons take where bounds are least."""
    x = problem.fine.region.minimiser(nodes.a[None])[0]
    z = x @ net.neurons.a[:last].T + net.neurons.b[:last]
    y = torch.zeros_like(z)
    for start, end in (b for b in net.blocks if b[1] <= last):
        z[:, start:end] += y[:, :start] @ net.neurons.m[start:end, :start].T
        y[:, start:end] = torch.tanh(z[:, start:end])
        if net.relu is not None:
            part = z[:, start:end]
            y[:, start:end] = torch.where(net.relu[start:end], part.clamp_min(0.0), y[:, start:end])
    return torch.stack([z.amin(0), z.amax(0)], 1)
