"""Deployed arithmetic: how far a float32 forward pass can be from the network over the reals, on a whole ball.

Every affine operator adds γ (of float32) times the magnitudes it sums, in any summation order, and passes on what its
inputs were off; ReLU passes it on unchanged. A margin above the error of both its logits is a margin of the deployed
model.
"""

from __future__ import annotations

import torch
from torch import Tensor

from radii.bounds.root import Root
from radii.bounds.rounding import U32, UP, gamma
from radii.models.operators import Affine

SUBNORMAL = 1e-35  # what underflow can cost one operation, with room to spare


def float32_error(root: Root) -> Tensor:
    """A bound on |float32 output − real output| for every output and image of a root: (batch, outputs)."""
    graph, magnitudes = root.graph, root.magnitudes
    off: list[Tensor] = []
    for index, node in enumerate(graph.nodes):
        if isinstance(node.operator, Affine):
            absolute = node.operator.absolute()
            shaped = [off[i].reshape(-1, *graph.nodes[i].shape) for i in node.inputs]
            carried = absolute.linear(*shaped).flatten(1)
            unit = gamma(node.operator.terms, U32)
            off.append((carried + unit * (magnitudes.product[index] + carried) + SUBNORMAL) * UP)
        elif node.inputs:
            off.append(off[node.inputs[0]])
        else:
            off.append(torch.zeros_like(magnitudes.value[0]))
    return off[-1]
