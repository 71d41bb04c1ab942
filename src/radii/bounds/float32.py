"""Deployed arithmetic: how far a float32 forward pass can be from the network over the reals, on a whole ball.

A *run* is a chain of affine operators of the file, each of which feeds the next and nothing else. A runtime may compute
it one by one, or multiply some of its constants out in float32 first, and sum in any order, with or without fused
multiply-add. Written out, a run is a sum of products. Each of these ways rounds every product at most `terms` times,
so it is within γ of the sum of the products' magnitudes (Higham), however much of that cancels.

    underflow   costs a product, for each operation, at most 2⁻¹²⁶ times its other factors, be it gradual or flushed
    overflow    cannot happen while the magnitudes sum up to less than the largest float32; where constants may be
                multiplied out first, while they do so with 1 added to every factor, which bounds all parts of a product

ReLU passes errors on, a product multiplies them by the other factor and rounds once. Where overflow is not excluded the
error is infinite. A margin above the error of both its logits is a margin of the deployed model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from radii._torch import Tensor, torch
from radii.bounds.backward import Magnitudes
from radii.bounds.rounding import U32, UP, gamma
from radii.errors import UnsupportedOperator
from radii.models.graph import Graph
from radii.models.operators import Affine, Product, Scale, Sigmoid, Softmax, Tanh

NORMAL = 2.0**-126  # the least float32 that no processor flushes to 0
LARGEST = 3.4028e38  # below the largest float32
FLUSHES = 4  # values of one operation that may be flushed: its operands and its result, with room to spare


class Bounded(Protocol):
    """A lowered graph whose values are bounded in magnitude on some balls."""

    @property
    def graph(self) -> Graph: ...

    @property
    def magnitudes(self) -> Magnitudes: ...


def refuse_float32(graph: Graph) -> None:
    """Raises `UnsupportedOperator` for a network whose float32 arithmetic is not settled."""
    curves = (Sigmoid, Tanh, Softmax)
    bad = sorted({type(n.operator).__name__ for n in graph.nodes if isinstance(n.operator, curves)})
    if bad:
        raise UnsupportedOperator(
            f"arithmetic float32: expected operators whose rounding is known, got {' and '.join(bad)}, whose float32 "
            "values no runtime promises; use arithmetic: real",
            tuple(bad),
        )
    if graph.inexact:
        raise UnsupportedOperator(
            "arithmetic float32: expected constants that every runtime computes alike, got ones from "
            f"{', '.join(graph.inexact)}; store their values in the file, or use arithmetic: real",
            tuple(name.split()[0] for name in graph.inexact),
        )


@dataclass(frozen=True, eq=False)
class _Run:
    """A run up to one of its values, (batch, *shape)."""

    gross: Tensor  # the sum of the products' magnitudes
    carried: Tensor  # the errors of the run's inputs, passed through to here
    wide: Tensor  # the sum of products with 1 added to each factor, none divided by a pooling size
    peak: Tensor  # the largest partial sum in the last operator by itself
    terms: int = 0
    operations: int = 0

    @staticmethod
    def start(value: Tensor, off: Tensor) -> _Run:
        """The run that begins with a value which is off by so much."""
        return _Run(value, off, value + off + 1.0, value + off)

    @staticmethod
    def through(operator: Affine, runs: Sequence[_Run]) -> _Run:
        """The runs of an operator's inputs, followed by it."""
        absolute = operator.absolute()
        gross = absolute(*(run.gross for run in runs))
        carried = absolute.linear(*(run.carried for run in runs))
        wide = operator.absolute(1.0)(*(run.wide for run in runs)) * operator.divisor
        peak = (gross + carried) * operator.divisor
        terms, operations = max(run.terms for run in runs), max(run.operations for run in runs)
        if not operator.moves:
            # A constant that was itself computed is an operation more: what it comes to may overflow by itself.
            terms += operator.terms
            operations += 2 if isinstance(operator, Scale) and operator.rounded else 1
        return _Run(gross, carried, wide, peak, terms, operations)

    def error(self) -> Tensor:
        """How far the value can be off, flat (batch, size); infinite where it may overflow."""
        unit = gamma(self.terms, U32)
        lost = unit * (self.gross + self.carried) + FLUSHES * self.terms * NORMAL * self.wide
        largest = torch.maximum(self.peak, self.wide) if self.operations > 1 else self.peak
        fits = (largest + lost) * UP <= LARGEST
        return torch.where(fits, (self.carried + lost) * UP, torch.inf).flatten(1)


def float32_error(root: Bounded) -> Tensor:
    """A bound on |float32 output − real output| for every output and image of a root: (batch, outputs)."""
    graph, values = root.graph, root.magnitudes.value
    uses = Counter(i for node in graph.nodes for i in node.inputs)
    runs: list[_Run | None] = []
    off: list[Tensor] = []

    def run(i: int) -> _Run:
        known, shape = runs[i], graph.nodes[i].shape
        if known is not None and uses[i] == 1:
            return known
        return _Run.start(values[i].reshape(-1, *shape), off[i].reshape(-1, *shape))

    for node in graph.nodes:
        runs.append(None)
        if isinstance(node.operator, Affine):
            inputs = [run(i) for i in node.inputs]
            for step in node.operator.steps or (node.operator,):
                inputs = [_Run.through(step, inputs)]
            runs[-1] = inputs[0]
            off.append(inputs[0].error())
        elif isinstance(node.operator, Product):
            (a, b), (x, y) = ([part[i] for i in node.inputs] for part in (off, values))
            off.append(_product(x, y, a, b))
        elif node.inputs:
            off.append(off[node.inputs[0]])
        else:
            off.append(torch.zeros_like(values[0]))
    return off[-1]


def _product(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """How far the product of values of magnitude x and y is off that are off by a and b."""
    carried = a * y + x * b + a * b
    gross = x * y + carried
    lost = gamma(1, U32) * gross + FLUSHES * NORMAL * (x + y + a + b + 1.0)
    return torch.where((gross + lost) * UP <= LARGEST, (carried + lost) * UP, torch.inf)
