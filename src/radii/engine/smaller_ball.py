"""Smaller balls: bounds of a ball from the condensed network of one that holds it, without a pass through the graph.

The condensed network of a ball holds on every ball inside it, and on the same ball when more is known of its neurons.
Neurons that lose one of their signs are multiplied out in their turn. Through convolutions this is many times cheaper
than bounds from the graph, and about as tight.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import accumulate, pairwise

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluLines
from radii.bounds.hull import through_hulls
from radii.bounds.region import Region
from radii.bounds.rounding import UP, gamma
from radii.engine.condensed import Condensed, CondensedRoot, Rows, scales, stack
from radii.engine.matrices import Matrices
from radii.engine.subproblem import first_columns, worth_hulls
from radii.engine.sweep import both_ends, hidden_rows, hidden_rows_less
from radii.engine.tuning import DEFAULT, Tuning

Known = dict[int, tuple[Tensor, Tensor]]


def bound_again(
    larger: CondensedRoot,
    region: Region,
    known: Known | None = None,
    frozen: Collection[int] = (),
    tuning: Tuning = DEFAULT,
    hulls: bool = False,
) -> CondensedRoot:
    """Bounds of a ball inside a larger one whose condensed network is known; through hulls, too, where they pay.

    `known` and `frozen` are those of `bound_root`. Magnitudes and deviations stay those of the larger ball.
    """
    root, net = larger.root, replace(larger.net, region=region.shifted())
    low, high = net.low.clone(), net.high.clone()
    for (relu, which), (first, last) in zip(net.where, net.blocks):
        if known is not None and relu in known:
            low[first:last] = torch.maximum(low[first:last], known[relu][0][0, which])
            high[first:last] = torch.minimum(high[first:last], known[relu][1][0, which])
    net = replace(net, low=low, high=high)
    side = Matrices.of(net, net.neurons.pick(torch.arange(0)), torch.float64, trees=tuning.trees)
    rounds = tuning.trees.hull_rounds if hulls and worth_hulls(net, tuning.trees) else 0
    columns = first_columns(net, tuning.trees) if rounds else None
    for (relu, _), (first, last) in zip(net.where, net.blocks):
        if relu not in frozen:
            _tighten(net, side, (first, last), tuning, rounds, columns)
    lines = dict(root.lines)
    for (relu, which), (first, last) in zip(net.where, net.blocks):
        ends = lines[relu].low.clone(), lines[relu].high.clone()
        ends[0][0, which], ends[1][0, which] = low[first:last], high[first:last]
        lines[relu] = ReluLines.of(*ends)
    return CondensedRoot(replace(root, region=region, lines=lines), multiply_out(net))


def _tighten(
    net: Condensed, side: Matrices, block: tuple[int, int], tuning: Tuning, rounds: int, columns: Tensor | None
) -> None:
    """Backward bounds of the undecided neurons of a block, in place.

    With `rounds`, what triangles leave undecided is bounded once more through hulls of first-layer neurons, which
    depend on these `columns` of the inputs if they are few.
    """
    (first, last), low, high, most = block, net.low, net.high, tuning.memory.coefficients
    undecided = ((low[first:last] < 0) & (high[first:last] > 0)).nonzero()[:, 0] + first
    for which in torch.split(undecided, max(1, most // (2 * (first + side.neurons.a.shape[1])))):
        a, c = hidden_rows(net, side, low[None], high[None], *both_ends(which[None]), first)
        _narrow(net, which, net.region.lowest(a, c)[0])
        which = which[(low[which] < 0) & (high[which] > 0)]
        if rounds and first and len(which):
            asked, leaves = both_ends(which[None]), tuning.trees.hulled
            found = hidden_rows_less(net, side, low[None], high[None], *asked, first, leaves)
            a, c, left = (part[0] for part in found)
            n = left.shape[1]
            rows = net.neurons.a[:n], net.neurons.b[:n], net.neurons.slack[:n]
            a, c = through_hulls(net.region, rows, -left, (a, c), rounds, tuning.bounds.ball_hull_kernel, columns)
            _narrow(net, which, net.region.lowest(a[None], c[None])[0])


def _narrow(net: Condensed, which: Tensor, least: Tensor) -> None:
    """Takes lower bounds of +z and then −z of some neurons into the ends, in place; what is no number says nothing."""
    least = least.nan_to_num(nan=-torch.inf)
    net.low[which] = torch.maximum(net.low[which], least[: len(which)])
    net.high[which] = torch.minimum(net.high[which], -least[len(which) :])


def multiply_out(net: Condensed) -> Condensed:
    """The condensed network without the neurons that its bounds have decided."""
    kept = (net.low < 0) & (net.high > 0)
    if bool(kept.all()) or net.outputs is None:
        return net
    rows = stack([net.neurons, net.outputs])
    size, n = scales(rows, net.region.magnitude()[0], net.reach), net.size
    active = net.low >= 0
    used = torch.cat([kept | active, kept.new_ones(len(rows.b) - n)])
    for first, last in net.blocks:
        given = active[first:last].nonzero()[:, 0] + first
        later = used[last:].nonzero()[:, 0] + last
        if len(given):
            _substitute(rows, size, given, later, first)
        rows.m[:, first:last][:, ~kept[first:last]] = 0.0
    keep = kept.nonzero()[:, 0]
    counts = [int(kept[first:last].sum()) for first, last in net.blocks]
    ends = pairwise(accumulate(counts, initial=0))
    which = [values[kept[first:last]] for (_, values), (first, last) in zip(net.where, net.blocks)]
    neurons, outputs = (
        Rows(rows.a[part], rows.b[part], rows.m[part][:, keep], rows.slack[part])
        for part in (keep, torch.arange(n, len(rows.b)))
    )
    return Condensed(
        net.region,
        tuple(block for block, count in zip(ends, counts) if count),
        neurons,
        net.low[keep],
        net.high[keep],
        tuple((relu, values) for (relu, _), values in zip(net.where, which) if len(values)),
        outputs,
        net.basis,
    )


def _substitute(rows: Rows, size: Tensor, given: Tensor, later: Tensor, first: int) -> None:
    """Puts active neurons of the block that begins with `first` into later rows, in place; rounding goes to the slack.

    `size` is what the absolute terms of each row can add up to.
    """
    weights = rows.m[later][:, given]
    reach = weights.abs()
    rows.a[later] += weights @ rows.a[given]
    rows.b[later] += weights @ rows.b[given]
    rows.m[later, :first] += weights @ rows.m[given, :first]
    size[later] = (size[later] + reach @ size[given]) * UP
    rows.slack[later] = (rows.slack[later] + reach @ rows.slack[given] + gamma(len(given) + 2) * size[later]) * UP
