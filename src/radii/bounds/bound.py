"""Bounds of any lowered graph over balls: the ReLU pass where it suffices, the one for curves where it does not."""

from __future__ import annotations

from collections.abc import Callable

from radii._torch import Tensor, torch
from radii.bounds.intermediate import Root, bound_root
from radii.bounds.intermediate_curves import Place, Relaxed, relax
from radii.bounds.lowering import is_smooth
from radii.bounds.operands import Operands
from radii.bounds.region import Region
from radii.bounds.tuning import DEFAULT, Bounding
from radii.models.graph import Graph

Known = tuple[Tensor, Tensor]  # proven ends of all activations' arguments, flat: (batch, arguments)


def bound(
    graph: Graph,
    region: Region,
    known: Known | None = None,
    go_on: Callable[[], bool] = lambda: True,
    tuning: Bounding = DEFAULT,
) -> Root | Relaxed:
    """Bounds of every activation's argument over the region; `graph` is lowered and in float64.

    Once `go_on` says no, what is left gets intervals only.
    """
    if is_smooth(graph):
        operands = Operands.of(graph)
        if known is None:
            none = torch.full((len(region.center), operands.size), torch.inf, dtype=torch.float64)
            known = (-none, none)
        return relax(operands, Place((region,)), *known, go_on=go_on, tuning=tuning)
    proven = None if known is None else _by_relu(graph, known)
    return bound_root(graph, region, proven, go_on=go_on, tuning=tuning)


def ends(root: Root | Relaxed) -> Known:
    """What a root proves of the arguments, as `bound` takes it for a part of the region."""
    if isinstance(root, Relaxed):
        return root.low, root.high
    none = root.region.center.new_zeros((len(root.region.center), 0))
    low, high = ([none, *(getattr(lines, f) for lines in root.lines.values())] for f in ("low", "high"))
    return torch.cat(low, 1), torch.cat(high, 1)


def arguments(graph: Graph) -> int:
    """How many arguments of activations a lowered graph has."""
    return Operands.of(graph).size


def _by_relu(graph: Graph, known: Known) -> dict[int, tuple[Tensor, Tensor]]:
    found = {}
    for operand in Operands.of(graph).all:
        found[operand.node] = (known[0][:, operand.start : operand.end], known[1][:, operand.start : operand.end])
    return found
