"""Graph: the one small intermediate form that every network becomes.

A graph is a list of nodes in topological order; a node applies one operator to earlier nodes. Shapes never include
the batch: values are tensors of shape (batch, *shape). Operators are either *affine* in their inputs (they have
`adjoint` and `absolute`, which is all that bounds and exact solvers need) or one of a few *activations*.

    affine      Dense · Conv · ConvTranspose · Scale · AveragePool · Sum
                Reshape · Transpose · Select · Pad · Add · Concat
    activations Relu · LeakyRelu · Clip · Sigmoid · Tanh · MaxPool · Product
    last only   Softmax (kept for probabilities, dropped for margins)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from radii._cpu import keep_time
from radii._torch import Tensor, torch
from radii.models.operators import Operator, Softmax

Shape = tuple[int, ...]
# The affine operators by name: every verifier takes them between the activations that it takes.
AFFINE = (
    "Dense", "Conv", "ConvTranspose", "Scale", "AveragePool", "Sum",
    "Reshape", "Transpose", "Select", "Pad", "Add", "Concat",
)  # fmt: skip
PIECEWISE = ("Relu", "LeakyRelu", "Clip", "MaxPool")  # activations that are linear in pieces
ACTIVATIONS = (*PIECEWISE, "Sigmoid", "Tanh", "Product")


@dataclass(frozen=True, slots=True)
class Node:
    """One value of the network: an operator applied to the values of earlier nodes. The input has no operator."""

    operator: Operator | None
    inputs: tuple[int, ...]
    shape: Shape
    name: str = ""

    @property
    def size(self) -> int:
        """How many numbers the value holds."""
        return prod(self.shape)


@dataclass(frozen=True, eq=False)
class Graph:
    """A network: node 0 is the input, the last node is the output.

    `inexact` names the operators that computed constants in a way that differs between runtimes (sums, exp, …);
    `takes` is the precision of the file's input, `computes` the finest one that the file computes in.
    """

    nodes: tuple[Node, ...]
    inexact: tuple[str, ...] = ()
    takes: str = "float32"
    computes: str = "float32"

    @property
    def input_shape(self) -> Shape:
        """The shape of one input, without the batch."""
        return self.nodes[0].shape

    @property
    def output_shape(self) -> Shape:
        """The shape of one output, without the batch."""
        return self.nodes[-1].shape

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The names of the operators, each once, in order; Softmax is always the last."""
        return tuple(dict.fromkeys(type(node.operator).__name__ for node in self.nodes if node.operator is not None))

    @cached_property
    def logits(self) -> Graph:
        """The graph without a final softmax: what margins are computed on."""
        nodes = self.nodes
        while len(nodes) > 1 and isinstance(nodes[-1].operator, Softmax):
            nodes = self.upto(nodes[-1].inputs[0]).nodes
        return replace(self, nodes=nodes) if len(nodes) != len(self.nodes) else self

    def upto(self, index: int) -> Graph:
        """The graph that computes one node: everything it does not need is left out."""
        needed = {index}
        for i in range(index, -1, -1):
            if i in needed:
                needed.update(self.nodes[i].inputs)
        order = sorted(needed | {0})
        place = {old: new for new, old in enumerate(order)}
        nodes = (replace(self.nodes[i], inputs=tuple(place[j] for j in self.nodes[i].inputs)) for i in order)
        return replace(self, nodes=tuple(nodes))

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs of a batch of inputs of shape (batch, *input_shape), in the dtype and on the device of x."""
        return self.values(x)[-1]

    def values(self, x: Tensor) -> list[Tensor]:
        """The values of all nodes for a batch of inputs."""
        results: list[Tensor] = []
        for node in self.to(x.dtype, x.device).nodes:
            keep_time()
            if node.operator is None:
                results.append(x)
            else:
                results.append(node.operator(*(results[i] for i in node.inputs)))
        return results

    @cached_property
    def _converted(self) -> dict[tuple[torch.dtype, str], Graph]:
        return {}

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Graph:
        """The same graph with its constants in another dtype and on another device (cached).

        Weights are held as the file stores them and constants that had to be computed in float64, so the conversion
        to float64 is exact and the one to float32 rounds each constant once.
        """
        key = (dtype, str(device))
        if key not in self._converted:
            with torch.inference_mode(False):  # the copy outlives the caller's mode and must stay differentiable
                nodes = (
                    node if node.operator is None else replace(node, operator=node.operator.to(dtype, device))
                    for node in self.nodes
                )
                graph = replace(self, nodes=tuple(nodes))
            graph._converted[key] = self._converted[key] = graph
        return self._converted[key]
