"""Interval bounds: every value of the network enclosed over a batch of balls, rounding included."""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.region import Region
from radii.bounds.rounding import TINY, UP, gamma
from radii.models.graph import Graph, Node
from radii.models.operators import Affine, Product, Relu, Sigmoid, Tanh


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Lower and upper ends of every node's value, each (batch, *shape) in float64."""

    low: list[Tensor]
    high: list[Tensor]

    def magnitude(self, index: int) -> Tensor:
        """An upper bound on |value| of a node, flat: (batch, size)."""
        return torch.maximum(self.low[index].abs(), self.high[index].abs()).flatten(1) * UP


def enclose(graph: Graph, region: Region) -> Enclosure:
    """Interval propagation through a lowered graph in float64."""
    low, high = (list(ends) for ends in zip(of_input(graph, region)))
    for node in graph.nodes[1:]:
        a, b = through(node, [low[i] for i in node.inputs], [high[i] for i in node.inputs])
        low.append(a)
        high.append(b)
    return Enclosure(low, high)


def of_input(graph: Graph, region: Region) -> tuple[Tensor, Tensor]:
    """The box around the balls, rounded outwards, in the input's shape."""
    down, up = region.box()
    shape = (region.center.shape[0], *graph.input_shape)
    slack = TINY + 2.0**-50 * region.center.abs()
    return (region.center - down - slack).reshape(shape), (region.center + up + slack).reshape(shape)


def through(node: Node, low: list[Tensor], high: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The ends of a node's value from the ends of its inputs."""
    operator = node.operator
    if isinstance(operator, Relu):
        return low[0].clamp_min(0.0), high[0].clamp_min(0.0)
    if isinstance(operator, (Sigmoid, Tanh)):
        return operator(low[0]) - 2.0**-48, operator(high[0]) + 2.0**-48
    if isinstance(operator, Product):
        ends = torch.stack([low[0] * low[1], low[0] * high[1], high[0] * low[1], high[0] * high[1]])
        slack = ends.abs().amax(0) * 2.0**-50 + TINY
        if node.inputs[0] == node.inputs[1]:  # a square
            both = (low[0] < 0) & (high[0] > 0)
            least = torch.where(both, torch.zeros_like(slack), torch.minimum(ends[0], ends[3]) - slack)
            return least, ends.amax(0) + slack
        return ends.amin(0) - slack, ends.amax(0) + slack
    if not isinstance(operator, Affine):
        raise TypeError(f"{type(operator).__name__} is not a lowered operator")
    middle = [0.5 * (a + b) for a, b in zip(low, high)]
    spread = [torch.maximum(b - m, m - a) * UP for a, b, m in zip(low, high, middle)]
    value = operator(*middle)
    absolute = operator.absolute()
    reach = absolute.linear(*spread)
    charge = gamma(operator.terms) * absolute(*(m.abs() + s for m, s in zip(middle, spread))) * UP
    return value - reach - charge - TINY, value + reach + charge + TINY
