"""Curves: certified lines under and over the operators that are not affine.

A line slope·x + offset lies below f on a box when offset ≤ min of f(x) − slope·x, whatever the slope. So slopes are
free to be guessed, optimised and rounded; only this minimum, the *floor*, has to be right, and here it is computed with
all its rounding taken off. Upper lines are lower lines of −f.

    Relu      the minimum is at an end or at 0
    Tanh      convex below 0, so a tangent bounds it there; above 0 the minimum is at an end. −tanh(−z) = tanh(z)
    Square    convex: a tangent below, the ends above
    Product   bilinear: the minimum is at one of the four corners

ReLU networks have faster passes of their own, with lines in two more layouts: `ReluLines` for the layers of a graph,
`MaskedLines` for many nodes on a condensed network. All three upper lines of a ReLU join its values at both ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.rounding import TINY, U64, outward, unit_of
from radii.models.graph import Node
from radii.models.operators import Affine, Product, Relu, Tanh

# What is charged for a tanh, relative: 8 ulps. SLEEF (torch's vectors) states 1, glibc 2; tests hold both to mpmath.
TANH = 16 * U64

Ends = tuple[Tensor, Tensor]  # the low and the high ends of an operand, of any shape that broadcasts with the slopes
Slopes = tuple[Tensor, ...]  # one per operand


@dataclass(frozen=True, eq=False)
class Choice:
    """Slopes to start from and between which others may be useful; where both are the same nothing is to be chosen."""

    start: Slopes
    least: Slopes
    most: Slopes


class Curve:
    """One operator's lines over boxes given by the ends of its operands."""

    def under(self, ends: tuple[Ends, ...]) -> Choice:
        """Slopes for a line below."""
        raise TypeError(f"{type(self).__name__} has no lines")

    def over(self, ends: tuple[Ends, ...]) -> Choice:
        """Slopes for a line above."""
        raise TypeError(f"{type(self).__name__} has no lines")

    def floor(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        """A lower bound of f(x) − slopes·x on the box, rounding taken off; differentiable in the slopes."""
        raise TypeError(f"{type(self).__name__} has no lines")

    def ceiling(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        """An upper bound of f(x) − slopes·x on the box."""
        raise TypeError(f"{type(self).__name__} has no lines")

    def worth(self, ends: tuple[Ends, ...]) -> Tensor:
        """Which units lines do not describe exactly, so that tighter ends would help."""
        return ends[0][1] > ends[0][0]


def curve_of(node: Node) -> Curve | None:
    """The curve of a lowered node, None for affine operators and the input."""
    operator = node.operator
    if operator is None or isinstance(operator, Affine):
        return None
    if isinstance(operator, Relu):
        return ReluCurve()
    if isinstance(operator, Tanh):
        return TanhCurve()
    if isinstance(operator, Product):
        return SquareCurve() if node.inputs[0] == node.inputs[1] else ProductCurve()
    raise TypeError(f"{type(operator).__name__} is not a lowered operator")


class ReluCurve(Curve):
    """max(z, 0)."""

    def under(self, ends: tuple[Ends, ...]) -> Choice:
        low, high = ends[0]
        unstable = (low < 0) & (high > 0)
        stable = (low >= 0).to(low.dtype)
        start = torch.where(unstable, (high > -low).to(low.dtype), stable)
        zero, one = torch.zeros_like(low), torch.ones_like(low)
        return Choice((start,), (torch.where(unstable, zero, stable),), (torch.where(unstable, one, stable),))

    def over(self, ends: tuple[Ends, ...]) -> Choice:
        low, high = ends[0]
        unstable = (low < 0) & (high > 0)
        slope = torch.where(unstable, high / (high - low).clamp_min(1e-300), (low >= 0).to(low.dtype))
        return Choice((slope,), (slope,), (slope,))

    def floor(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        at_low, at_high, charge = self._at_ends(ends[0], slopes[0])
        least = torch.minimum(at_low, at_high)
        both = (ends[0][0] < 0) & (ends[0][1] > 0)
        return torch.where(both, least.clamp_max(0.0), least) - charge

    def ceiling(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        at_low, at_high, charge = self._at_ends(ends[0], slopes[0])
        return torch.maximum(at_low, at_high) + charge

    @staticmethod
    def _at_ends(ends: Ends, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        low, high = ends
        at_low, at_high = low.clamp_min(0.0) - slope * low, high.clamp_min(0.0) - slope * high
        # Slopes 0 and 1 multiply exactly, and then the difference is exact too where the sign is known.
        exact = ((slope == 0) & (high <= 0)) | ((slope == 1) & (low >= 0))
        charge = 4 * U64 * (1.0 + slope.detach().abs()) * torch.maximum(low.abs(), high.abs()) + TINY
        return at_low, at_high, torch.where(exact, torch.zeros_like(charge), charge)

    def worth(self, ends: tuple[Ends, ...]) -> Tensor:
        return (ends[0][0] < 0) & (ends[0][1] > 0)


@dataclass(frozen=True, eq=False)
class ReluLines:
    """Lines of one ReLU layer: below by slope_low·z, above by slope_high·z + offset; all (batch, size).

    Where the ReLU is stable both lines are the function itself. Measured from a reference r, relu(z) − relu(r) lies
    above slope_low·(z − r) + base and below slope_high·(z − r) + offset.
    """

    low: Tensor
    high: Tensor
    slope_low: Tensor
    slope_high: Tensor
    offset: Tensor
    base: Tensor | None = None

    @property
    def unstable(self) -> Tensor:
        """Which neurons may take both signs."""
        return (self.low < 0) & (self.high > 0)

    @staticmethod
    def of(low: Tensor, high: Tensor) -> ReluLines:
        """Lines for pre-activation bounds; the lower slope is the adaptive choice of CROWN."""
        active = low >= 0
        unstable = (low < 0) & (high > 0)
        width = (high - low).clamp_min(torch.finfo(low.dtype).tiny)
        steep = torch.where(unstable, high / width, active.to(low.dtype))
        # An end that is no number says nothing: the slope is none either, and no bound through it can prove.
        steep = torch.where((low <= high), steep, torch.full_like(steep, torch.nan))
        lift = _lift(low, high, steep, width)
        offset = torch.where(unstable, lift.clamp_min(0.0), torch.zeros_like(lift))
        return ReluLines(low, high, torch.where(unstable, (high > -low).to(low.dtype), steep), steep, offset)

    def measured_from(self, reference: Tensor, dtype: torch.dtype) -> ReluLines:
        """Lines with the same slopes, rounded to a precision, measured from reference values in float64.

        Their offsets are the least and the largest distance of the ReLU from the lines, met at the ends or at 0.
        """
        slopes = self.slope_low.to(dtype), self.slope_high.to(dtype)
        given, distances = reference.clamp_min(0.0), []
        for slope in slopes:
            ends = [(z.clamp_min(0.0) - given) - slope.double() * (z - reference) for z in (self.low, self.high)]
            kink = torch.where(self.unstable, slope.double() * reference - given, ends[0])
            distances.append(torch.stack([*ends, kink]))
        charge = 16 * U64 * torch.maximum((self.high - reference).abs(), (self.low - reference).abs()) + TINY
        base, _ = outward(distances[0].amin(0) - charge, charge, dtype)
        _, offset = outward(charge, distances[1].amax(0) + charge, dtype)
        return ReluLines(self.low, self.high, *slopes, offset, base)

    def rows(self, index: Tensor) -> ReluLines:
        """The lines of these images of the batch."""
        names = ("low", "high", "slope_low", "slope_high", "offset", "base")
        parts = {name: part[index] for name in names if (part := getattr(self, name)) is not None}
        return ReluLines(**parts)


@dataclass(frozen=True, eq=False)
class MaskedLines:
    """The same for many nodes of a search: relu(z) ≤ steep·z + lift where undecided, relu(z) = steep·z elsewhere.

    Masks are numbers, 0 or 1, and choices between two values are products with them: exact, and many times faster on a
    processor than `torch.where`, whose branches it cannot foresee.
    """

    unstable: Tensor  # 1 where undecided, else 0
    steep: Tensor
    settled: Tensor  # steep where not undecided, else 0
    lift: Tensor

    @staticmethod
    def of(low: Tensor, high: Tensor) -> MaskedLines:
        """Lines for pre-activation bounds."""
        below, above = low.clamp_max(0.0), high.clamp_min(0.0)
        mask = above.sign().mul_(below.sign()).neg_()
        width = (above - below).clamp_min(least_width(low.dtype))
        steep = above / width  # 1 or 0 where one sign is left, no number where an end is none
        lift = _lift(below, above, steep, width)
        return MaskedLines(mask, steep, steep * (1.0 - mask), lift.clamp_min(0.0) * mask)

    def floor(self, alpha: Tensor) -> Tensor:
        """Slopes of the lower lines."""
        return torch.addcmul(self.settled, self.unstable, alpha)


def least_width(dtype: torch.dtype) -> float:
    """A neuron that can only be less than this is as good as 0: what is charged for underflow is more."""
    return TINY if dtype == torch.float64 else 1e-36


def _lift(low: Tensor, high: Tensor, steep: Tensor, width: Tensor) -> Tensor:
    """The offset of a line above a ReLU on [low, high], low ≤ 0 ≤ high, whatever the rounding of its slope.

    The line lies above 0 at low and above high at high, so above the convex ReLU between.
    """
    return torch.maximum(-steep * low, high - steep * high) + 8 * unit_of(low.dtype) * width


class TanhCurve(Curve):
    """The hyperbolic tangent (Sigmoid is ½ + ½·tanh(z/2))."""

    def under(self, ends: tuple[Ends, ...]) -> Choice:
        start, least, most = tanh_slopes(*ends[0])
        return Choice((start,), (least,), (most,))

    def over(self, ends: tuple[Ends, ...]) -> Choice:
        low, high = ends[0]
        return self.under(((-high, -low),))

    def floor(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        (low, high), slope = ends[0], slopes[0]
        steep = slope.detach().abs()
        at_low = _tanh_less(low, slope, steep)
        at_high = _tanh_less(high, slope, steep)
        # On [low, m], m = min(high, 0), the tangent at any p lies below; the best p has the slope of the line.
        middle = high.clamp_max(0.0)
        with torch.no_grad():
            touch = -torch.atanh((1.0 - slope).clamp(0.0, 1.0).sqrt().clamp_max(1.0 - 1e-16))
            p = torch.minimum(torch.maximum(touch, low), middle)
            t = torch.tanh(p)
            turn = (1.0 - t * t) - slope
            # (tanh'(p) − slope)·(z − p) is least at low when the curve is steeper, else at m.
            reach = torch.where(turn > 0, p - low, middle - p)
            far = torch.maximum(p - low, middle - p)
            lost = turn.abs() * reach * (1.0 + 8 * U64) + (2 * TANH + 8 * U64 * (1.0 + steep)) * far
        tangent = _tanh_less(p, slope, steep) - lost
        ends_only = torch.minimum(at_low, at_high)
        return torch.where(low < 0, torch.minimum(ends_only, tangent), ends_only)

    def ceiling(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        low, high = ends[0]
        return -self.floor(((-high, -low),), slopes)


def _tanh_less(z: Tensor, slope: Tensor, steep: Tensor) -> Tensor:
    """tanh(z) − slope·z, rounding taken off."""
    t = torch.tanh(z)
    return t - slope * z - ((TANH + 4 * U64) * t.abs() + 4 * U64 * steep * z.abs() + TINY)


def tanh_slopes(low: Tensor, high: Tensor, halvings: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    """Slopes of lines below tanh: the start, the least and the most useful one. Nothing here needs to be exact."""
    t_low, t_high = torch.tanh(low), torch.tanh(high)
    d_low, d_high = 1 - t_low * t_low, 1 - t_high * t_high
    width = high - low
    d_middle = 1 - torch.tanh(0.5 * (low + high)).square()
    secant = torch.where(width > 1e-7, (t_high - t_low) / width.clamp_min(1e-300), d_middle)
    # From (high, tanh high) down to where a line touches the convex part; if that is left of low, the secant it is.
    left, right = low.clamp_max(0.0), torch.zeros_like(low)
    for _ in range(halvings):
        p = 0.5 * (left + right)
        t = torch.tanh(p)
        beyond = t + (1 - t * t) * (high - p) > t_high
        left, right = torch.where(beyond, left, p), torch.where(beyond, p, right)
    touch = 1 - torch.tanh(left).square()
    overshoots = t_low + d_low * width >= t_high
    mixed = torch.where(overshoots, secant, touch)
    convex, concave = high <= 0, low >= 0
    start = torch.where(convex, d_middle, torch.where(concave, secant, mixed))
    most = torch.where(convex, d_high, start)
    least = torch.where(convex, d_low, torch.where(concave | overshoots, start, torch.minimum(d_low, mixed)))
    return start, least, most


class SquareCurve(Curve):
    """z·z, a product of a value with itself: one operand for both."""

    def under(self, ends: tuple[Ends, ...]) -> Choice:
        low, high = ends[0]
        return Choice((low + high,), (2 * low,), (2 * high,))

    def over(self, ends: tuple[Ends, ...]) -> Choice:
        slope = ends[0][0] + ends[0][1]
        return Choice((slope,), (slope,), (slope,))

    def floor(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        (low, high), slope = ends[0], slopes[0]
        with torch.no_grad():
            p = torch.minimum(torch.maximum(0.5 * slope, low), high)
            turn = 2 * p - slope
            reach = torch.where(turn > 0, p - low, high - p)
            far = torch.maximum(p - low, high - p)
            lost = turn.abs() * reach * (1.0 + 8 * U64) + 4 * U64 * (2 * p.abs() + slope.abs()) * far
        return p * p - slope * p - lost - _square_charge(p, slope)

    def ceiling(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        (low, high), slope = ends[0], slopes[0]
        at_low = low * low - slope * low + _square_charge(low, slope)
        at_high = high * high - slope * high + _square_charge(high, slope)
        return torch.maximum(at_low, at_high)


def _square_charge(z: Tensor, slope: Tensor) -> Tensor:
    return 4 * U64 * (z * z + slope.detach().abs() * z.abs()) + TINY


class ProductCurve(Curve):
    """x·y; the lines are McCormick's where a slope is at its limits, and mixtures of them between."""

    def under(self, ends: tuple[Ends, ...]) -> Choice:
        (low, high), (other_low, other_high) = ends
        middles = 0.5 * (other_low + other_high), 0.5 * (low + high)
        return Choice(middles, (other_low, low), (other_high, high))

    def over(self, ends: tuple[Ends, ...]) -> Choice:
        return self.under(ends)

    def floor(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        return self._corners(ends, slopes, -1.0).amin(0)

    def ceiling(self, ends: tuple[Ends, ...], slopes: Slopes) -> Tensor:
        return self._corners(ends, slopes, 1.0).amax(0)

    @staticmethod
    def _corners(ends: tuple[Ends, ...], slopes: Slopes, side: float) -> Tensor:
        values = []
        for x in ends[0]:
            for y in ends[1]:
                first, second = slopes[0] * x, slopes[1] * y
                size = (x * y).abs() + first.detach().abs() + second.detach().abs()
                values.append(x * y - first - second + side * (6 * U64 * size + TINY))
        return torch.stack(values)

    def worth(self, ends: tuple[Ends, ...]) -> Tensor:
        return (ends[0][1] > ends[0][0]) | (ends[1][1] > ends[1][0])
