"""Cutting: bounds of hidden neurons inside a node, given that the node's own objective is violated.

Adversarial points of a node meet its linear bound a·x + c ≤ 0. Bounding hidden neurons under that constraint (output
constraints, Kotha et al. 2023, "Provably Bounding Neural Network Preimages") gives neurons their signs or shows that
nothing is left of the node.
"""

from __future__ import annotations

import numpy as np

from radii._torch import Tensor, torch
from radii.bounds.cuts import lowest_under_cut
from radii.bounds.rounding import U32
from radii.engine.nodes import Nodes
from radii.engine.subproblem import Problem
from radii.engine.sweep import both_ends, hidden_rows
from radii.engine.tuning import Trees


def refine(problem: Problem, nodes: Nodes, both: bool = True) -> Tensor:
    """Tightens the pre-activation bounds of nodes in place under their own cuts; returns which became empty.

    Adversarial points inside a node meet a·x + c ≤ 0; layer by layer every undecided neuron is bounded under that, at
    `both` ends or, after the first layer, only at the one nearer to 0: that can give it its sign, for half the price.
    """
    empty = torch.zeros(len(nodes), dtype=torch.bool)
    cut = nodes.a.to(torch.float32)
    reach = (cut.abs().double() @ (problem.half + problem.middle.abs()).double()) * (2 * U32)
    shift = (nodes.c - reach - 2 * U32 * nodes.c.abs()).to(torch.float32)
    pressing = _pressing(nodes, problem.tuning.trees)
    for first, last in problem.net.blocks:
        which, counts = positions(pressing[:, first:last], shared=first == 0)
        if not which.shape[1]:
            continue
        at = (which + first).expand(len(nodes), -1)
        low, high = nodes.low.gather(1, at), nodes.high.gather(1, at)
        if both or not first:
            twice = both_ends(which + first)
            least = _under_cuts(problem, nodes, (cut, shift), (*twice, torch.cat([counts, counts], 1)), first)
            below, above = least.chunk(2, 1)
        else:
            turn = torch.where(high > -low, 1.0, -1.0)
            least = _under_cuts(problem, nodes, (cut, shift), (which + first, turn, counts), first)
            nothing = torch.full_like(least, -torch.inf)
            below, above = torch.where(turn > 0, least, nothing), torch.where(turn < 0, least, nothing)
        low, high = torch.maximum(low, below), torch.minimum(high, -above)
        if first:
            # Neurons that do not count are padding: each repeats the first neuron of its row, with that one's bounds.
            low, high = torch.where(counts, low, low[:, :1]), torch.where(counts, high, high[:, :1])
        nodes.low.scatter_(1, at, low)
        nodes.high.scatter_(1, at, high)
        empty |= (low > high).any(1)
    return empty


def _under_cuts(
    problem: Problem,
    nodes: Nodes,
    cuts: tuple[Tensor, Tensor],
    asked: tuple[Tensor, Tensor, Tensor],
    first: int,
) -> Tensor:
    """Lower bounds of turn·z under each node's cut, for (neurons, turns, whether they count) of one layer."""
    which, turn, wanted = asked
    # The rows of a few nodes at a time stay in the caches; those of all would go through main memory several times.
    count = max(1, problem.tuning.memory.in_cache // (which.shape[1] * cuts[0].shape[1])) if first else len(nodes)
    found = []
    for part in torch.split(torch.arange(len(nodes)), count) if count < len(nodes) else (slice(None),):
        mine = (which[part], turn[part]) if first else (which, turn)
        w, k = hidden_rows(problem.net, problem.fast, nodes.low[part], nodes.high[part], *mine, first)
        cut, shift = cuts[0][part], cuts[1][part]
        box, tuning = (problem.middle, problem.half), problem.tuning.bounds
        found.append(lowest_under_cut(w, k, cut, shift, *box, wanted[part], tuning))
    return torch.nan_to_num(torch.cat(found), nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)


def _pressing(nodes: Nodes, trees: Trees) -> Tensor:
    """Which undecided neurons of each node are worth new bounds: those that cost its bound most."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    size = undecided.shape[1]
    most = max(trees.refined, trees.refinement // max(size, 1))
    if size <= most:
        return undecided
    score = nodes.score * undecided
    if score.device.type == "cpu":
        least = torch.from_numpy(np.partition(score.numpy(), size - most, axis=1)[:, size - most : size - most + 1])
    else:
        least = score.topk(most, dim=1).values[:, -1:]
    return undecided & (score >= least)


def positions(mask: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
    """The columns that are set in each row of a mask, (rows, most) or (1, most) if shared, and which of them count.

    Rows with fewer than the most repeat their first one.
    """
    if shared:
        which = mask.any(0).nonzero()[:, 0]
        return which[None], mask[:, which]
    counts = mask.sum(1)
    most = int(counts.max()) if len(mask) else 0
    row, column = mask.nonzero(as_tuple=True) if mask.device.type != "cpu" else _set_in(mask)
    place = torch.arange(len(row), device=mask.device) - (counts.cumsum(0) - counts)[row]
    which = mask.to(torch.int8).argmax(1)[:, None].repeat(1, most)
    which[row, place] = column
    return which, torch.arange(most, device=mask.device) < counts[:, None]


def _set_in(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns that are set; numpy finds them many times faster than torch does."""
    row, column = np.nonzero(mask.numpy())
    return torch.from_numpy(row), torch.from_numpy(column)
