"""Nodes: subproblems of one image's condensed network, in batches.

A node fixes the sign of some neurons and carries an objective: it stands for the points of the ball where the neurons
have these signs, and for the question whether the objective is positive there. An objective is a row, or a clause of
several rows: positive where one of them is. Weights λ ≥ 0 of its rows make one row of a clause.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from radii._torch import Tensor, torch


@dataclass(eq=False)
class Nodes:
    """A batch of nodes; all tensors have the nodes along their first dimension."""

    objective: Tensor  # which row or clause of the objectives, int64
    low: Tensor  # (nodes, n) float32 bounds of the pre-activations inside the node
    high: Tensor
    sign: Tensor  # (nodes, n) int8: +1 fixed active, −1 fixed inactive, 0 free
    alpha: Tensor  # (nodes, n) float32
    beta: Tensor  # (nodes, n) float32
    a: Tensor  # (nodes, d) float64: the linear bound of the objective …
    c: Tensor  # (nodes,) float64: … with rounding taken off
    radius: Tensor  # (nodes,) float64: no violation of the objective closer than this
    score: Tensor  # (nodes, n) float32: how promising a split of each neuron is
    share: Tensor  # (nodes, k) float32: the weights λ of the rows of each node's clause; 1 where it is one row
    tilt: Tensor  # (nodes, 2·pairs) float32: how far slopes of pair planes are from those of single lines

    def pick(self, index: Tensor) -> Nodes:
        """These nodes, repeated and ordered as asked."""
        return Nodes(*(getattr(self, f.name)[index] for f in fields(self)))

    def where(self, mask: Tensor) -> Nodes:
        """Those of the nodes that a mask names; themselves, not copies, when it names all."""
        return self if bool(mask.all()) else self.pick(mask.nonzero()[:, 0])

    def __len__(self) -> int:
        return int(self.objective.shape[0])

    @property
    def splittable(self) -> Tensor:
        """Which nodes still have an undecided neuron."""
        return ((self.low < 0) & (self.high > 0)).any(1)

    @staticmethod
    def join(parts: list[Nodes]) -> Nodes:
        """All nodes of several batches."""
        return Nodes(*(torch.cat([getattr(p, f.name) for p in parts]) for f in fields(Nodes)))


def fix(nodes: Nodes, at: Tensor) -> Nodes:
    """Both children of every node, with neuron `at` (one per node) fixed active, then all of them fixed inactive."""
    rows = torch.arange(len(nodes))
    up, down = nodes.pick(rows), nodes.pick(rows)
    up.low[rows, at] = 0.0
    up.sign[rows, at] = 1
    down.high[rows, at] = 0.0
    down.sign[rows, at] = -1
    return Nodes.join([up, down])
