"""Pairing: which neurons of a layer are bounded together in a tree, and the octagons of those pairs."""

from __future__ import annotations

from dataclasses import replace

from radii._torch import Tensor, torch
from radii.bounds.rounding import U64, UP, outward
from radii.engine.condensed import Condensed, Rows, stack, truncated
from radii.engine.nodes import Nodes
from radii.engine.planes import Planes
from radii.engine.slopes import climb
from radii.engine.subproblem import Problem
from radii.engine.tuning import Tuning


def worth_planes(problem: Problem) -> bool:
    """Whether pair planes are worth their price: for single rows, with few layers, of which later ones are wide."""
    net, trees = problem.net, problem.tuning.trees
    layers = len(net.blocks)
    wide = layers > 1 and net.size - net.blocks[0][1] >= trees.paired_least
    return wide and layers <= trees.paired_layers and trees.paired > 0 and problem.members is None


def with_planes(problem: Problem, nodes: Nodes) -> tuple[Problem, Nodes]:
    """The same problem and open nodes, with pair planes for the neurons that cost the bounds of these nodes most."""
    planes = _planes(problem, nodes)
    if planes is None:
        return problem, nodes
    nodes = nodes.pick(torch.arange(len(nodes)))
    nodes.tilt = nodes.score.new_zeros((len(nodes), planes.count))
    return replace(problem, planes=planes), nodes


def _planes(problem: Problem, nodes: Nodes) -> Planes | None:
    net, tuning = problem.net, problem.tuning
    worst = _worst(problem, nodes)
    loss = (worst.score / worst.score.amax(1, keepdim=True).clamp_min(1e-30)).double().mean(0)
    alike = _alike(net)
    blocks, neurons, octagons = [], [], []
    for first, last in net.blocks[1:]:
        cost = loss[first:last]
        pairs = min(tuning.trees.paired, int((cost > 0).sum())) // 2
        if not pairs:
            continue
        some = cost.topk(2 * pairs).indices + first
        root = loss[some].sqrt()
        # Two neurons that move together have convex sums, over which single lines are as good.
        which = some[_matched((1.0 - alike[some][:, some]) * root * root[:, None])]
        blocks.append((first, last))
        neurons.append(which)
        octagons.append(_octagons(net, which[:pairs], which[pairs:], first, tuning))
    return Planes(tuple(blocks), tuple(neurons), tuple(octagons)) if blocks else None


def _worst(problem: Problem, nodes: Nodes) -> Nodes:
    """The open node of every objective whose bound is least."""
    value = problem.fine.region.lowest(nodes.a[None], nodes.c[None])[0].nan_to_num(nan=-torch.inf)
    least = torch.full((len(problem.fine.objectives.b),), torch.inf, dtype=value.dtype)
    least.scatter_reduce_(0, nodes.objective, value, "amin")
    return nodes.where(value <= least[nodes.objective])


def _alike(net: Condensed) -> Tensor:
    """How parallel neurons are as functions of the input, 0 to 1, by lines of one slope for each neuron, (n, n)."""
    rows = net.neurons
    slope = net.high / (net.high - net.low)
    a = rows.a.clone()
    for first, last in net.blocks[1:]:
        a[first:last] += (rows.m[first:last, :first] * slope[:first]) @ a[:first]
    down, up = (side[0] for side in net.region.box())
    a = a * (down + up)
    a = a / a.norm(dim=1, keepdim=True).clamp_min(1e-30)
    found: Tensor = (a @ a.T).abs()
    return found


def _matched(worth: Tensor) -> Tensor:
    """Disjoint pairs of an even number of neurons, the best first, by the worth of each pair (neurons, neurons).

    All first partners, then all second ones.
    """
    worth = worth.clone().fill_diagonal_(-1.0)
    found = []
    for _ in range(len(worth) // 2):
        pair = divmod(int(worth.argmax()), len(worth))
        found.append(pair)
        for one in pair:
            worth[one] = worth[:, one] = -1.0
    return torch.tensor(found).T.reshape(-1)


def _octagons(net: Condensed, i: Tensor, j: Tensor, first: int, tuning: Tuning) -> Tensor:
    """Ends of z_i + z_j and z_i − z_j of a layer on the ball, (pairs, 4) float32, outward."""
    rows, magnitude, reach = net.neurons, net.region.magnitude()[0], net.reach[:first]
    a, m = (rows.a[i], rows.a[j]), (rows.m[i, :first], rows.m[j, :first])
    # Every coefficient of a sum was rounded once.
    size = (a[0].abs() + a[1].abs()) @ magnitude + (m[0].abs() + m[1].abs()) @ reach + rows.b[i].abs() + rows.b[j].abs()
    slack = (rows.slack[i] + rows.slack[j] + 4 * U64 * size) * UP

    def mixed(s: float, t: float) -> Rows:
        return Rows(s * a[0] + t * a[1], s * rows.b[i] + t * rows.b[j], s * m[0] + t * m[1], slack)

    asked = stack([mixed(1, 1), mixed(-1, -1), mixed(1, -1), mixed(-1, 1)])
    problem = Problem.of(truncated(net, first), asked, tuning).with_hulls()
    least = climb(problem, problem.roots(), tuning.trees.first_steps).nan_to_num(nan=-torch.inf).reshape(4, -1)
    ends = *outward(least[0], -least[1], torch.float32), *outward(least[2], -least[3], torch.float32)
    return torch.stack(ends, 1)
