"""Deployed arithmetic: how far a float32 forward pass can be from the network over the reals, on a whole ball.

Every affine operator adds γ (of float32) times the magnitudes it sums, in any summation order, and passes on what its
inputs were off; ReLU passes it on unchanged, a product multiplies it by the other factor and rounds once. A margin
above the error of both its logits is a margin of the deployed model. Sigmoid and Tanh are refused: no runtime
promises how near to the true value its own come.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from radii.bounds.backward import Magnitudes
from radii.bounds.rounding import U32, UP, gamma
from radii.errors import UnsupportedOperator
from radii.models.graph import Graph
from radii.models.operators import Affine, Product, Sigmoid, Tanh

SUBNORMAL = 1e-35  # what underflow can cost one operation, with room to spare


class Bounded(Protocol):
    """A lowered graph whose values are bounded in magnitude on some balls."""

    @property
    def graph(self) -> Graph: ...

    @property
    def magnitudes(self) -> Magnitudes: ...


def refuse_float32(graph: Graph) -> None:
    """Raises `UnsupportedOperator` for a network whose float32 arithmetic is not settled."""
    bad = sorted({type(n.operator).__name__ for n in graph.logits.nodes if isinstance(n.operator, (Sigmoid, Tanh))})
    if bad:
        raise UnsupportedOperator(
            f"arithmetic float32: expected operators whose rounding is known, got {' and '.join(bad)}, whose float32 "
            "values no runtime promises; use arithmetic: real",
            tuple(bad),
        )


def float32_error(root: Bounded) -> Tensor:
    """A bound on |float32 output − real output| for every output and image of a root: (batch, outputs)."""
    graph, magnitudes = root.graph, root.magnitudes
    refuse_float32(graph)
    off: list[Tensor] = []
    for index, node in enumerate(graph.nodes):
        if isinstance(node.operator, Affine):
            absolute = node.operator.absolute()
            shaped = [off[i].reshape(-1, *graph.nodes[i].shape) for i in node.inputs]
            carried = absolute.linear(*shaped).flatten(1)
            unit = gamma(node.operator.terms, U32)
            off.append((carried + unit * (magnitudes.product[index] + carried) + SUBNORMAL) * UP)
        elif isinstance(node.operator, Product):
            (a, b), (x, y) = ([part[i] for i in node.inputs] for part in (off, magnitudes.value))
            carried = a * y + x * b + a * b
            off.append((carried + gamma(1, U32) * (x * y + carried) + SUBNORMAL) * UP)
        elif node.inputs:
            off.append(off[node.inputs[0]])
        else:
            off.append(torch.zeros_like(magnitudes.value[0]))
    return off[-1]
