"""Problem: a condensed network with objectives, in the two precisions that bounds are computed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds.region import Region
from radii.bounds.rounding import U32, outward
from radii.engine.condensed import Condensed, Rows
from radii.engine.matrices import Matrices
from radii.engine.nodes import Nodes
from radii.engine.tuning import DEFAULT, Tuning


@dataclass(frozen=True, eq=False)
class Problem:
    """A condensed network with objectives, ready to be bounded in both precisions."""

    net: Condensed
    fine: Matrices  # float64
    fast: Matrices  # float32
    middle: Tensor  # float32 box around the ball: middle ± half
    half: Tensor
    tuning: Tuning = DEFAULT

    @staticmethod
    def of(net: Condensed, objectives: Rows, tuning: Tuning = DEFAULT) -> Problem:
        """The problem of bounding objectives on the condensed network."""
        down, up = net.region.box()
        middle = (0.5 * (up[0] - down[0])).to(torch.float32)
        half = torch.maximum(up[0] - middle.double(), down[0] + middle.double()) * (1.0 + 8 * U32)
        fine = Matrices.of(net, objectives, torch.float64)
        return Problem(net, fine, Matrices.of(net, objectives, torch.float32), middle, half.to(torch.float32), tuning)

    def over(self, part: Callable[[Region], Region]) -> Problem:
        """The same objectives on a part of the ball; bounds of hidden neurons hold on all of it."""
        fine, fast = (replace(side, region=part(side.region)) for side in (self.fine, self.fast))
        return replace(self, fine=fine, fast=fast)

    @property
    def node_bytes(self) -> int:
        """About what bounding one node takes: some dozen rows over the inputs, and twice as many over the neurons."""
        return 96 * self.fine.objectives.a.shape[1] + 200 * self.net.size

    def roots(self) -> Nodes:
        """One node per objective, nothing fixed, not yet bounded."""
        count, n = len(self.fine.objectives.b), self.net.size
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
        )
