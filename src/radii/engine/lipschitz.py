"""Slopes: the least Lipschitz constant around one input, sup of ‖f(x) − f(x̂)‖ / ‖x − x̂‖ over a ball, by shells.

Inside the ball where no neuron can change its sign the network is affine, and its slope is the dual norm of the
gradient rows, over the directions that the domain allows. Outside it the ball is cut into shells r ≤ ‖δ‖ ≤ R: on one of
them "no slope reaches L" is a row with a distance term, which trees decide like any other (see `bounds.shell`). The
worst shell is worked on first; one that does not close soon is halved. No Jacobian is bounded anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from radii._torch import Tensor, torch
from radii.bounds.bound import bound
from radii.bounds.intermediate import Root, bound_root
from radii.bounds.lowering import is_smooth
from radii.bounds.rounding import UP, gamma, proving
from radii.engine.output_rows import OutputRows, lowered_outputs
from radii.engine.reach import ReachSearch
from radii.models.graph import Graph
from radii.problem import Reason, Tolerance
from radii.problem.tolerance import closing_gap

KINK = "a neuron is at its kink at the input itself, so no ball around it is affine"
CURVED = "a network with curved activations is affine nowhere: no slope is proven"


@dataclass(eq=False)
class Piece:
    """One shell under search: what is proven of slopes in it, and what the next try may cost."""

    inner: float
    outer: float
    nodes: int  # of its next tree
    proven: float = math.inf  # no slope of the shell reaches it
    failed: float = -math.inf  # the largest slope that could not be excluded with so many nodes


@dataclass(eq=False)
class SlopeSearch(ReachSearch):
    """The search for the largest slope in one ball; `quantity` has a row per output and direction."""

    shells: list[Piece] = field(default_factory=list)  # from the affine ball to ε
    affine: float = math.inf  # the slope inside the affine ball

    def _root(self) -> float:
        """The slope of the affine ball, and what linear bounds say of the shells outside it, without trees."""
        self.affine, inner = self._affine()
        if math.isinf(self.affine):
            self.note = self.note or KINK
            return math.inf
        while inner < self.epsilon:
            outer = min(self.tuning.shells.growth * inner, self.epsilon)
            self.shells.append(self._piece(inner, outer))
            inner = outer
        return self._worst()

    def _worst(self) -> float:
        return max([self.affine, *(piece.proven for piece in self.shells)])

    def _narrow(self) -> None:
        """Works on the worst shell until all are just above the best witness."""
        size = 1.0 + self.tuning.reaches.near * self.tolerance
        while not self.finished and self._improve(max(size * self.witnessed, self.affine), 1.0):
            self.proven = self._worst()

    def _prove(self, threshold: float, share: float) -> bool:
        """Whether no slope reaches a threshold, in the affine ball and on every shell."""
        until = self.meter.share + share
        while self._improve(threshold, until):
            self.proven = self._worst()
        return self.affine < threshold and self._worst() <= threshold

    def _improve(self, threshold: float, until: float) -> bool:
        """Tries to bring the worst shell down to a threshold; False when that is done, pointless or too dear."""
        worst = max(self.shells, key=lambda piece: piece.proven, default=None)
        if worst is None or worst.proven <= threshold or self.affine > threshold or self.witnessed >= threshold:
            return False
        if self.meter.share >= until or self.meter.over is not None:
            return False
        low, rule = max(threshold, worst.failed), self.tuning.shells
        level = low if low > worst.failed and worst.proven <= rule.far * low else 0.5 * (low + worst.proven)
        if self._shell(level, worst.inner, worst.outer, until - self.meter.share, worst.nodes):
            worst.proven = level
        elif worst.outer > rule.thin * worst.inner:
            self._halve(worst)
        else:
            worst.failed = level
            tried = self.tuning.reaches.tried * self.tolerance * worst.proven
            if worst.proven - level <= tried:  # nothing is left between them
                worst.failed, worst.nodes = -math.inf, rule.more_nodes * worst.nodes
                return self.stopped is not Reason.INCOMPLETE
        return True

    def _halve(self, piece: Piece) -> None:
        """Two shells in the place of one, each with bounds of its own and somewhat more nodes."""
        middle = math.sqrt(piece.inner * piece.outer)
        self.shells.remove(piece)
        for inner, outer in ((piece.inner, middle), (middle, piece.outer)):
            half = self._piece(inner, outer)
            half.proven = min(half.proven, piece.proven)
            half.nodes = int(self.tuning.shells.half_nodes * piece.nodes)
            self.shells.append(half)

    def radius(self, constant: float, tolerance: Tolerance, below: Callable[[], float]) -> float:
        """The largest radius up to which no slope reaches a constant: shells are proven from the centre outwards.

        `below` is the largest radius worth proving; it shrinks when a nearer violation is met.
        """
        with proving():
            self.affine, lower = self._affine()
            if self.affine >= constant:
                return 0.0
            rule, top = self.tuning.shells, below()
            growth = rule.growth
            while lower < top and self.meter.over is None:
                outer = min(lower * growth, top)
                thin = outer <= rule.thin * lower or outer - lower <= closing_gap(tolerance, outer)
                if self._shell(constant, lower, outer, 1.0 - self.meter.share, None if thin else rule.nodes):
                    lower, growth = outer, min(rule.growth, growth * growth)
                    continue
                top = below()
                if outer - lower <= self.tuning.goals.finest * closing_gap(tolerance, outer):
                    break
                growth = math.sqrt(growth) if outer == lower * growth else math.sqrt(outer / lower)
            self.stopped = self.meter.over
            return min(lower, self.epsilon)

    def _shell(self, threshold: float, inner: float, outer: float, share: float, nodes: int | None) -> bool:
        """Whether no slope of a shell reaches a threshold."""
        return self._decide(self._rows(threshold, inner), outer, threshold, share, nodes)

    def _rows(self, threshold: float, inner: float) -> OutputRows:
        """What must stay positive on a shell: L·‖δ‖ − (row·f(x) − row·f(x̂)), the distance counted from `inner` on."""
        graph = lowered_outputs(self.classifier)
        coefficients = torch.tensor(self.quantity.coefficients)
        at_center = self._center(graph, coefficients)
        gained = at_center + threshold * inner
        shift = -(gained - 4 * 2.0**-53 * (at_center.abs() + abs(threshold * inner)))
        return OutputRows(graph, -coefficients, shift, inner=inner, slope=threshold)

    def _center(self, graph: Graph, rows: Tensor) -> Tensor:
        """Lower bounds of row·f(x̂) over the reals."""
        region = self.region(0.0)
        net = bound(graph, region, tuning=self.tuning.bounds)
        linear = net.margins(rows[None])
        return region.lowest(linear.a, linear.shifted())[0]

    def _affine(self) -> tuple[float, float]:
        """The largest slope inside a ball where the network is affine, and that ball's radius."""
        graph = lowered_outputs(self.classifier)
        size, good, rule = self.epsilon, 0.0, self.tuning.shells
        if is_smooth(graph):
            self.note = CURVED
            return math.inf, 0.0
        if self._free(graph, size).undecided == 0:
            good = size
        low, high = rule.smallest * self.epsilon, self.epsilon
        if good == 0.0 and self._free(graph, low).undecided == 0:
            while high > rule.affine_gap * low:
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
        return bound_root(graph, replace(region, down=endless, up=endless), tuning=self.tuning.bounds)

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

    def _piece(self, inner: float, outer: float) -> Piece:
        """A shell with what linear bounds say of its slopes."""
        rows, region = self._rows(0.0, inner), self.region(outer)
        linear = bound(rows.graph, region, tuning=self.tuning.bounds).margins(rows.rows[None])
        top = float((-region.lowest(linear.a, linear.shifted() - rows.shift)[0]).max())
        self.meter.nodes += len(rows.rows)
        proven = top / inner * (1.0 + 1e-12) if math.isfinite(top) else math.inf
        return Piece(inner, outer, self.tuning.shells.nodes, proven)
