"""Halving: which input of a box to halve, by how much of the relaxation's error it causes.

A ReLU that may take both signs loses up to the lift of its upper line, weighted by its coefficient in the bound. Each
input causes the share of that loss in which it moves the neuron. Halving by the bound's own coefficients instead looks
natural and is poor: where the network is steep but nearly linear they are large and nothing is lost. On ACAS Xu
property 1 it leaves open, after thousands of boxes, what this closes in hundreds. Nothing here is part of a proof.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.bounds.root import Root
from radii.models.graph import Graph
from radii.models.operators import Affine, Relu


def losses(root: Root, weights: Tensor, room: Tensor) -> Tensor:
    """The loss that each input causes in the bound of weights·outputs: (boxes, d) for boxes of widths `room`."""
    graph, boxes = root.graph, len(room)
    moves = _moves(root, room)
    pending: dict[int, Tensor] = {len(graph.nodes) - 1: weights}
    result = torch.zeros_like(room)
    for index in range(len(graph.nodes) - 1, 0, -1):
        v = pending.pop(index, None)
        if v is None:
            continue
        node = graph.nodes[index]
        if index in moves:
            lines, moved = root.lines[index], moves[index].abs()
            share = moved / moved.sum(1, keepdim=True).clamp_min(1e-300)
            result = result + torch.matmul(share, (v.abs() * lines.offset)[..., None])[..., 0]
            parts: tuple[Tensor, ...] = (v * torch.where(v > 0, lines.slope_low, lines.slope_high),)
        else:
            assert isinstance(node.operator, Affine)
            shapes = tuple(graph.nodes[i].shape for i in node.inputs)
            parts = node.operator.adjoint(v.reshape(boxes, *node.shape), shapes)
        for i, part in zip(node.inputs, parts):
            flat = part.reshape(boxes, graph.nodes[i].size)
            pending[i] = pending[i] + flat if i in pending else flat
    return torch.nan_to_num(result, nan=0.0, posinf=0.0, neginf=0.0)


def _moves(root: Root, room: Tensor) -> dict[int, Tensor]:
    """How far each input's width moves every ReLU's argument along the upper lines: (boxes, d, size) a ReLU node."""
    graph: Graph = root.graph
    boxes, d = room.shape
    values = [torch.diag_embed(room).reshape(boxes * d, *graph.nodes[0].shape)]
    moves: dict[int, Tensor] = {}
    for index, node in enumerate(graph.nodes[1:], start=1):
        if isinstance(node.operator, Relu):
            moves[index] = values[node.inputs[0]].reshape(boxes, d, node.size)
            values.append((moves[index] * root.lines[index].slope_high[:, None]).reshape(boxes * d, *node.shape))
        else:
            assert isinstance(node.operator, Affine)
            values.append(node.operator.linear(*(values[i] for i in node.inputs)))
    return moves
