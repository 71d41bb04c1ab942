"""Problem: a condensed network with objectives, in the two precisions that bounds are computed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from radii._torch import Tensor, torch
from radii.bounds.hull import few_columns
from radii.bounds.region import Region
from radii.bounds.rounding import U32, outward
from radii.engine.condensed import Condensed, Rows
from radii.engine.matrices import Matrices
from radii.engine.nodes import Nodes
from radii.engine.planes import Plane, Planes
from radii.engine.tuning import DEFAULT, Trees, Tuning


def worth_hulls(net: Condensed, trees: Trees) -> bool:
    """Whether hulls of first-layer neurons can be had and are worth their price: many neurons must see few inputs."""
    if not net.blocks or net.region.norm.name != "linf":
        return False
    return net.blocks[0][1] <= trees.hull_neurons or first_columns(net, trees) is not None


def first_columns(net: Condensed, trees: Trees) -> Tensor | None:
    """The few inputs that every neuron of the first layer depends on, as in convolutions; None where they are many."""
    return few_columns(net.neurons.a[: net.blocks[0][1]], trees.hull_inputs) if net.blocks else None


@dataclass(frozen=True, eq=False)
class Problem:
    """A condensed network with objectives, ready to be bounded in both precisions."""

    net: Condensed
    fine: Matrices  # float64
    fast: Matrices  # float32
    middle: Tensor  # float32 box around the ball: middle ± half
    half: Tensor
    tuning: Tuning = DEFAULT
    members: Tensor | None = None  # (clauses, k) the rows of each clause; None: every row is asked by itself
    planes: Planes | None = None  # pairs of neurons that are bounded together, in a tree
    hulls: bool = False  # whether nodes that stay open are bounded once more through hulls of first-layer neurons

    @staticmethod
    def of(net: Condensed, objectives: Rows, tuning: Tuning = DEFAULT, members: Tensor | None = None) -> Problem:
        """The problem of bounding objectives, or clauses of them, on the condensed network."""
        down, up = net.region.box()
        middle = (0.5 * (up[0] - down[0])).to(torch.float32)
        half = torch.maximum(up[0] - middle.double(), down[0] + middle.double()) * (1.0 + 8 * U32)
        fine, fast = (
            Matrices.of(net, objectives, t, members is not None, tuning.trees) for t in (torch.float64, torch.float32)
        )
        return Problem(net, fine, fast, middle, half.to(torch.float32), tuning, members)

    def over(self, part: Callable[[Region], Region]) -> Problem:
        """The same objectives on a part of the ball; bounds of hidden neurons hold on all of it."""
        fine, fast = (replace(side, region=part(side.region)) for side in (self.fine, self.fast))
        return replace(self, fine=fine, fast=fast)

    @cached_property
    def columns(self) -> Tensor | None:
        """The few inputs that first-layer neurons depend on, if they are few."""
        return first_columns(self.net, self.tuning.trees)

    def with_hulls(self) -> Problem:
        """The same problem, its first layer bounded through hulls where those can be had and pay."""
        return replace(self, hulls=worth_hulls(self.net, self.tuning.trees))

    def planes_over(self, low: Tensor, high: Tensor) -> tuple[Plane, ...]:
        """The pair planes of a batch of nodes with these bounds, over what they leave of the octagons."""
        return () if self.planes is None else self.planes.inside(low, high)

    @property
    def node_bytes(self) -> int:
        """About what bounding one node takes: some dozen rows over the inputs, and twice as many over the neurons."""
        return 96 * self.fine.objectives.a.shape[1] + 200 * self.net.size

    def asked(self, side: Matrices, nodes: Nodes) -> tuple[Rows, Tensor]:
        """The row of every node in one precision, that of its clause by its weights, and what it costs in rounding."""
        if self.members is None:
            return side.objectives_of(nodes.objective)
        weights = side.objectives.b.new_zeros((len(nodes), len(side.objectives.b)))
        weights.scatter_add_(1, self.members[nodes.objective], nodes.share.to(weights.dtype))
        return side.mixed_objectives(weights)

    def roots(self) -> Nodes:
        """One node per objective, nothing fixed, not yet bounded."""
        members = torch.arange(len(self.fine.objectives.b))[:, None] if self.members is None else self.members
        (count, rows), n = members.shape, self.net.size
        low, high = outward(self.net.low, self.net.high, torch.float32)
        low, high = low.expand(count, n).clone(), high.expand(count, n).clone()
        zeros = low.new_zeros((count, n))
        wide = self.net.low.new_zeros
        return Nodes(
            torch.arange(count),
            low,
            high,
            zeros.to(torch.int8),
            (high > -low).to(low.dtype),
            zeros.clone(),
            wide((count, self.fine.objectives.a.shape[1])),
            wide(count),
            wide(count),
            zeros.clone(),
            torch.full((count, rows), 1.0 / rows),
            low.new_zeros((count, 0)),
        )
