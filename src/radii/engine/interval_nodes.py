"""IntervalNodes: subproblems of a network with curves, each an interval for every operand, and where to split them.

A unit's lines are worst where its interval is wide and its coefficient in the bound large: the unit that costs the
bound most is split, a ReLU at 0, a tanh where the lines of the two halves lose least, other operands in the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluCurve, TanhCurve
from radii.bounds.intermediate_curves import Relaxed
from radii.bounds.operands import Operands
from radii.engine.curve_tuning import IntervalTrees
from radii.engine.tuning import DEFAULT


@dataclass(eq=False)
class IntervalNodes:
    """A batch of nodes; all tensors have the nodes along their first dimension, and are float64 but for indices."""

    objective: Tensor  # which row of the margins
    low: Tensor  # (nodes, operands) intervals that hold inside the node
    high: Tensor
    set_low: Tensor  # (nodes, operands) ends that splits have set, ±inf where none has
    set_high: Tensor
    under: Tensor  # (nodes, operands) slopes of lower and upper lines
    over: Tensor
    pull: Tensor  # (nodes, operands) multipliers
    box_low: Tensor  # (nodes, d) the inputs of the node
    box_high: Tensor
    a: Tensor  # (nodes, d) the linear bound of the margin …
    c: Tensor  # … with rounding and shift taken off
    radius: Tensor  # no violation is closer than this
    place: Tensor  # which operand (or input) to split, −1 when none can be
    point: Tensor  # and where

    def pick(self, index: Tensor) -> IntervalNodes:
        """These nodes, repeated and ordered as asked."""
        return IntervalNodes(*(getattr(self, f.name)[index] for f in fields(self)))

    def __len__(self) -> int:
        return int(self.objective.shape[0])

    @staticmethod
    def join(parts: list[IntervalNodes]) -> IntervalNodes:
        """All nodes of several batches."""
        return IntervalNodes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(IntervalNodes)))

    @staticmethod
    def roots(net: Relaxed, objectives: Tensor, box: tuple[Tensor, Tensor]) -> IntervalNodes:
        """One node per objective from the relaxation of the whole region (of one image), not yet bounded."""
        count = len(objectives)
        low, high = net.low.expand(count, -1).clone(), net.high.expand(count, -1).clone()
        none = torch.full_like(low, torch.inf)
        wide = low.new_zeros
        return IntervalNodes(
            objectives,
            low,
            high,
            -none,
            none,
            net.slants.under[:, 0].expand(count, -1).clone(),
            net.slants.over[:, 0].expand(count, -1).clone(),
            torch.zeros_like(low),
            box[0].expand(count, -1).clone(),
            box[1].expand(count, -1).clone(),
            wide((count, box[0].shape[-1])),
            wide(count),
            wide(count),
            torch.full((count,), -1),
            wide(count),
        )


def divide(nodes: IntervalNodes, inputs: bool) -> IntervalNodes:
    """Both children of every node: all lower parts, then all upper parts."""
    rows = torch.arange(len(nodes))
    down, up = nodes.pick(rows), nodes.pick(rows)
    at, point = nodes.place, nodes.point
    if inputs:
        down.box_high[rows, at] = point
        up.box_low[rows, at] = point
        return IntervalNodes.join([down, up])
    for ends in (down.high, down.set_high):
        ends[rows, at] = torch.minimum(ends[rows, at], point)
    for ends in (up.low, up.set_low):
        ends[rows, at] = torch.maximum(ends[rows, at], point)
    return IntervalNodes.join([down, up])


def operand_splits(
    net: Relaxed, lost: dict[int, Tensor], whole: Tensor, tuning: IntervalTrees = DEFAULT.intervals
) -> tuple[Tensor, Tensor]:
    """The operand to split in every node, −1 for none, and the point; `whole` (operands,) are the root's widths."""
    width = net.high - net.low
    score = torch.zeros_like(width)
    for node, cost in lost.items():
        operands = net.operands.of_node[node]
        share = [width[:, s.start : s.end] / whole[s.start : s.end].clamp_min(1e-300) for s in operands]
        for k, operand in enumerate(operands):
            widest = torch.ones_like(cost, dtype=torch.bool)
            for other in (o for o in range(len(operands)) if o != k):
                widest &= (share[k] > share[other]) | ((share[k] == share[other]) & (k < other))
            score[:, operand.start : operand.end] = torch.where(widest, cost, torch.zeros_like(cost))
    thick = width > tuning.narrow * (1e-3 + torch.maximum(net.low.abs(), net.high.abs()))
    score = torch.where(thick, score, torch.zeros_like(score))
    best, at = score.max(1)
    rows = torch.arange(len(at))
    point = _points(net.operands, at, net.low[rows, at], net.high[rows, at], tuning.parts)
    return torch.where(best > 0, at, torch.full_like(at, -1)), point


def _points(operands: Operands, at: Tensor, low: Tensor, high: Tensor, parts: int) -> Tensor:
    """Where to split each of these operands."""
    kind = torch.zeros(operands.size, dtype=torch.int8)
    for operand in operands.all:
        curve = operands.curves[operand.node]
        kind[operand.start : operand.end] = (
            1 if isinstance(curve, ReluCurve) else 2 if isinstance(curve, TanhCurve) else 0
        )
    middle = 0.5 * low + 0.5 * high
    point = torch.where(kind[at] == 1, torch.zeros_like(low), middle)
    return torch.where(kind[at] == 2, tanh_point(low, high, parts), point)


def tanh_point(low: Tensor, high: Tensor, parts: int) -> Tensor:
    """The point whose two parts have the least gaps between secant-like lines, in sum."""
    share = torch.arange(1, parts, dtype=low.dtype)[:, None] / parts
    zero = torch.where((low < 0) & (high > 0), torch.zeros_like(low), 0.5 * low + 0.5 * high)
    points = torch.cat([low + (high - low) * share, zero[None]])
    cost = _tanh_gap(low.expand_as(points), points) + _tanh_gap(points, high.expand_as(points))
    return points.gather(0, cost.argmin(0, keepdim=True))[0]


def _tanh_gap(low: Tensor, high: Tensor) -> Tensor:
    slope = (torch.tanh(high) - torch.tanh(low)) / (high - low).clamp_min(1e-300)
    curve, ends = TanhCurve(), ((low, high),)
    return curve.ceiling(ends, (slope,)) - curve.floor(ends, (slope,))
