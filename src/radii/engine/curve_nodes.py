"""CurvedNodes: subproblems of a condensed network with curves, each an interval for every neuron.

A neuron's lines are worst where its interval is wide and its coefficient in the bound large: the neuron that costs the
bound most is split, a ReLU at 0, a tanh where the lines of the two halves lose least.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from radii._torch import Tensor, torch
from radii.bounds.rounding import outward
from radii.engine.curve_net import CurvedNet
from radii.engine.curve_tuning import CurvedTrees
from radii.engine.interval_nodes import tanh_point


@dataclass(eq=False)
class CurvedNodes:
    """A batch of nodes; all tensors have the nodes along their first dimension, and are float32 unless said."""

    objective: Tensor  # which row of the objectives, int64
    low: Tensor  # (nodes, n) intervals that hold inside the node
    high: Tensor
    set_low: Tensor  # (nodes, n) ends that splits have set, ±inf where none has
    set_high: Tensor
    slope: Tensor  # (nodes, 2, n) of the lines below and above
    pull: Tensor  # (nodes, n) multipliers β of ends that splits have set: > 0 for low ends, < 0 for high ones
    a: Tensor  # (nodes, d) float64: the linear bound of the objective …
    c: Tensor  # (nodes,) float64: … with rounding taken off
    radius: Tensor  # (nodes,) float64: no violation is closer than this
    score: Tensor  # (nodes, n) what the lines of each neuron cost the bound

    def pick(self, index: Tensor) -> CurvedNodes:
        """These nodes, repeated and ordered as asked."""
        return CurvedNodes(*(getattr(self, f.name)[index] for f in fields(self)))

    def where(self, mask: Tensor) -> CurvedNodes:
        """Those of the nodes that a mask names; themselves, not copies, when it names all."""
        return self if bool(mask.all()) else self.pick(mask.nonzero()[:, 0])

    def __len__(self) -> int:
        return int(self.objective.shape[0])

    @staticmethod
    def join(parts: list[CurvedNodes]) -> CurvedNodes:
        """All nodes of several batches."""
        return CurvedNodes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(CurvedNodes)))

    @staticmethod
    def roots(net: CurvedNet, objectives: Tensor) -> CurvedNodes:
        """One node per objective, not yet bounded."""
        count, n = len(objectives), net.size
        low, high = (t.expand(count, n).clone() for t in outward(net.low, net.high, torch.float32))
        none, wide = torch.full_like(low, torch.inf), net.low.new_zeros
        return CurvedNodes(
            objectives,
            low,
            high,
            -none,
            none,
            torch.full((count, 2, n), torch.nan, dtype=torch.float32),
            torch.zeros_like(low),
            wide((count, net.neurons.a.shape[1])),
            wide(count),
            wide(count),
            torch.zeros_like(low),
        )

    @property
    def ends(self) -> Tensor:
        """The ends that the multipliers are for, 0 where there are none."""
        end = torch.where(self.pull > 0, self.set_low, self.set_high)
        return torch.where(self.pull == 0, 0.0, end)


def divide(nodes: CurvedNodes, at: Tensor, point: Tensor) -> CurvedNodes:
    """Both children of every node, split at a point of one neuron: all lower parts, then all upper parts."""
    rows = torch.arange(len(nodes))
    down, up = nodes.pick(rows), nodes.pick(rows)
    for ends in (down.high, down.set_high):
        ends[rows, at] = torch.minimum(ends[rows, at], point)
    for ends in (up.low, up.set_low):
        ends[rows, at] = torch.maximum(ends[rows, at], point)
    # A multiplier of the end that the other part has now is none of the new end's.
    down.pull[rows, at] = down.pull[rows, at].clamp_min(0.0)
    up.pull[rows, at] = up.pull[rows, at].clamp_max(0.0)
    return CurvedNodes.join([down, up])


def splittable(nodes: CurvedNodes, tuning: CurvedTrees) -> Tensor:
    """Which neurons of each node can still be split with some gain, (nodes, n)."""
    size = torch.maximum(nodes.low.abs(), nodes.high.abs())
    return (nodes.score > 0) & (nodes.high - nodes.low > tuning.narrow * (1e-3 + size))


def split_points(net: CurvedNet, nodes: CurvedNodes, at: Tensor, tuning: CurvedTrees) -> Tensor:
    """Where to split these neurons, one per node."""
    rows = torch.arange(len(nodes))
    low, high = nodes.low[rows, at], nodes.high[rows, at]
    point = tanh_point(low.double(), high.double(), tuning.parts).to(torch.float32)
    return point if net.relu is None else torch.where(net.relu[at], 0.0, point)
