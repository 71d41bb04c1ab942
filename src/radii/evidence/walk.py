"""Walk: the network gone through layer by layer, what is proven of early layers used in the later ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from radii._torch import Tensor, torch
from radii._torch import functional as F
from radii.evidence.ball import Ball
from radii.evidence.hull import Hulls
from radii.evidence.network import Network, Rows
from radii.evidence.proof import NODES, Forest, lowest
from radii.evidence.rounding import U
from radii.evidence.sweep import Charged, Neurons, rule, sweep
from radii.models.graph import Graph
from radii.models.operators import Relu


@dataclass(eq=False)
class Layer:
    """A ReLU whose input is being bounded: the ends of all its values, and rows of those in question."""

    relu: int
    low: Tensor  # (size,)
    high: Tensor
    which: Tensor  # (rows,) the values in question, in order
    rows: Rows

    def place(self, values: Tensor) -> Tensor:
        """The rows of these values, which must be in question."""
        return torch.searchsorted(self.which, values)

    @property
    def undecided(self) -> Tensor:
        """The values that may take both signs."""
        return _open(self.low, self.high)


class Walk:
    """One network on one ball; call `open` and `close` for every ReLU in order, then `outputs`."""

    def __init__(self, graph: Graph, ball: Ball) -> None:
        self.graph, self.ball = graph, ball
        self.network = Network(graph, ball)
        self._rows: list[Rows] = []
        self._ends: list[tuple[Tensor, Tensor]] = []
        self.neurons = self._neurons()

    @property
    def relus(self) -> list[int]:
        """The nodes of the ReLUs, in order."""
        return [i for i, node in enumerate(self.graph.nodes) if isinstance(node.operator, Relu)]

    def open(self, relu: int, wanted: Tensor | None = None) -> Layer:
        """Bounds the input of a ReLU by intervals and then, where they leave the sign open, by lines."""
        while len(self.network.low) < relu:
            self.network.advance()
        low, high = (end.clone() for end in self.network.intervals(relu))
        which = _open(low, high)
        if wanted is not None:
            which = _union(which, wanted, len(low))
        layer = Layer(relu, low, high, which, self.network.single(relu, which))
        asked = self.neurons.charged(layer.rows)
        for sign, ends in ((1.0, layer.low), (-1.0, layer.high)):
            found = self._lines(asked.times(torch.full_like(asked.charge, sign)))
            old = sign * ends[which]
            ends[which] = sign * torch.where(found > old, found, old)
        return layer

    def tighten(self, layer: Layer, ends: Tensor) -> None:
        """Bounds ends of values in question through hulls: 2·value for the lower end, 2·value + 1 for the upper one."""
        found = self.through_hulls(layer, ends)
        for turn, target in enumerate((layer.low, layer.high)):
            mine = ends % 2 == turn
            at, sign = ends[mine] // 2, 1.0 - 2.0 * turn
            old = sign * target[at]
            target[at] = sign * torch.where(found[mine] > old, found[mine], old)

    def through_hulls(self, layer: Layer, ends: Tensor) -> Tensor:
        """Lower bounds of z, or −z at upper ends, by hulls of first-layer neurons."""
        asked = self.neurons.charged(layer.rows.pick(layer.place(ends // 2))).times(1.0 - 2.0 * (ends % 2).double())
        return self._lines(asked, Hulls.of(self.neurons, self.ball))

    def _lines(self, asked: Charged, hulls: Hulls | None = None) -> Tensor:
        """Least values of rows by lines that the rule chooses; with `hulls`, by those above first-layer neurons."""
        net, n = self.neurons, len(self.neurons.low)
        bounded = partial(sweep, net) if hulls is None else hulls.sweep
        slopes = rule(net.low, net.high)
        step = max(1, NODES // max(1, n, asked.rows.a.shape[1]))
        found = []
        for i in range(0, len(asked.charge), step):
            part = torch.arange(i, min(i + step, len(asked.charge)))
            ends = net.low.expand(len(part), n), net.high.expand(len(part), n)
            found.append(bounded(asked.pick(part), ends, slopes.expand(len(part), n)).least(self.ball))
        return torch.cat(found) if found else asked.charge

    def prove(self, layer: Layer, values: Tensor, side: Tensor, threshold: Tensor, forest: Forest) -> None:
        """Takes in what trees prove: z > threshold (side 0), z < threshold (side 1), or as much of it as they show."""
        sign = 1.0 - 2.0 * side.to(torch.float64)
        rows = layer.rows.pick(layer.place(values)).times(sign).minus(sign * threshold)
        shown = lowest(self.neurons, rows, forest).clamp_max(0.0)
        found = sign * threshold + shown
        found = found - 4 * U * (threshold.abs() + shown.abs())
        for chosen, ends, turn in ((side == 0, layer.low, 1.0), (side == 1, layer.high, -1.0)):
            at, new = values[chosen], found[chosen]
            best = torch.full_like(ends, -torch.inf).scatter_reduce(0, at, new, "amax")
            old = turn * ends
            ends.copy_(turn * torch.where(best > old, best, old))

    def close(self, layer: Layer, undecided: Tensor) -> None:
        """Ends with a layer: `undecided` values of it are columns from now on; all others must have one sign."""
        self.network.settle(layer.relu, (layer.low, layer.high), undecided)
        self._rows.append(layer.rows.pick(layer.place(undecided)))
        self._ends.append((layer.low[undecided], layer.high[undecided]))
        self.neurons = self._neurons()

    def outputs(self, wanted: Tensor) -> Rows:
        """wanted · outputs, for `wanted` of shape (rows, outputs)."""
        while len(self.network.low) < len(self.graph.nodes):
            self.network.advance()
        return self.network.rows(len(self.graph.nodes) - 1, wanted)

    def _neurons(self) -> Neurons:
        n, d = self.network.width, len(self.ball.center)
        zeros = torch.zeros((0, n), dtype=torch.float64)
        nothing = Rows(torch.zeros((0, d), dtype=torch.float64), zeros.new_zeros(0), zeros, zeros.new_zeros(0))
        wide = [Rows(r.a, r.b, F.pad(r.m, (0, n - r.m.shape[1])), r.slack) for r in self._rows]
        starts = [0]
        for part in self._rows:
            starts.append(starts[-1] + len(part.b))
        low, high = (torch.cat([zeros.new_zeros(0), *(e[side] for e in self._ends)]) for side in (0, 1))
        blocks = tuple(pair for pair in pairwise(starts) if pair[0] < pair[1])
        return Neurons.of(Rows.join([nothing, *wide]), blocks, low, high, self.ball)


def _open(low: Tensor, high: Tensor) -> Tensor:
    """The values that no end gives a sign to; an end that is no number gives none."""
    return (~((low >= 0) | (high <= 0))).nonzero()[:, 0]


def _union(a: Tensor, b: Tensor, size: int) -> Tensor:
    """The numbers below `size` that are in one or the other, in order."""
    found = torch.zeros(size, dtype=torch.bool)
    found[a] = True
    found[b] = True
    return found.nonzero()[:, 0]
