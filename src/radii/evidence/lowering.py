"""Lowering, as the checker does it: LeakyRelu, Clip and MaxPool written with ReLU, and what ends the outputs taken off.

    LeakyRelu   s·x + (1 − s)·relu(x)
    Clip        low + relu(x − low) − relu(x − high), or h − relu(h − x) when only the upper end cuts
    MaxPool     max(a, b) = b + relu(a − b), in rounds over the cells of a window

The ReLUs come in the order of the network's operators, so that a neuron is named by (which ReLU, which value of it).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import inf, isinf

from radii._torch import torch
from radii.errors import UnsupportedOperator
from radii.models.convolutions import MaxPool
from radii.models.graph import Graph, Node
from radii.models.operators import Add, Affine, Clip, LeakyRelu, Operator, Relu, Reshape, Scale, Select, Sigmoid, Tanh


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def put(self, operator: Operator | None, inputs: tuple[int, ...], shape: tuple[int, ...]) -> int:
        self.nodes.append(Node(operator, inputs, shape))
        return len(self.nodes) - 1

    def affine(self, at: int, factor: float, shift: float = 0.0, rounded: bool = False) -> int:
        """factor · value + shift; `rounded` when the factor was itself computed."""
        double = torch.float64
        operator = Scale(torch.tensor(factor, dtype=double), torch.tensor(shift, dtype=double), rounded)
        return self.put(operator, (at,), self.nodes[at].shape)

    def relu(self, at: int) -> int:
        return self.put(Relu(), (at,), self.nodes[at].shape)

    def sum(self, a: int, b: int) -> int:
        return self.put(Add(), (a, b), self.nodes[a].shape)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A network of affine operators and ReLUs in float64; its outputs were cut to [low, high] by the original.

    `curved` says that a sigmoid or tanh on the outputs was dropped, which changes no order over the reals.
    """

    graph: Graph
    low: float = -inf
    high: float = inf
    curved: bool = False


def lowered(graph: Graph) -> Lowered:
    """The logits with affine operators and ReLUs alone, and what was taken off their end."""
    source, curved = graph.logits, False
    while isinstance(source.nodes[-1].operator, (Reshape, Sigmoid, Tanh)):
        curved = curved or not isinstance(source.nodes[-1].operator, Reshape)
        source = source.upto(source.nodes[-1].inputs[0])
    last, low, high = source.nodes[-1].operator, -inf, inf
    if isinstance(last, (Relu, Clip)):
        low, high = (last.low, last.high) if isinstance(last, Clip) else (0.0, inf)
        source = source.upto(source.nodes[-1].inputs[0])
    writer = _Writer()
    place: list[int] = []
    for node in source.nodes:
        place.append(_write(writer, node, tuple(place[i] for i in node.inputs)))
    return Lowered(Graph(tuple(writer.nodes)).upto(place[-1]).to(torch.float64), low, high, curved)


def _write(writer: _Writer, node: Node, inputs: tuple[int, ...]) -> int:
    operator = node.operator
    if operator is None or isinstance(operator, (Affine, Relu)):
        return writer.put(operator, inputs, node.shape)
    if isinstance(operator, LeakyRelu):
        part = writer.affine(writer.relu(inputs[0]), 1.0 - operator.slope, rounded=True)
        return writer.sum(writer.affine(inputs[0], operator.slope), part)
    if isinstance(operator, Clip):
        return _clip(writer, operator, inputs[0])
    if isinstance(operator, MaxPool):
        return _pool(writer, operator, inputs[0], node.shape)
    name = type(operator).__name__
    raise UnsupportedOperator(f"evidence: expected affine operators and ReLUs, got {name}", (name,))


def _clip(writer: _Writer, clip: Clip, at: int) -> int:
    if isinf(clip.low):
        return writer.affine(writer.relu(writer.affine(at, -1.0, clip.high)), -1.0, clip.high)
    above = writer.relu(writer.affine(at, 1.0, -clip.low))
    if isinf(clip.high):
        return writer.affine(above, 1.0, clip.low)
    beyond = writer.relu(writer.affine(at, 1.0, -clip.high))
    return writer.affine(writer.sum(above, writer.affine(beyond, -1.0)), 1.0, clip.low)


def _pool(writer: _Writer, pool: MaxPool, at: int, shape: tuple[int, ...]) -> int:
    cells = [_cell(writer, pool, at, shape, offset) for offset in product(*(range(k) for k in pool.kernel))]
    while len(cells) > 1:
        rest = cells[len(cells) - len(cells) % 2 :]
        pairs = zip(cells[::2], cells[1::2])
        cells = [writer.sum(b, writer.relu(writer.sum(a, writer.affine(b, -1.0)))) for a, b in pairs] + rest
    return cells[0]


def _cell(writer: _Writer, pool: MaxPool, at: int, shape: tuple[int, ...], offset: tuple[int, ...]) -> int:
    """One cell of every window; one that lies in the padding is replaced by a cell of the same window that does not."""
    for axis, step in enumerate(offset):
        stride, gap, size = pool.stride[axis], pool.dilation[axis], writer.nodes[at].shape[axis + 1]
        index = []
        for window in range(shape[axis + 1]):
            corner = window * stride - pool.pads[axis]
            inside = [p for k in range(pool.kernel[axis]) if 0 <= (p := corner + k * gap) < size]
            wanted = corner + step * gap
            index.append(wanted if wanted in inside else inside[0])
        old = writer.nodes[at].shape
        at = writer.put(Select(torch.tensor(index), axis + 1), (at,), (*old[: axis + 1], len(index), *old[axis + 2 :]))
    return at
