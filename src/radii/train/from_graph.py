"""From a classifier's graph to a torch module that can be trained further: the same layers, weights as parameters."""

from __future__ import annotations

from radii._torch import torch
from radii.errors import ModelError
from radii.models import convolutions, operators
from radii.models.blocks import Clamp
from radii.models.classifier import Classifier
from radii.models.graph import Node


def trainable(classifier: Classifier) -> torch.nn.Sequential:
    """The logits of a classifier as a chain of torch layers; a graph that is no such chain is refused by name."""
    layers: list[torch.nn.Module] = []
    nodes = classifier.graph.logits.nodes
    for place, node in enumerate(nodes[1:], 1):
        if node.inputs != (place - 1,):
            raise _refused(classifier, node, "branches")
        layer = _layer(node, nodes[place - 1].shape)
        if layer is None:
            raise _refused(classifier, node, type(node.operator).__name__)
        layers += layer
    return torch.nn.Sequential(*layers)


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


def _weighted(layer: torch.nn.Linear | torch.nn.Conv2d, operator: operators.Weighted) -> torch.nn.Module:
    with torch.no_grad():
        layer.weight.copy_(operator.weight)
        if layer.bias is not None and operator.bias is not None:
            layer.bias.copy_(operator.bias)
    return layer


def _refused(classifier: Classifier, node: Node, what: str) -> ModelError:
    return ModelError(
        f"{classifier.name}: expected a chain of dense layers, convolutions and activations to train further, "
        f"got {what} at {node.name or 'a node'}; train it from its own recipe instead"
    )
