"""From a classifier's graph to a torch module that can be trained further: the same layers, weights as parameters."""

from __future__ import annotations

from collections.abc import Sequence

from radii._torch import torch
from radii.errors import ModelError
from radii.models import convolutions, operators
from radii.models.blocks import Branches, Clamp, Scale
from radii.models.classifier import Classifier
from radii.models.graph import Node


def trainable(classifier: Classifier) -> torch.nn.Sequential:
    """The logits of a classifier as torch layers; preprocessing and other scales stay constant.

    A graph with operators or branches that training layers cannot express is refused by name.
    """
    nodes = classifier.graph.logits.nodes
    try:
        return _chain(nodes, len(nodes) - 1, 0)
    except _Unknown as error:
        raise ModelError(
            f"{classifier.name}: expected dense layers, convolutions, pooling, activations and sums of two branches to "
            f"train further, got {error}; train it from its own recipe instead"
        ) from None


class _Unknown(Exception):
    """What no training layer expresses."""


def _chain(nodes: Sequence[Node], place: int, stop: int) -> torch.nn.Sequential:
    """The layers from node `stop` to node `place`."""
    layers: list[torch.nn.Module] = []
    while place > stop:
        node = nodes[place]
        if isinstance(node.operator, operators.Add) and len(node.inputs) == 2:
            both = [_before(nodes, one) for one in node.inputs]
            meeting = max(both[0] & both[1])
            layers.append(Branches(*(_chain(nodes, one, meeting) for one in node.inputs)))
            place = meeting
            continue
        (before,) = node.inputs if len(node.inputs) == 1 else (-1,)
        made = None if before < 0 else _layer(node, nodes[before].shape)
        if made is None:
            raise _Unknown(f"{type(node.operator).__name__} at {node.name or 'a node'}")
        layers += reversed(made)
        place = before
    if place < stop:
        raise _Unknown(f"branches that share a part at {nodes[stop].name or 'a node'}")
    return torch.nn.Sequential(*reversed(layers))


def _before(nodes: Sequence[Node], place: int) -> set[int]:
    """A node and all that it depends on."""
    found, remaining = set[int](), [place]
    while remaining:
        one = remaining.pop()
        if one not in found:
            found.add(one)
            remaining += nodes[one].inputs
    return found


def _layer(node: Node, before: tuple[int, ...]) -> list[torch.nn.Module] | None:
    """The layers of a node; an empty list where there is nothing to compute, None where torch has none like it."""
    match node.operator:
        case operators.Dense() as one if len(before) == 1:
            return [_weighted(torch.nn.Linear(one.weight.shape[1], one.weight.shape[0], one.bias is not None), one)]
        case convolutions.Conv() as one if len(before) == 3 and one.pads[:2] == one.pads[2:]:
            after, inside, h, w = one.weight.shape
            (a, b), (p, q), (c, d) = one.stride, one.pads[:2], one.dilation
            made = torch.nn.Conv2d(
                inside * one.groups, after, (h, w), (a, b), (p, q), (c, d), one.groups, one.bias is not None
            )
            return [_weighted(made, one)]
        case convolutions.MaxPool() as one if _pools(one, before):
            return [
                torch.nn.MaxPool2d(
                    _two(one.kernel), _two(one.stride), _two(one.pads), _two(one.dilation), False, one.ceil
                )
            ]
        case convolutions.AveragePool() as one if _pools(one, before):
            return [torch.nn.AvgPool2d(_two(one.kernel), _two(one.stride), _two(one.pads), one.ceil, one.include_pad)]
        case operators.Scale() as one:
            given = (
                torch.ones(()) if one.scale is None else one.scale,
                torch.zeros(()) if one.shift is None else one.shift,
            )
            return [Scale(*(value.to(torch.float32) for value in given))]
        case operators.Reshape() if node.shape == before:
            return []
        case operators.Reshape() if len(node.shape) == 1:
            return [torch.nn.Flatten()]
        case operators.Relu():
            return [torch.nn.ReLU()]
        case operators.LeakyRelu() as one:
            return [torch.nn.LeakyReLU(one.slope)]
        case operators.Clip() as one:
            return [Clamp(one.low, one.high)]
        case operators.Sigmoid():
            return [torch.nn.Sigmoid()]
        case operators.Tanh():
            return [torch.nn.Tanh()]
    return None


def _pools(one: convolutions.MaxPool | convolutions.AveragePool, before: tuple[int, ...]) -> bool:
    """Whether torch pools so: two dimensions, the same padding on both sides, at most half a window."""
    same = one.pads[:2] == one.pads[2:] and all(2 * pad <= size for pad, size in zip(one.pads, one.kernel))
    return len(before) == 3 and len(one.kernel) == 2 and same


def _two(values: Sequence[int]) -> tuple[int, int]:
    return values[0], values[1]


def _weighted(layer: torch.nn.Linear | torch.nn.Conv2d, operator: operators.Weighted) -> torch.nn.Module:
    with torch.no_grad():
        layer.weight.copy_(operator.weight)
        if layer.bias is not None and operator.bias is not None:
            layer.bias.copy_(operator.bias)
    return layer
