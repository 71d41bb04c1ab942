"""Float32 in the checker: how far the outputs of a float32 forward pass can be from the reals, on the whole ball.

Affine operators of the file of which one feeds the next and nothing else may be computed one after the other or with
their constants multiplied out first, in any order of summation: a sum of products all the same, each rounded at most
`steps` times. Four numbers bound it: the sum of the products' sizes, what comes in off, the sum with every factor
enlarged by 1 (above each part of a product, and of what underflow can cost), and the largest sum on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.errors import InputError
from radii.evidence.network import Network
from radii.evidence.rounding import UP
from radii.models.graph import Graph
from radii.models.operators import Affine, Scale, Softmax

U32 = 2.0**-24
FLUSHED = 2.0**-124  # what operands and result of one operation lose at most when all that is subnormal becomes 0
MOST = 3.4028e38  # under the largest float32


def refuse(graph: Graph, curved: bool) -> None:
    """Raises `InputError` for a network of which nothing can be said in float32."""
    if curved or any(isinstance(node.operator, Softmax) for node in graph.nodes):
        raise InputError("evidence: expected outputs without softmax, sigmoid or tanh for float32 arithmetic")
    if graph.inexact:
        raise InputError(
            f"evidence: expected constants that every runtime computes alike for float32, got {graph.inexact[0]}"
        )


@dataclass(frozen=True, eq=False)
class _Sum:
    """Sums of products that make up a value, in its shape with a batch of one."""

    size: Tensor
    off: Tensor
    enlarged: Tensor
    largest: Tensor
    steps: int
    folds: int  # operations: with more than one, constants may be multiplied out

    def total(self) -> Tensor:
        """How far the value can be off; infinite where overflow is not excluded."""
        lost = self.steps * U32
        share = lost / (1.0 - lost) * UP if lost < 0.5 else torch.inf  # no bound is known of longer sums
        rounding = share * (self.size + self.off) + self.steps * FLUSHED * self.enlarged
        most = self.largest if self.folds <= 1 else torch.maximum(self.largest, self.enlarged)
        wrong = (self.off + rounding) * UP
        return torch.where((most + rounding) * UP < MOST, wrong, torch.full_like(wrong, torch.inf))


def _after(operator: Affine, parts: Sequence[_Sum]) -> _Sum:
    plain, more = operator.absolute(), operator.absolute(1.0)
    size, off = plain(*(p.size for p in parts)), plain.linear(*(p.off for p in parts))
    steps, folds = max(p.steps for p in parts), max(p.folds for p in parts)
    if not operator.moves:
        steps, folds = steps + operator.terms, folds + 1
        folds += isinstance(operator, Scale) and operator.rounded  # its constant is the result of an operation
    enlarged = more(*(p.enlarged for p in parts)) * operator.divisor
    return _Sum(size, off, enlarged, (size + off) * operator.divisor, steps, folds)


def float32_error(network: Network) -> Tensor:
    """How far each output can be off; the network must have been gone through to its end."""
    graph = network.graph
    sums: dict[int, _Sum] = {}
    wrong = [torch.zeros_like(network.size[0])]
    feeds = [sum(node.inputs.count(i) for node in graph.nodes) for i in range(len(graph.nodes))]
    for index, node in enumerate(graph.nodes[1:], start=1):
        if not isinstance(node.operator, Affine):
            wrong.append(wrong[node.inputs[0]])
            continue
        parts = []
        for i in node.inputs:
            shape = (1, *graph.nodes[i].shape)
            value, off = network.size[i].reshape(shape), wrong[i].reshape(shape)
            fresh = _Sum(value, off, value + off + 1.0, value + off, 0, 0)
            parts.append(sums[i] if i in sums and feeds[i] == 1 else fresh)
        for step in node.operator.steps or (node.operator,):
            parts = [_after(step, parts)]
        sums[index] = parts[0]
        wrong.append(parts[0].total().flatten())
    return wrong[-1]
