"""Lines of many units at once, tanh and ReLU in any mixture, for nodes of a search.

A lower line of tanh with slope s touches the convex part at −atanh(√(1 − s)); upper lines are lower lines of the same
curve seen from the other side, −tanh(−z) = tanh(z). So both sides are kept in one tensor (2, nodes, n), the upper ones
turned about 0. Estimates steer an ascent; only `certified` offsets prove anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluCurve, TanhCurve, tanh_slopes
from radii.bounds.rounding import outward
from radii.bounds.tuning import DEFAULT


@dataclass(frozen=True, eq=False)
class UnitLines:
    """Slopes and offsets of the lines below and above, (nodes, n)."""

    under: Tensor
    over: Tensor
    floor: Tensor
    ceiling: Tensor

    def part(self, first: int, last: int) -> UnitLines:
        """The lines of some units."""
        parts = (t[:, first:last] for t in (self.under, self.over, self.floor, self.ceiling))
        return UnitLines(*parts)


@dataclass(frozen=True, eq=False)
class Slants:
    """Slopes of the lines of nodes from both sides, between their useful limits, and what estimates need."""

    relu: Tensor | None  # (n,) which units are ReLUs; None where none is
    low: Tensor  # (2, nodes, n): as seen from each side
    high: Tensor
    at_high: Tensor  # the curve at the high ends
    start: Tensor
    least: Tensor
    most: Tensor

    @staticmethod
    def of(relu: Tensor | None, low: Tensor, high: Tensor) -> Slants:
        """Those for intervals (nodes, n)."""
        lows, highs = torch.stack([low, -high]), torch.stack([high, -low])
        start, least, most = tanh_slopes(lows, highs, DEFAULT.halvings)
        at_high = torch.tanh(highs)
        if relu is not None:
            curve, ends = ReluCurve(), ((low, high),)
            for side, choice in enumerate((curve.under(ends), curve.over(ends))):
                given = zip((start, least, most), (choice.start, choice.least, choice.most))
                for mine, theirs in given:
                    mine[side] = torch.where(relu, theirs[0], mine[side])
        # Slopes outside [0, 1] are rounding; charges count on there being none.
        least = least.clamp_(0.0, 1.0)
        return Slants(relu, lows, highs, at_high, start.clamp_(0.0, 1.0), least, most.clamp_(0.0, 1.0))

    def estimate(self, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """About the offsets of lines with these slopes, below and above, and where they touch the curve."""
        root = (1.0 - slope).clamp_(0.0, 1.0).sqrt_()
        touch = torch.minimum(torch.maximum(torch.atanh(root.clamp_max_(1.0 - 2.0**-23)).neg_(), self.low), self.high)
        floor = torch.minimum(torch.tanh(touch) - slope * touch, self.at_high - slope * self.high)
        if self.relu is None:
            return floor[0], -floor[1], touch
        low, high, over = self.low[0], self.high[0], slope[1]
        lift = torch.maximum(low.clamp_min(0.0) - over * low, high.clamp_min(0.0) - over * high)
        touch = torch.where(self.relu, 0.0, touch)
        return torch.where(self.relu, 0.0, floor[0]), torch.where(self.relu, lift, -floor[1]), touch


def certified(relu: Tensor | None, low: Tensor, high: Tensor, slopes: Tensor, dtype: torch.dtype) -> UnitLines:
    """Lines with these slopes (2, nodes, n), which the dtype holds, over intervals: offsets found in float64."""
    ends, (under, over) = ((low.double(), high.double()),), ((s.double(),) for s in slopes)
    curve = TanhCurve()
    floor, ceiling = curve.floor(ends, under), curve.ceiling(ends, over)
    if relu is not None:
        other = ReluCurve()
        floor = torch.where(relu, other.floor(ends, under), floor)
        ceiling = torch.where(relu, other.ceiling(ends, over), ceiling)
    floor, ceiling = outward(floor, ceiling, dtype)
    return UnitLines(slopes[0].to(dtype), slopes[1].to(dtype), floor, ceiling)


def gaps(relu: Tensor | None, low: Tensor, high: Tensor, slope: Tensor) -> Tensor:
    """How far the curve strays from its line of this slope on each interval, 0 where a ReLU has one sign."""
    lows, highs = torch.stack([low, -high]), torch.stack([high, -low])
    both = torch.stack([slope, slope])
    root = (1.0 - both).clamp_(0.0, 1.0).sqrt_().clamp_max_(1.0 - 2.0**-23)
    touch = torch.minimum(torch.maximum(torch.atanh(root).neg_(), lows), highs.clamp_max(0.0).maximum(lows))
    ends = [torch.tanh(z) - both * z for z in (lows, highs, touch)]
    least = torch.minimum(torch.minimum(ends[0], ends[1]), ends[2])
    gap = -(least[0] + least[1])
    if relu is not None:
        lift = torch.maximum(low.clamp_min(0.0) - slope * low, high.clamp_min(0.0) - slope * high)
        gap = torch.where(relu, lift * ((low < 0) & (high > 0)), gap)
    return torch.nan_to_num(gap.clamp_min_(0.0), nan=0.0, posinf=0.0, neginf=0.0)
