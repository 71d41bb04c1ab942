"""Network: the values of a lowered graph on a ball, written over the neurons that may take both signs.

Going through the graph once, every ReLU's input is enclosed in intervals, and whatever is not decided by them becomes
a row

    value = a·δ + b + m·relu(z) ± slack        over the undecided neurons z of earlier ReLUs.

Neurons of one sign are linear and vanish in a, b and m. The slack holds all rounding made on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.evidence.ball import Ball
from radii.evidence.rounding import TINY, UP, U, gamma
from radii.models.graph import Graph, Node
from radii.models.operators import Affine, Relu

CHUNK = 2**24  # most coefficients that are held in memory at once


@dataclass(frozen=True, eq=False)
class Rows:
    """Values a·δ + b + m·relu(z), each known up to ±slack."""

    a: Tensor  # (rows, d)
    b: Tensor  # (rows,)
    m: Tensor  # (rows, n)
    slack: Tensor  # (rows,)

    def pick(self, index: Tensor) -> Rows:
        """These rows, repeated and ordered as asked."""
        return Rows(self.a[index], self.b[index], self.m[index], self.slack[index])

    def times(self, sign: Tensor) -> Rows:
        """Each row times its own ±1."""
        return Rows(self.a * sign[:, None], self.b * sign, self.m * sign[:, None], self.slack)

    def minus(self, shift: Tensor) -> Rows:
        """Each row less its own constant."""
        return Rows(self.a, self.b - shift, self.m, (self.slack + 4 * U * (self.b.abs() + shift.abs())) * UP)

    @staticmethod
    def join(parts: list[Rows]) -> Rows:
        """All rows of several groups."""
        return Rows(*(torch.cat([getattr(p, f) for p in parts]) for f in ("a", "b", "m", "slack")))


class Network:
    """Grows node by node; `low`, `high` hold what is known of each node's value, `columns` the undecided neurons."""

    def __init__(self, graph: Graph, ball: Ball) -> None:
        self.graph, self.ball = graph, ball
        edge = TINY + 4 * U * ball.center.abs()
        shape = (1, *graph.input_shape)
        self.low = [(ball.center - ball.down - edge).reshape(shape)]
        self.high = [(ball.center + ball.up + edge).reshape(shape)]
        self.size = [_largest(self.low[0], self.high[0])]
        self.gross = [self.size[0]]
        self.linear: dict[int, Tensor] = {}  # of each ReLU: 1 where it is the identity, 0 where it is 0 or undecided
        self.columns: dict[int, tuple[int, Tensor]] = {}  # of each ReLU: its first column, and which values
        self.width = 0

    def intervals(self, relu: int) -> tuple[Tensor, Tensor]:
        """What is known of a ReLU's input, flat."""
        before = self.graph.nodes[relu].inputs[0]
        return self.low[before].flatten(), self.high[before].flatten()

    def settle(self, relu: int, ends: tuple[Tensor, Tensor], undecided: Tensor) -> None:
        """Takes better ends of a ReLU's input, and the values of it that become columns."""
        before = self.graph.nodes[relu].inputs[0]
        shape = self.low[before].shape
        self.low[before], self.high[before] = ends[0].reshape(shape), ends[1].reshape(shape)
        active = (ends[0] >= 0).to(ends[0].dtype)
        active[undecided] = 0.0
        self.linear[relu] = active
        self.columns[relu] = (self.width, undecided)
        self.width += len(undecided)

    def advance(self) -> None:
        """Encloses the next node."""
        node = self.graph.nodes[len(self.low)]
        low, high = [self.low[i] for i in node.inputs], [self.high[i] for i in node.inputs]
        if isinstance(node.operator, Relu):
            ends = low[0].clamp_min(0.0), high[0].clamp_min(0.0)
            self.gross.append(_largest(*ends))
        else:
            ends = self._through(node, low, high)
        self.low.append(ends[0])
        self.high.append(ends[1])
        self.size.append(_largest(*ends))

    def _through(self, node: Node, low: list[Tensor], high: list[Tensor]) -> tuple[Tensor, Tensor]:
        operator = node.operator
        assert isinstance(operator, Affine)
        absolute = operator.absolute()
        gross = absolute(*(torch.maximum(a.abs(), b.abs()) for a, b in zip(low, high))) * UP
        middle = [0.5 * (a + b) for a, b in zip(low, high)]
        spread = [torch.maximum(b - m, m - a) * (1.0 + 4 * U) for a, b, m in zip(low, high, middle)]
        value, reach = operator(*middle), absolute.linear(*spread)
        lost = 3 * gamma(self._terms(node)) * gross * UP + TINY
        self.gross.append(gross.flatten())
        return value - reach - lost, value + reach + lost

    def _terms(self, node: Node) -> int:
        """The longest sum in the operator or its transpose; a value that is broadcast is summed backwards."""
        assert isinstance(node.operator, Affine)
        return node.operator.terms + max(node.size // self.graph.nodes[i].size for i in node.inputs)

    def rows(self, start: int, wanted: Tensor) -> Rows:
        """wanted · (the value of a node), for `wanted` of shape (rows, size), over the columns known so far."""
        step = max(1, CHUNK // max(node.size for node in self.graph.nodes[: start + 1]))
        parts = [self._rows(start, wanted[i : i + step]) for i in range(0, max(1, len(wanted)), step)]
        return Rows.join(parts)

    def single(self, relu: int, which: Tensor) -> Rows:
        """Single values of a ReLU's input."""
        before = self.graph.nodes[relu].inputs[0]
        step = max(1, CHUNK // max(node.size for node in self.graph.nodes[: before + 1]))
        parts = []
        for i in range(0, max(1, len(which)), step):
            part = which[i : i + step]
            unit = torch.zeros((len(part), self.graph.nodes[before].size), dtype=torch.float64)
            unit[torch.arange(len(part)), part] = 1.0
            parts.append(self._rows(before, unit))
        return Rows.join(parts)

    def _rows(self, start: int, wanted: Tensor) -> Rows:
        count = len(wanted)
        pending = {start: wanted}
        constant, lost = wanted.new_zeros(count), wanted.new_zeros(count)
        m = wanted.new_zeros((count, self.width))

        def send(to: int, part: Tensor) -> None:
            nonlocal lost
            if to in pending:
                part = pending[to] + part
                lost = lost + 2 * U * (part.abs() @ self.size[to])
            pending[to] = part

        for index in range(start, 0, -1):
            a = pending.pop(index, None)
            if a is None:
                continue
            node = self.graph.nodes[index]
            if isinstance(node.operator, Relu):
                first, which = self.columns[index]
                m[:, first : first + len(which)] = a[:, which]
                send(node.inputs[0], a * self.linear[index])
                continue
            assert isinstance(node.operator, Affine)
            shapes = tuple(self.graph.nodes[i].shape for i in node.inputs)
            fixed = node.operator(*(a.new_zeros((1, *shape)) for shape in shapes)).flatten()
            gain = a @ fixed
            constant = constant + gain
            lost = lost + a.abs() @ (gamma(self._terms(node)) * self.gross[index] + gamma(node.size) * fixed.abs())
            lost = lost + 2 * U * constant.abs()
            for i, part in zip(node.inputs, node.operator.adjoint(a.reshape(count, *node.shape), shapes)):
                send(i, part.reshape(count, self.graph.nodes[i].size))
        a = pending.get(0, wanted.new_zeros((count, self.graph.nodes[0].size)))
        center = self.ball.center
        lost = lost + gamma(len(center)) * (a.abs() @ center.abs() + constant.abs()) + TINY
        return Rows(a, constant + a @ center, m, lost * UP)


def _largest(low: Tensor, high: Tensor) -> Tensor:
    return torch.maximum(low.abs(), high.abs()).flatten() * UP
