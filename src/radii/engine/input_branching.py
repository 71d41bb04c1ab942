"""Input branching: which input of a box to halve, by how much of the relaxation's error it causes.

A ReLU that may take both signs loses up to the lift of its upper line, weighted by its coefficient in the bound. Each
input causes the share of that loss in which it moves the neuron. Halving by the bound's own coefficients instead looks
natural and is poor: where the network is steep but nearly linear they are large and nothing is lost. On ACAS Xu
property 1 it leaves open, after thousands of boxes, what this closes in hundreds. Nothing here is part of a proof.
"""

from __future__ import annotations

from radii._torch import Tensor, torch
from radii.bounds.intermediate import Root
from radii.bounds.intermediate_curves import Relaxed
from radii.bounds.operands import Slants
from radii.models.graph import Graph
from radii.models.operators import Affine, Relu


def losses(root: Root | Relaxed, weights: Tensor, room: Tensor) -> Tensor:
    """The loss that each input causes in the bound of weights·outputs: (boxes, d) for boxes of widths `room`."""
    if isinstance(root, Relaxed):
        return _curved(root, weights, room)
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
    """How far each input's width moves every ReLU's argument along the upper lines: (boxes, d, size) per ReLU node."""
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


def _curved(net: Relaxed, weights: Tensor, room: Tensor) -> Tensor:
    """The losses on a network with curves."""
    linear = net.margins(weights[:, None])
    costs = unit_losses(net, {k: a[:, 0] for k, a in linear.met.items()}, net.slants)
    return caused(net, costs, room)


def unit_losses(net: Relaxed, met: dict[int, Tensor], slants: Slants) -> dict[int, Tensor]:
    """How much every unit of the curved nodes can cost the bound of each box's (single) row: (boxes, size).

    `met` are the coefficients of the units in the bound, `slants` the slopes of its lines.
    """
    result = {}
    for node, a in met.items():
        curve, ends = net.operands.curves[node], net.operands.ends(node, net.low, net.high)
        below, above = net.operands.parts(node, slants.under[:, 0]), net.operands.parts(node, slants.over[:, 0])
        slopes = tuple(torch.where(a > 0, low, high) for low, high in zip(below, above))
        gap = curve.ceiling(ends, slopes) - curve.floor(ends, slopes)
        cost = torch.where(curve.worth(ends), a.abs() * gap, torch.zeros_like(gap))
        result[node] = torch.nan_to_num(cost, nan=0.0, posinf=0.0, neginf=0.0)
    return result


def caused(net: Relaxed, costs: dict[int, Tensor], room: Tensor) -> Tensor:
    """The share of all units' costs that each input causes by moving them, (boxes, d), for boxes of widths `room`."""
    graph, (boxes, d) = net.graph, room.shape
    values = [torch.diag_embed(room).reshape(boxes * d, *graph.nodes[0].shape)]
    result = torch.zeros_like(room)
    for index, node in enumerate(graph.nodes[1:], start=1):
        if index not in net.operands.curves:
            assert isinstance(node.operator, Affine)
            values.append(node.operator.linear(*(values[i] for i in node.inputs)))
            continue
        sources = [values[s.source].reshape(boxes, d, node.size) for s in net.operands.of_node[index]]
        moved = torch.stack([slope * v for slope, v in zip(net.lines[index].over, sources)]).sum(0)
        values.append(moved.reshape(boxes * d, *node.shape))
        if index in costs:
            moves = torch.stack(sources).abs().sum(0)
            share = moves / moves.sum(1, keepdim=True).clamp_min(1e-300)
            result = result + torch.matmul(share, costs[index][..., None])[..., 0]
    return torch.nan_to_num(result, nan=0.0, posinf=0.0, neginf=0.0)
