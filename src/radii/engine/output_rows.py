"""OutputRows: what a property asks, as rows over a lowered graph's outputs that must stay positive.

A clause of several rows is violated where all of them fail: one that stays positive keeps it. No input meets the clause
if some weights λ ≥ 0 make the sum of λ·row positive everywhere, so a clause is one row that searches choose themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from radii._torch import Tensor, torch
from radii.bounds.lowering import lower
from radii.bounds.region import Region
from radii.bounds.shell import Shell
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import Graph
from radii.models.operators import Clip, Relu, Reshape, Sigmoid, Tanh
from radii.problem import Classification, OutputSpec, Property


@dataclass(frozen=True, eq=False)
class OutputRows:
    """A lowered float64 graph and the rows·outputs > shift that robustness means: of every clause, one of its rows."""

    graph: Graph
    rows: Tensor  # (rows, outputs)
    shift: Tensor  # (rows,)
    members: Tensor | None = None  # (clauses, k) rows of each clause, shorter ones repeat a row; None: one row each
    inner: float = 0.0  # with a slope: only inputs at least this far from the centre count, …
    slope: float = 0.0  # … and rows gain slope·(distance − inner)

    def over(self, region: Region) -> Region:
        """The part of a ball that the rows are about."""
        return region if self.slope == 0.0 else Shell.of(region, self.inner, self.slope)

    @property
    def clauses(self) -> int:
        """How many clauses there are."""
        return len(self.rows if self.members is None else self.members)

    def greatest(self, values: Tensor) -> Tensor:
        """The greatest of some values of all rows (…, rows) in each clause: (…, clauses)."""
        return values if self.members is None else values[..., self.members].amax(-1)

    def only(self, clauses: Tensor) -> tuple[Tensor, Tensor | None]:
        """The rows that some clauses need, and the clauses as rows of those."""
        if self.members is None:
            return clauses, None
        chosen = self.members[clauses]
        needed, place = np.unique(chosen.cpu().numpy(), return_inverse=True)
        return torch.from_numpy(needed).to(chosen), torch.from_numpy(place).to(chosen).reshape(chosen.shape)


@dataclass(frozen=True, slots=True)
class Peeled:
    """What was taken off the outputs: they are cut to [low, high] after values that keep their order."""

    low: float = -math.inf
    high: float = math.inf


def lowered(classifier: Classifier, device: torch.device | str = "cpu") -> tuple[Graph, Peeled]:
    """The lowered graph in float64 without activations on the outputs themselves, and what those were."""

    def make() -> tuple[Graph, Peeled]:
        graph, peeled = _peel(classifier.graph.logits)
        return lower(graph).to(torch.float64, device), peeled

    return classifier.once(("lowered", str(device)), make)


def _peel(graph: Graph) -> tuple[Graph, Peeled]:
    """The graph up to the values that final activations only put in order or cut.

    Sigmoid and Tanh grow strictly, so they change no comparison of two outputs; one ReLU or Clip under them is a cut.
    """
    index = len(graph.nodes) - 1
    while index:
        node = graph.nodes[index]
        operator = node.operator
        if isinstance(operator, Relu):
            return graph.upto(node.inputs[0]), Peeled(0.0)
        if isinstance(operator, Clip) and operator.low < operator.high:
            return graph.upto(node.inputs[0]), Peeled(operator.low, operator.high)
        if not isinstance(operator, (Sigmoid, Tanh, Reshape)):
            break
        index = node.inputs[0]
    return graph.upto(index), Peeled()


def margins(classifier: Classifier, label: int, property: Property, device: torch.device | str = "cpu") -> OutputRows:
    """The rows of a classification property.

    With outputs cut to [l, h], clip(a) ≤ clip(b) means a ≤ b or a ≤ l or b ≥ h: the cut is dropped and the other two
    are more ways to be broken, which is exact and much tighter than relaxing it. A final ReLU cuts at 0 from below.
    """
    if not isinstance(property, Classification):
        raise InputError(f"native verifier: expected a classification property, got {property.kind}")
    graph, peeled = lowered(classifier, device)
    targets = list(property.targets(classifier.classes, label))
    unit = torch.eye(classifier.classes, dtype=torch.float64, device=device)
    rows = torch.stack([unit[label] - unit[t] for t in targets])
    shift = rows.new_zeros(len(rows))
    if math.isfinite(peeled.low):
        rows, shift = torch.cat([rows, unit[label : label + 1]]), torch.cat([shift, shift.new_tensor([peeled.low])])
    if math.isfinite(peeled.high):
        rows = torch.cat([rows, -unit[targets]])
        shift = torch.cat([shift, shift.new_full((len(targets),), -peeled.high)])
    return OutputRows(graph, rows, shift)


def spec_rows(classifier: Classifier, spec: OutputSpec, device: torch.device | str = "cpu") -> OutputRows:
    """The rows of a specification; robust where one row of every clause is above its shift.

    Rows about a single output each lose a final ReLU or Clip: clip(a) ≤ b means a ≤ b for b inside the cut, always for
    b above it and never below it, which is exact and much tighter than relaxing the cut.
    """
    rows, shift, members = _distinct(spec, device)
    graph, peeled = lowered(classifier, device)
    if peeled == Peeled() and not _curved_end(classifier.graph.logits):
        return OutputRows(graph, rows, shift, members)
    if _curved_end(classifier.graph.logits) or bool(((rows != 0).sum(1) != 1).any()):
        return OutputRows(lowered_outputs(classifier, device), rows, shift, members)
    weight = rows.sum(1)
    end = shift / weight  # the value of the one output at which the row is broken
    falls = weight > 0  # broken at or below it, else at or above it
    sharp = shift - end * weight  # what the division rounded: 0 for the unit rows of every property
    never = torch.where(falls, end < peeled.low, end > peeled.high) & (sharp == 0)
    always = torch.where(falls, end >= peeled.high, end <= peeled.low) & (sharp == 0)
    if bool(always.any() | (sharp != 0).any()):
        return OutputRows(lowered_outputs(classifier, device), rows, shift, members)
    if members is not None:
        return OutputRows(graph, rows, shift, members[~never[members].any(1)])
    return OutputRows(graph, rows[~never], shift[~never])


def _distinct(spec: OutputSpec, device: torch.device | str) -> tuple[Tensor, Tensor, Tensor | None]:
    """The rows and shifts of a specification, and the clauses where one has several; those then share equal rows."""
    rows, shift = (np.concatenate([getattr(c, part) for c in spec.clauses]) for part in ("coefficients", "bounds"))
    if len(rows) == len(spec.clauses):
        return torch.tensor(rows, device=device), torch.tensor(shift, device=device), None
    both, place = np.unique(np.column_stack([rows, shift]), axis=0, return_inverse=True)
    counts = [len(c.bounds) for c in spec.clauses]
    first = np.cumsum([0, *counts[:-1]])
    members = [[place[i + min(j, n - 1)] for j in range(max(counts))] for i, n in zip(first, counts)]
    found = torch.tensor(both, device=device)
    return found[:, :-1], found[:, -1], torch.tensor(np.array(members), device=device)


def lowered_outputs(classifier: Classifier, device: torch.device | str = "cpu") -> Graph:
    """The lowered graph of the outputs themselves, whatever activation they end in."""
    graph, peeled = lowered(classifier, device)
    if peeled == Peeled() and not _curved_end(classifier.graph.logits):
        return graph
    return lower(classifier.graph.logits).to(torch.float64, device)


def _curved_end(graph: Graph) -> bool:
    """Whether Sigmoid or Tanh on the outputs were taken off by `lowered`: only an order survives that."""
    index = len(graph.nodes) - 1
    while index and isinstance(graph.nodes[index].operator, (Relu, Clip, Reshape, Sigmoid, Tanh)):
        if isinstance(graph.nodes[index].operator, (Sigmoid, Tanh)):
            return True
        index = graph.nodes[index].inputs[0]
    return False
