"""Lowering: a network rewritten so that few activations are left: ReLU, and Tanh and products where there are any.

    LeakyRelu   s·x + (1 − s)·relu(x)           the linear relaxation loses nothing by this
    Clip        low + relu(x − low) − relu(x − high)
    MaxPool     max(a, b) = b + relu(a − b), pairwise over the window
    Sigmoid     ½ + ½·tanh(x/2)                 halves are exact
    Product     of operands of one shape: broadcasting is written out

So bounds of piecewise-linear networks need to know ReLU only; `is_smooth` says which networks are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from radii._torch import torch
from radii.errors import UnsupportedOperator
from radii.models.convolutions import MaxPool
from radii.models.graph import Graph, Node
from radii.models.operators import (
    Add,
    Affine,
    Clip,
    LeakyRelu,
    Operator,
    Product,
    Relu,
    Reshape,
    Scale,
    Select,
    Shape,
    Sigmoid,
    Tanh,
)

MOST_CELLS = 5_000  # of the windows of all max-poolings: each becomes some nodes of the lowered graph


@dataclass
class _Builder:
    nodes: list[Node] = field(default_factory=list)

    def add(self, operator: Operator | None, inputs: tuple[int, ...], shape: Shape, name: str = "") -> int:
        self.nodes.append(Node(operator, inputs, shape, name))
        return len(self.nodes) - 1

    def scaled(self, value: int, factor: float, shift: float = 0.0) -> int:
        scale = None if factor == 1.0 else torch.tensor(factor, dtype=torch.float64)
        offset = None if shift == 0.0 else torch.tensor(shift, dtype=torch.float64)
        if scale is None and offset is None:
            return value
        return self.add(Scale(scale, offset), (value,), self.nodes[value].shape)

    def relu(self, value: int, name: str) -> int:
        return self.add(Relu(), (value,), self.nodes[value].shape, name)

    def sum(self, a: int, b: int) -> int:
        return self.add(Add(), (a, b), self.nodes[a].shape)


def lower(graph: Graph) -> Graph:
    """The graph of the logits with affine operators, ReLU, Tanh and Product only."""
    source = graph.logits
    refuse_unsupported(source)
    builder = _Builder()
    place: list[int] = []
    for node in source.nodes:
        inputs = tuple(place[i] for i in node.inputs)
        place.append(_lower_node(builder, node, inputs))
    if place[-1] != len(builder.nodes) - 1:
        builder.add(Reshape(source.output_shape), (place[-1],), source.output_shape)
    return Graph(tuple(builder.nodes))


def _lower_node(builder: _Builder, node: Node, inputs: tuple[int, ...]) -> int:
    operator = node.operator
    if isinstance(operator, LeakyRelu):
        positive = builder.scaled(builder.relu(inputs[0], node.name), 1.0 - operator.slope)
        return builder.sum(builder.scaled(inputs[0], operator.slope), positive)
    if isinstance(operator, Clip):
        return _lower_clip(builder, operator, inputs[0], node.name)
    if isinstance(operator, MaxPool):
        return _lower_maxpool(builder, operator, inputs[0], node)
    if isinstance(operator, Sigmoid):
        half = builder.add(Tanh(), (builder.scaled(inputs[0], 0.5),), node.shape, node.name)
        return builder.scaled(half, 0.5, 0.5)
    if isinstance(operator, Product):
        inputs = tuple(_expand(builder, i, node.shape) for i in inputs)
    return builder.add(operator, inputs, node.shape, node.name)


def _expand(builder: _Builder, value: int, shape: Shape) -> int:
    """The value repeated along the axes that broadcasting stretches."""
    current = builder.nodes[value].shape
    if len(current) < len(shape):
        current = (1,) * (len(shape) - len(current)) + current
        value = builder.add(Reshape(current), (value,), current)
    for axis, (have, want) in enumerate(zip(current, shape)):
        if have != want:
            current = (*current[:axis], want, *current[axis + 1 :])
            value = builder.add(Select(torch.zeros(want, dtype=torch.int64), axis), (value,), current)
    return value


def _lower_clip(builder: _Builder, clip: Clip, value: int, name: str) -> int:
    if math.isinf(clip.low):  # min(x, h) = h − relu(h − x)
        return builder.scaled(builder.relu(builder.scaled(value, -1.0, clip.high), name), -1.0, clip.high)
    above = builder.relu(builder.scaled(value, 1.0, -clip.low), name)
    if math.isinf(clip.high):
        return builder.scaled(above, 1.0, clip.low)
    beyond = builder.relu(builder.scaled(value, 1.0, -clip.high), name)
    return builder.scaled(builder.sum(above, builder.scaled(beyond, -1.0)), 1.0, clip.low)


def _lower_maxpool(builder: _Builder, pool: MaxPool, value: int, node: Node) -> int:
    spatial = len(pool.kernel)
    source = builder.nodes[value].shape
    out = node.shape[1:]
    begin = pool.pads[:spatial]
    # Positions of the window's corner and of each offset, per axis; -1 marks padding, which never wins: it is
    # replaced by another cell of the same window.
    offsets: list[tuple[int, ...]] = [()]
    for k in pool.kernel:
        offsets = [(*o, i) for o in offsets for i in range(k)]
    parts = []
    for offset in offsets:
        part = value
        for axis in range(spatial):
            index = _window_index(pool, axis, offset[axis], out[axis], source[axis + 1], begin[axis])
            shape = list(builder.nodes[part].shape)
            shape[axis + 1] = len(index)
            part = builder.add(Select(torch.tensor(index), axis + 1), (part,), tuple(shape))
        parts.append(part)
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [_maximum(builder, pair[0], pair[1], node.name) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _window_index(pool: MaxPool, axis: int, offset: int, count: int, size: int, begin: int) -> list[int]:
    index = []
    for o in range(count):
        first = o * pool.stride[axis] - begin
        cells = [first + k * pool.dilation[axis] for k in range(pool.kernel[axis])]
        inside = [cell for cell in cells if 0 <= cell < size]
        wanted = first + offset * pool.dilation[axis]
        index.append(wanted if 0 <= wanted < size else inside[0])
    return index


def _maximum(builder: _Builder, a: int, b: int, name: str) -> int:
    difference = builder.sum(a, builder.scaled(b, -1.0))
    return builder.sum(b, builder.relu(difference, name))


def is_smooth(graph: Graph) -> bool:
    """Whether a graph has operators that are not piecewise linear: Sigmoid, Tanh or products of two values."""
    return any(isinstance(node.operator, (Sigmoid, Tanh, Product)) for node in graph.logits.nodes)


def unbounded(graph: Graph) -> tuple[str, ...]:
    """The operators of a graph that bounds cannot handle, by name and node."""
    allowed = (Affine, Relu, LeakyRelu, Clip, MaxPool, Sigmoid, Tanh, Product)
    nodes = [n for n in graph.logits.nodes if n.operator is not None]
    pools = [n for n in nodes if isinstance(n.operator, MaxPool)]
    cells = sum(math.prod(n.operator.kernel) for n in pools if isinstance(n.operator, MaxPool))
    bad = [n for n in nodes if not isinstance(n.operator, allowed)] + (pools if cells > MOST_CELLS else [])
    return tuple(f"{type(n.operator).__name__} (node {n.name or '?'})" for n in bad)


def refuse_unsupported(graph: Graph) -> None:
    """Raises `UnsupportedOperator` naming every operator that bounds cannot handle."""
    bad = unbounded(graph)
    if bad:
        raise UnsupportedOperator(
            "bounds: expected affine operators, ReLU, LeakyRelu, Clip, Sigmoid, Tanh, products and MaxPool (windows of "
            f"{MOST_CELLS} cells in all), got "
            f"{', '.join(bad)}; attack-only results are still to be had (verifier: attack)",
            tuple(name.split()[0] for name in bad),
        )
