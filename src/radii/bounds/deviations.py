"""Deviations: every value of a network measured from the one at the centre of its ball.

Float32 rounds in proportion to the numbers it adds up. Values of a network are of order 1 on the smallest ball, but how
far they are from their values at the centre shrinks with it. So passes in float32 bound deviations: y = L·x + c becomes
y − y₀ = L·(x − x₀), where the reference y₀ is a float64 number and may miss L·x₀ + c by its rounding, and relu(z) −
relu(z₀) lies between two lines through z − z₀ (`ReluLines.measured_from`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from radii._torch import Tensor, torch
from radii.bounds.activations import ReluLines
from radii.bounds.backward import Linear, Magnitudes, backward
from radii.bounds.rounding import TINY, UP, gamma
from radii.models.graph import Graph
from radii.models.operators import Affine


@dataclass(frozen=True, eq=False)
class Deviations:
    """References of a batch of balls, and how far values are from them; known as far as they were asked for."""

    graph: Graph
    center: Tensor  # (batch, inputs)
    low: list[Tensor]  # ends of every node's value, (batch, *shape), as far as they are known
    high: list[Tensor]
    reference: list[Tensor] = field(default_factory=list)  # (batch, *shape)
    magnitudes: Magnitudes = field(default_factory=lambda: Magnitudes([], [], []))

    def rows(self, index: Tensor) -> Deviations:
        """The same for these images of the batch."""
        low, high, at = ([part[index] for part in parts] for parts in (self.low, self.high, self.reference))
        return Deviations(self.graph, self.center[index], low, high, at, self.magnitudes.rows(index))

    def coarse(self, start: int, lines: dict[int, ReluLines]) -> Coarse:
        """What passes in float32 from a node take, given the lines of every ReLU before it."""
        self._reach(start)
        nodes, single = self.graph.nodes, torch.float32
        met = {
            k: v.measured_from(self.reference[nodes[k].inputs[0]].flatten(1), single)
            for k, v in lines.items()
            if k <= start
        }
        at = self.reference[start].flatten(1)
        return Coarse(self.graph.to(single, self.center.device), start, met, self.magnitudes.to(single), at)

    def _reach(self, last: int) -> None:
        """Goes on to a node."""
        sizes = self.magnitudes
        assert sizes.missed is not None
        for index in range(len(self.reference), last + 1):
            node, low, high = self.graph.nodes[index], self.low[index], self.high[index]
            inputs = [self.reference[i] for i in node.inputs]
            at = self.center.reshape(low.shape) if node.operator is None else node.operator(*inputs)
            far = torch.maximum((high - at).abs(), (at - low).abs()) * UP + TINY
            product, missed = far, torch.zeros_like(far)
            if isinstance(node.operator, Affine):
                absolute = node.operator.absolute()
                spread = [sizes.value[i].reshape(part.shape) for i, part in zip(node.inputs, inputs)]
                product = absolute.linear(*spread) * UP
                missed = gamma(node.operator.terms) * absolute(*(part.abs() for part in inputs)) * UP + TINY
            self.reference.append(at)
            for known, part in zip((sizes.value, sizes.product, sizes.missed), (far, product, missed)):
                known.append(part.flatten(1))


@dataclass(frozen=True, eq=False)
class Coarse:
    """A graph up to a node in float32, its lines and magnitudes measured from references; `at` is the node's own."""

    graph: Graph
    start: int
    lines: dict[int, ReluLines]
    magnitudes: Magnitudes
    at: Tensor

    def backward(self, rows: Tensor, images: Tensor) -> Linear:
        """Bounds rows·value of the node on some balls from below by linear functions of x less its centre, in float64.

        `rows` are (images, rows, size) in float64; what their rounding changes is charged.
        """
        lines, sizes = {k: v.rows(images) for k, v in self.lines.items()}, self.magnitudes.rows(images)
        thin = rows.to(torch.float32)
        found = backward(self.graph, self.start, thin, lines, sizes)
        at, far, c = self.at[images][..., None], sizes.value[self.start].double()[..., None], found.c.double()
        gross = torch.matmul(rows.abs(), at.abs()) + c.abs()[..., None]
        rounded = torch.matmul((rows - thin.double()).abs(), far)
        error = found.error.double() + (gamma(at.shape[1] + 4) * gross + rounded)[..., 0] + TINY
        level = torch.matmul(rows, at)[..., 0]
        return Linear(found.a.double(), c + level, error * UP, {})
