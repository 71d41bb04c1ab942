"""Hidden layers: branch and bound, layer by layer, settles signs and narrows intervals before any margin is asked.

Deep networks are loose because bounds of late layers rest on loose bounds of early ones. From the second undecided
layer on, every neuron whose other sign no sampled point attains becomes an objective of one batched tree: "z > 0" or "z
< 0" on the whole ball. What is proven is linear from then on, and later layers are bounded anew. It cascades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from radii._torch import Tensor, torch
from radii.bounds.rounding import U64
from radii.engine.attained import Attained
from radii.engine.condensed import Condensed, CondensedRoot, Rows, truncated
from radii.engine.nodes import Nodes
from radii.engine.smaller_ball import bound_again
from radii.engine.subproblem import Problem
from radii.engine.tree import Tree
from radii.engine.tuning import DEFAULT, HiddenTrees, Tuning
from radii.evidence.log import TreeLog
from radii.evidence.record import Recorder


def settle_signs(
    ball: CondensedRoot,
    go_on: Callable[[int], bool],
    cap: int,
    least: int = 0,
    recorder: Recorder | None = None,
    room: int | None = None,
    tuning: Tuning = DEFAULT,
) -> Iterator[tuple[CondensedRoot, int, bool]]:
    """Bounds of the same ball that know what hidden trees have proven, with the ReLU just settled and whether it helps.

    `go_on` is told how many nodes were visited and says whether to go on; a sign may cost `cap` nodes, more in early
    layers, and a layer with few objectives `cap` × `least` in all; `recorder` hears of the trees; bounding a batch of
    nodes may take `room` bytes. When hardly any neuron of a layer has its sign, the layers after it will not do better.
    """
    hidden, done = tuning.hidden, set[int]()
    while True:
        root, net = ball.root, ball.net
        layers = [(relu, which, block) for (relu, which), block in zip(net.where, net.blocks)]
        done.update(layers[0][0] for _ in layers[:1])
        rest = [layer for layer in layers if layer[0] not in done]
        if not rest:
            return
        relu, which, block = rest[0]
        done.add(relu)
        more = cap * min(hidden.most_earlier, (net.size / block[0]) ** hidden.earlier)
        seen = _attained(net, block, hidden, hidden.pushes)
        low, high, failed = _prove_layer(net, block, seen, go_on, (more, more * least), recorder, room, tuning)
        known = {k: (v.low, v.high) for k, v in root.lines.items()}
        ends = root.lines[relu].low.clone(), root.lines[relu].high.clone()
        ends[0][0, which] = torch.maximum(ends[0][0, which], low)
        ends[1][0, which] = torch.minimum(ends[1][0, which], high)
        known[relu] = ends
        ball = bound_again(ball, root.region, known, frozen=done, tuning=tuning, hulls=True)
        yield ball, relu, failed <= hidden.hopeless * ends[0].shape[1] or len(rest) == 1
        if not go_on(0):
            return


def mixed_share(net: Condensed, hidden: HiddenTrees = DEFAULT.hidden) -> float:
    """About the share of the undecided neurons after the first layer that take both signs: those that are seen to."""
    both = total = 0.0
    for block in net.blocks[1:]:
        size = block[1] - block[0]
        least, largest = _attained(net, block, hidden, 1, -(-size // hidden.looked_at))
        both += size * float(((least < 0) & (largest > 0)).double().mean())
        total += size
    return both / total if total else 1.0


def _prove_layer(
    net: Condensed,
    block: tuple[int, int],
    attained: tuple[Tensor, Tensor],
    go_on: Callable[[int], bool],
    nodes: tuple[float, float],
    recorder: Recorder | None,
    room: int | None,
    tuning: Tuning,
) -> tuple[Tensor, Tensor, int]:
    """Bounds of the neurons of a layer that hidden trees prove, given the least and largest values seen.

    Also how many signs were asked for and not proven. `nodes` is what a sign may cost and what the layer may at least.

    A sign that was never seen is asked for; of other neurons, most of the way from the bound to the value seen.
    """
    (first, last), hidden = block, tuning.hidden
    least, largest = attained
    low, high = net.low[first:last], net.high[first:last]
    low_goal = torch.where(least > 0, torch.zeros_like(low), least - hidden.slack * (least - low))
    high_goal = torch.where(largest < 0, torch.zeros_like(high), largest + hidden.slack * (high - largest))
    useful = (high - low) > 1e-9
    # Once one sign is proven the other end does not matter.
    up = ((least > 0) | (largest >= 0) & useful).nonzero()[:, 0]
    down = ((largest < 0) | (least <= 0) & useful).nonzero()[:, 0]
    rows = net.neurons.pick(torch.cat([first + up, first + down]))
    sign = torch.cat([torch.ones(len(up)), -torch.ones(len(down))]).to(rows.a.dtype)
    shift = torch.cat([low_goal[up], -high_goal[down]])
    objectives = Rows(
        rows.a * sign[:, None],
        rows.b * sign - shift,
        (rows.m * sign[:, None])[:, :first],
        rows.slack + 4 * U64 * (rows.b.abs() + shift.abs()),
    )
    caps = nodes[0] * torch.where(shift == 0, 1.0, hidden.interval_nodes)
    caps = (caps * min(hidden.shared, max(1.0, nodes[1] / max(1.0, float(caps.sum()))))).long()
    early = truncated(net, first)
    log = None if recorder is None else recorder.layer(net, early, torch.cat([first + up, first + down]), sign, shift)
    bound = _prove(Problem.of(early, objectives, tuning), go_on, caps, log, room)
    bound = bound - 4 * U64 * (bound.abs() + shift.abs())
    new_low, new_high = low.clone(), high.clone()
    new_low[up] = torch.where(bound[: len(up)] >= 0, low_goal[up], low_goal[up] + bound[: len(up)])
    new_high[down] = torch.where(bound[len(up) :] >= 0, high_goal[down], high_goal[down] - bound[len(up) :])
    return new_low, new_high, int((bound[shift == 0] < 0).sum())


def _prove(
    problem: Problem, go_on: Callable[[int], bool], caps: Tensor, log: TreeLog | None = None, room: int | None = None
) -> Tensor:
    """A lower bound of min(objective, 0) for every objective, 0 where it is proven; each may cost so many nodes."""
    count = len(problem.fine.objectives.b)
    hidden = problem.tuning.hidden
    cuts = bool((caps > 0).any())
    tree = Tree(problem, torch.inf, room=room, measures=False, log=log, cuts=cuts, steps=hidden.steps)
    tree.start(0 if cuts else hidden.steps)  # of roots that are all there is, further steps gain next to nothing
    visited = torch.ones(count, dtype=torch.int64)
    bound = torch.zeros(count, dtype=torch.float64)
    more = go_on(tree.visited)
    while len(tree.open) and more:
        nodes = tree.open
        end = (visited > caps)[nodes.objective] | ~nodes.splittable
        _lower(problem, bound, nodes.pick(end.nonzero()[:, 0]))
        nodes = nodes.pick((~end).nonzero()[:, 0])
        take, rest = _worst(problem, nodes, count, tree.fitting(2 * hidden.batch) // 2 or 1)
        visited += 2 * torch.bincount(take.objective, minlength=count)
        tree.open = Nodes.join([rest, tree.divide(take)])
        more = go_on(2 * len(take))
    _lower(problem, bound, tree.open)
    return bound


def _worst(problem: Problem, nodes: Nodes, count: int, most: int) -> tuple[Nodes, Nodes]:
    """The nodes to split next, and the others: the worst of every objective, first of those with fewest open."""
    waiting = torch.bincount(nodes.objective, minlength=count)
    order = torch.argsort(problem.fine.region.lowest(nodes.a[None], nodes.c[None])[0], stable=True)
    order = order[torch.argsort(nodes.objective[order], stable=True)]
    mine = nodes.objective[order]
    rank = torch.arange(len(order)) - (waiting.cumsum(0) - waiting)[mine]
    pressing = rank < (problem.tuning.hidden.worst * waiting[mine]).ceil()
    order = order[torch.argsort(torch.where(pressing, waiting[mine], len(order) + 1), stable=True)]
    size = min(most, int(pressing.sum()))
    return nodes.pick(order[:size]), nodes.pick(order[size:])


def _lower(problem: Problem, bound: Tensor, nodes: Nodes) -> None:
    """Takes nodes that stay open into the bounds of their objectives."""
    if len(nodes):
        value = problem.fine.region.lowest(nodes.a[None], nodes.c[None])[0]
        bound.scatter_reduce_(0, nodes.objective, value.nan_to_num(nan=-torch.inf), "amin")


def _attained(
    net: Condensed, block: tuple[int, int], hidden: HiddenTrees, pushes: int, every: int = 1
) -> tuple[Tensor, Tensor]:
    """The least and the largest value that were seen of each neuron of a block, or of every so many of them."""
    seen = Attained(net.forward(block), net.region, hidden.samples)
    unit = torch.eye(block[1] - block[0], dtype=torch.float64)[::every]
    return seen.least(unit, 1, pushes), -seen.least(-unit, 1, pushes)
