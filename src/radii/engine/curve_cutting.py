"""New intervals for the neurons of a node with curves, layer by layer, under the node's own bound (*cuts*).

A violation inside a node meets a·x + c ≤ 0. In every norm the ball lies in a box, over which `lowest_under_cut` bounds
a neuron; in L2 the ball itself gives another bound, in closed form, and in L1 its support does.
"""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.bounds.curve_lines import Slants, UnitLines, certified
from radii.bounds.cuts import lowest_under_cut
from radii.bounds.rounding import U32, gamma
from radii.engine.curve_net import CurvedNet, curved
from radii.engine.curve_nodes import CurvedNodes, splittable
from radii.engine.curve_sweep import hidden_rows
from radii.engine.cutting import positions
from radii.engine.subproblem import Problem
from radii.engine.sweep import both_ends

Cuts = tuple[Tensor, Tensor]  # g (nodes, d) and c (nodes,): violations have g·x + c ≤ 0


def refine(problem: Problem, nodes: CurvedNodes) -> Tensor:
    """Tightens the intervals of nodes in place under their own cuts; returns which became empty."""
    net = curved(problem.net)
    empty = torch.zeros(len(nodes), dtype=torch.bool)
    cut = nodes.a.to(torch.float32)
    reach = (cut.abs().double() @ (problem.half + problem.middle.abs()).double()) * (2 * U32)
    shift = (nodes.c - reach - 2 * U32 * nodes.c.abs()).to(torch.float32)
    pressing = _pressing(problem, nodes)
    parts: list[UnitLines] = []
    for first, last in net.blocks:
        which, counts = positions(pressing[:, first:last], shared=first == 0)
        if which.shape[1]:
            at = (which + first).expand(len(nodes), -1)
            twice = both_ends(which + first)
            asked = *twice, torch.cat([counts, counts], 1)
            least = _under_cuts(problem, (cut, shift), _joined(parts), asked, first)
            below, above = least.chunk(2, 1)
            low, high = torch.maximum(nodes.low.gather(1, at), below), torch.minimum(nodes.high.gather(1, at), -above)
            if first:
                # Neurons that do not count are padding: each repeats the first neuron of its row.
                low, high = torch.where(counts, low, low[:, :1]), torch.where(counts, high, high[:, :1])
            nodes.low.scatter_(1, at, low)
            nodes.high.scatter_(1, at, high)
            empty |= (low > high).any(1)
        if last < net.size:
            parts.append(_lines(net, nodes, first, last))
    return empty


def _lines(net: CurvedNet, nodes: CurvedNodes, first: int, last: int) -> UnitLines:
    """Lines of a layer's neurons by their intervals alone."""
    low, high = nodes.low[:, first:last], nodes.high[:, first:last]
    high = torch.maximum(low, high)  # nodes without points are dropped; until then they must not upset anything
    relu = None if net.relu is None else net.relu[first:last]
    return certified(relu, low, high, Slants.of(relu, low, high).start, torch.float32)


def _joined(parts: list[UnitLines]) -> UnitLines | None:
    if not parts:
        return None
    names = ("under", "over", "floor", "ceiling")
    return UnitLines(*(torch.cat([getattr(p, name) for p in parts], 1) for name in names))


def _pressing(problem: Problem, nodes: CurvedNodes) -> Tensor:
    """Which neurons of each node are worth new bounds: those that cost its bound most."""
    tuning = problem.tuning.curves
    free, size = splittable(nodes, tuning), nodes.score.shape[1]
    most = max(tuning.refined, tuning.refinement // size)
    if size <= most:
        return free
    least = nodes.score.topk(most, dim=1).values[:, -1:]
    return free & (nodes.score >= least)


def _under_cuts(
    problem: Problem, cuts: Cuts, lines: UnitLines | None, asked: tuple[Tensor, Tensor, Tensor], first: int
) -> Tensor:
    """Lower bounds of turn·z under each node's cut, for (neurons, turns, whether they count) of one layer."""
    which, turn, wanted = asked
    net, nodes = curved(problem.net), len(cuts[1])
    # The rows of a few nodes at a time stay in the caches; those of all would go through main memory several times.
    shared = not first and net.region.norm.name != "l2"  # the rows of the first layer; in L2 they are mixed with cuts
    count = nodes if shared else max(1, problem.tuning.memory.in_cache // (which.shape[1] * cuts[0].shape[1]))
    found = []
    for part in torch.split(torch.arange(nodes), count):
        mine = (which[part], turn[part]) if first else (which, turn)
        local = UnitLines(*(t[part] for t in vars(lines).values())) if lines is not None else None
        assert local is not None or not first
        w, k = hidden_rows(net, problem.fast, local, *mine, first) if local is not None else _first(problem, *mine)
        k = k.expand(len(part), -1)
        found.append(_lowest(problem, w, k, (cuts[0][part], cuts[1][part]), wanted[part]))
    return torch.nan_to_num(torch.cat(found), nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)


def _first(problem: Problem, which: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
    nothing = problem.fast.neurons.b.new_zeros((1, 0))
    return hidden_rows(curved(problem.net), problem.fast, UnitLines(nothing, nothing, nothing, nothing), which, turn, 0)


def _lowest(problem: Problem, w: Tensor, k: Tensor, cuts: Cuts, wanted: Tensor) -> Tensor:
    """Lower bounds of w·x + k over the ball where the cuts hold."""
    region, tuning = problem.fast.region, problem.tuning.bounds
    least = lowest_under_cut(w, k, *cuts, problem.middle, problem.half, wanted, tuning)
    if region.norm.name == "l2":
        least = torch.maximum(least, lowest_in_sphere(w, k, *cuts, region.epsilon))
    elif region.norm.name == "l1":
        own = k[: len(w)]  # one row of constants where all nodes share the rows
        alone = region.lowest(w.reshape(1, -1, w.shape[-1]), own.reshape(1, -1)).reshape(own.shape)
        least = torch.maximum(least, alone)
    return least


def lowest_in_sphere(w: Tensor, k: Tensor, g: Tensor, c: Tensor, epsilon: Tensor) -> Tensor:
    """Lower bounds of w·x + k over ‖x‖ ≤ ε with g·x + c ≤ 0, in L2; shapes are those of `lowest_under_cut`.

    For any λ ≥ 0 the value k + λc − ε·‖w + λg‖ is one; the best λ has a closed form.
    """
    along, gg, ww = torch.matmul(w, g[..., None])[..., 0], g.square().sum(1)[:, None], w.square().sum(-1)
    across = (ww * gg - along.square()).clamp_min(0.0)
    inner = c[:, None]
    left = (epsilon.square() * gg - inner.square()).clamp_min(1e-30)
    best = ((inner * (across / left).sqrt() - along) / gg.clamp_min(1e-30)).clamp(0.0, 1e6)
    size = (ww.sqrt() + best * gg.sqrt()) * (1.0 + gamma(w.shape[-1], U32))
    mixed = torch.addcmul(w, best[..., None], g[:, None]).square_().sum(-1).sqrt_()
    length = mixed * (1.0 + gamma(w.shape[-1], U32)) + 4 * U32 * size + 1e-18
    return k + best * inner - epsilon * length - 8 * U32 * (k.abs() + best * inner.abs() + epsilon * size)
