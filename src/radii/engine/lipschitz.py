"""Slopes: the least Lipschitz constant around one input, sup of ‖f(x) − f(x̂)‖ / ‖x − x̂‖ over a ball, by shells.

Inside the ball where no neuron can change its sign the network is affine, and its slope is the dual norm of the
gradient rows, over the directions that the domain allows. Outside it the ball is cut into shells r ≤ ‖δ‖ ≤ R: on one of
them "no slope reaches L" is a row with a distance term, which trees decide like any other (see `bounds.shell`). Shells
that do not close are halved, down to a share of the tolerance. No Jacobian is bounded anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from radii.bounds.bound import bound
from radii.bounds.intermediate import Root, bound_root
from radii.bounds.lowering import is_smooth
from radii.bounds.region import Region
from radii.bounds.rounding import UP, gamma, proving
from radii.engine.output_rows import OutputRows, lowered_outputs
from radii.engine.reach import ReachSearch
from radii.models.graph import Graph
from radii.problem import Reason

GROWTH = 2.0  # how much larger the outer radius of a shell is than the inner one
THINNEST = 0.25  # of the tolerance: shells are not halved below this
SMALLEST = 1e-9  # of ε: an affine ball smaller than this is taken for none
KINK = "a neuron is at its kink at the input itself, so no ball around it is affine"
CURVED = "a network with curved activations is affine nowhere: no slope is proven"


@dataclass(eq=False)
class SlopeSearch(ReachSearch):
    """The search for the largest slope in one ball; `quantity` has a row per output and direction."""

    shells: list[tuple[float, float]] | None = None  # (inner, outer), from the affine ball to ε
    affine: float = math.inf  # the slope inside the affine ball

    def _root(self) -> float:
        """The slope of the affine ball, and the shells outside it; nothing is proven of those yet."""
        self.affine, inner = self._affine()
        if math.isinf(self.affine):
            self.note = self.note or KINK
            return math.inf
        self.shells = []
        while inner < self.epsilon:
            outer = min(GROWTH * inner, self.epsilon)
            self.shells.append((inner, outer))
            inner = outer
        return self._by_intervals()

    def _next(self, low: float, first: bool) -> float | None:
        if math.isinf(self.proven):
            return None
        return super()._next(max(low, self.affine), first)

    def _prove(self, threshold: float, share: float) -> bool:
        """Whether no slope reaches a threshold, in the affine ball and on every shell."""
        if self.shells is None or self.affine >= threshold or self.meter.over is not None:
            return False
        until = self.meter.share + share
        todo = sorted(self.shells, reverse=True)
        done: list[tuple[float, float]] = []
        while todo:
            if self.meter.share >= until or self.meter.over is not None or self.witnessed >= threshold:
                self.shells = sorted(done + todo)
                return False
            inner, outer = todo.pop()
            if self._shell(threshold, inner, outer, until - self.meter.share):
                done.append((inner, outer))
                continue
            if self.witnessed >= threshold or outer <= inner * (1.0 + THINNEST * self.tolerance):
                self.shells = sorted([*done, *todo, (inner, outer)])
                return False
            middle = math.sqrt(inner * outer)
            todo += [(middle, outer), (inner, middle)]
        self.shells = sorted(done)
        return True

    def radius(self, constant: float, tolerance: float, below: Callable[[], float]) -> float:
        """The largest radius up to which no slope reaches a constant: shells are proven from the centre outwards.

        `below` is the largest radius worth proving; it shrinks when a nearer violation is met.
        """
        with proving():
            self.affine, lower = self._affine()
            if self.affine >= constant:
                return 0.0
            growth, top = GROWTH, below()
            while lower < top and self.meter.over is None:
                outer = min(lower * growth, top)
                if self._shell(constant, lower, outer, 1.0 - self.meter.share):
                    lower, growth = outer, min(GROWTH, growth * growth)
                    continue
                top = below()
                if outer - lower <= 0.25 * tolerance:
                    break
                growth = math.sqrt(growth) if outer == lower * growth else math.sqrt(outer / lower)
            self.stopped = self.meter.over
            return min(lower, self.epsilon)

    def _shell(self, threshold: float, inner: float, outer: float, share: float) -> bool:
        rows = self._rows(threshold, inner)
        return self._decide(rows, outer, threshold, share)

    def _rows(self, threshold: float, inner: float) -> OutputRows:
        """What must stay positive on a shell: L·‖δ‖ − (row·f(x) − row·f(x̂)), the distance counted from `inner` on."""
        graph = lowered_outputs(self.classifier)
        coefficients = torch.tensor(self.quantity.coefficients)
        at_center = self._center(graph, coefficients)
        gained = at_center + threshold * inner
        shift = -(gained - 4 * 2.0**-53 * (at_center.abs() + abs(threshold * inner)))
        return OutputRows(graph, -coefficients, shift, inner, threshold)

    def _center(self, graph: Graph, rows: Tensor) -> Tensor:
        """Lower bounds of row·f(x̂) over the reals."""
        region = self.region(0.0)
        net = bound(graph, region)
        linear = net.margins(rows[None])
        return region.lowest(linear.a, linear.shifted())[0]

    def _affine(self) -> tuple[float, float]:
        """The largest slope inside a ball where the network is affine, and that ball's radius."""
        graph = lowered_outputs(self.classifier)
        size, good = self.epsilon, 0.0
        if is_smooth(graph):
            self.note = CURVED
            return math.inf, 0.0
        if self._free(graph, size).undecided == 0:
            good = size
        low, high = SMALLEST * self.epsilon, self.epsilon
        if good == 0.0 and self._free(graph, low).undecided == 0:
            while high > 1.1 * low:
                middle = math.sqrt(low * high)
                low, high = (middle, high) if self._free(graph, middle).undecided == 0 else (low, middle)
            good = low
        if good == 0.0:
            return math.inf, 0.0
        return self._slope(self._free(graph, good), good), good

    def _free(self, graph: Graph, size: float) -> Root:
        """Bounds on a whole ball, the domain left out: an affine map found there may be scaled."""
        region = self.region(size)
        endless = torch.full_like(region.down, torch.inf)
        return bound_root(graph, replace(region, down=endless, up=endless))

    def _slope(self, net: Root, size: float) -> float:
        """The dual norm of the rows of an affine map, over the directions that the domain allows, rounding charged.

        Both ends of a row are off by at most `error` on the ball, so its coefficients are off by at most
        2·error / size per unit of distance.
        """
        rows = torch.tensor(self.quantity.coefficients)[None]
        up, down = net.margins(rows), net.margins(-rows)
        error = (up.error + down.error + (up.c + down.c).abs())[0] + (
            (up.a + down.a).abs() @ net.region.magnitude()[0][:, None]
        )[0, :, 0]
        region = self.region(size)
        a = up.a[0]
        free = torch.where(a > 0, region.up > 0, region.down > 0)
        norm: Tensor = torch.linalg.vector_norm(a * free, ord=self.norm.dual.order, dim=1)
        worst = norm * (1.0 + 2 * gamma(a.shape[1] + 4)) + 2 * error * UP / size
        return float(worst.max())

    def _by_intervals(self) -> float:
        """A first proven slope: what linear bounds say of every shell, without trees."""
        worst = self.affine
        for inner, outer in self.shells or ():
            rows = self._rows(0.0, inner)
            region: Region = self.region(outer)
            net = bound(rows.graph, region)
            linear = net.margins(rows.rows[None])
            top = float((-region.lowest(linear.a, linear.shifted() - rows.shift)[0]).max())
            self.meter.nodes += len(rows.rows)
            worst = max(worst, top / inner * (1.0 + 1e-12))
            if not math.isfinite(worst) or self.meter.over is not None:
                self.stopped = Reason.TIME
                return math.inf
        return worst
