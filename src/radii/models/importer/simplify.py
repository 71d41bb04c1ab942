"""Small simplifications that change no value: biases join their product, chains of reshapes become one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from radii._torch import Tensor
from radii.models.arrays import as_constant
from radii.models.convolutions import Conv, ConvTranspose
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Reshape, Scale

Shape = tuple[int, ...]


def simplify(graph: Graph) -> Graph:
    """The same function with fewer nodes."""
    uses = Counter(i for node in graph.nodes for i in node.inputs)
    nodes: list[Node] = []
    place: list[int] = []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(place[i] for i in node.inputs))
        before = nodes[node.inputs[0]] if node.inputs else None
        if before is not None and isinstance(node.operator, Reshape):
            if isinstance(before.operator, Reshape):
                node = replace(node, inputs=before.inputs)
            if nodes[node.inputs[0]].shape == node.shape:
                place.append(node.inputs[0])
                continue
        joined = None if before is None else _with_bias(before, node)
        if joined is not None and node.inputs[0] == len(nodes) - 1 and uses[_original(place, node.inputs[0])] == 1:
            nodes[-1] = joined
            place.append(len(nodes) - 1)
            continue
        nodes.append(node)
        place.append(len(nodes) - 1)
    return replace(graph, nodes=tuple(nodes)).upto(place[-1])


def _original(place: list[int], new: int) -> int:
    """The last old node that became the new one: whose uses decide whether it may change."""
    return max(old for old, now in enumerate(place) if now == new)


def _with_bias(before: Node, node: Node) -> Node | None:
    """The product with the constant that is added after it as its bias, None where that does not fit."""
    product, added = before.operator, node.operator
    if not isinstance(added, Scale) or added.scale is not None or added.shift is None or added.rounded or added.steps:
        return None
    if not isinstance(product, (Dense, Conv, ConvTranspose)) or product.bias is not None:
        return None
    axis = product.axis % len(before.shape) if isinstance(product, Dense) else 0
    bias = _along(added.shift, axis, before.shape)
    if bias is None:
        return None
    return Node(replace(product, bias=bias), before.inputs, before.shape, before.name)


def _along(shift: Tensor, axis: int, shape: Shape) -> Tensor | None:
    full = np.reshape(np.asarray(shift), [1] * (len(shape) - shift.ndim) + list(shift.shape))
    if any(n != 1 for a, n in enumerate(full.shape) if a != axis):
        return None
    return as_constant(np.broadcast_to(full.reshape(-1), (shape[axis],)).copy())
