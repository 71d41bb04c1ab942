"""Margins: what classification asks, as rows over a lowered graph's outputs that must stay positive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from radii.bounds.lowered import lower
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import Graph
from radii.models.operators import Relu, Reshape
from radii.problem import Classification, Property


@dataclass(frozen=True, eq=False)
class Margins:
    """A lowered float64 graph and the rows·outputs > shift that robustness means."""

    graph: Graph
    rows: Tensor  # (rows, outputs)
    shift: Tensor  # (rows,)


def lowered(classifier: Classifier, device: torch.device | str = "cpu") -> tuple[Graph, bool]:
    """The lowered graph in float64, without a final ReLU, and whether there was one."""
    cache: dict[str, tuple[Graph, bool]] = classifier.__dict__.setdefault("_lowered", {})
    key = str(device)
    if key not in cache:
        graph = lower(classifier.graph)
        cut = _final_relu(graph)
        if cut is not None:
            graph = graph.upto(cut)
        cache[key] = (graph.to(torch.float64, device), cut is not None)
    return cache[key]


def _final_relu(graph: Graph) -> int | None:
    """The node before a ReLU on the outputs themselves, None when the network does not end in one."""
    index = len(graph.nodes) - 1
    while isinstance(graph.nodes[index].operator, Reshape):
        index = graph.nodes[index].inputs[0]
    node = graph.nodes[index]
    return node.inputs[0] if isinstance(node.operator, Relu) else None


def margins(classifier: Classifier, label: int, property: Property, device: torch.device | str = "cpu") -> Margins:
    """The rows of a classification property.

    With a ReLU on the outputs, relu(a) ≤ relu(b) means a ≤ b or a ≤ 0: the ReLU is dropped and a ≤ 0 is one more way to
    be broken, which is exact and much tighter than relaxing it.
    """
    if not isinstance(property, Classification):
        raise InputError(f"native verifier: expected a classification property, got {property.kind}")
    graph, rectified = lowered(classifier, device)
    targets = property.targets(classifier.classes, label)
    unit = torch.eye(classifier.classes, dtype=torch.float64, device=device)
    rows = torch.stack([unit[label] - unit[t] for t in targets])
    if rectified:
        rows = torch.cat([rows, unit[label : label + 1]])
    return Margins(graph, rows, rows.new_zeros(len(rows)))
