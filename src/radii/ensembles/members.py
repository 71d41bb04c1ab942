"""Members of an ensemble, several of them as one classifier, and the property that not all of them are fooled."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np

from radii._check import whole
from radii.errors import InputError
from radii.models.classifier import Classifier, Floats
from radii.models.graph import Graph, Node
from radii.models.operators import Concat, Reshape
from radii.problem import Clause, OutputSpec, Property

MOST_MEMBERS = 16  # all 2^16 sets of members are looked through for every point
MOST_CLAUSES = 4096  # ways to fool a set of members that one property may list


def check_members(members: Sequence[Classifier]) -> tuple[Classifier, ...]:
    """The members, once they can be one ensemble: same inputs, same classes, each of them once."""
    if not 2 <= len(members) <= MOST_MEMBERS:
        hint = "; for a single network use radius or distribution" if len(members) == 1 else ""
        raise InputError(f"ensemble: expected 2 to {MOST_MEMBERS} classifiers, got {len(members)}{hint}")
    first, seen = members[0], dict[str, str]()
    for one in members:
        if one.fingerprint in seen:
            twice = repr(one.name) if seen[one.fingerprint] == one.name else f"{seen[one.fingerprint]!r} = {one.name!r}"
            raise InputError(f"ensemble: expected different classifiers, got the same one twice ({twice})")
        seen[one.fingerprint] = one.name
        if not one.onnx_bytes:
            raise InputError(
                f"ensemble: expected networks as members, got a combination ({one.name}); give its members"
            )
        if one.classes != first.classes:
            raise InputError(
                f"ensemble: expected classifiers of the same classes, got {first.classes} ({first.name}) "
                f"and {one.classes} ({one.name})"
            )
        if not _same_inputs(first.input_shape, one.input_shape):
            raise InputError(
                f"ensemble: expected classifiers of the same inputs, got {_shape(first)} ({first.name}) "
                f"and {_shape(one)} ({one.name})"
            )
        if one.domain != first.domain:
            raise InputError(
                f"ensemble: expected classifiers of the same domain, got {first.domain} ({first.name}) "
                f"and {one.domain} ({one.name})"
            )
    return tuple(members)


def _same_inputs(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether inputs of one shape are inputs of the other in the same order: equal but for axes of 1, or flat."""
    left, right = (tuple(n for n in shape if n > 1) for shape in (one, other))
    return np.prod(one) == np.prod(other) and (left == right or min(len(left), len(right)) <= 1)


def _shape(classifier: Classifier) -> str:
    return "x".join(map(str, classifier.input_shape))


@dataclass(frozen=True, eq=False, repr=False)
class Merged(Classifier):
    """Several classifiers of the same inputs as one whose outputs are theirs, one after the other.

    `reference`, which every witness must pass, asks the original models. The members are in the order of their
    fingerprints, so that the same set of them is the same classifier wherever it is named.
    """

    members: tuple[Classifier, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Classifier]) -> Self:
        """The members as one classifier."""
        order = tuple(sorted(members, key=lambda one: one.fingerprint))
        first = order[0]
        return cls(
            onnx_bytes=b"",
            input_shape=first.input_shape,
            classes=sum(one.classes for one in order),
            name="+".join(one.name or one.fingerprint[:8] for one in members),
            domain=first.domain,
            members=order,
        )

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the members'."""
        digest = hashlib.sha256(b"merged")
        for one in self.members:
            digest.update(f"|{one.fingerprint}".encode())
        return digest.hexdigest()[:32]

    @cached_property
    def graph(self) -> Graph:
        """One graph from the shared input to the logits of all members."""
        nodes = [Node(None, (), self.input_shape, "input")]
        ends = []
        for one in self.members:
            graph = one.graph.logits
            nodes.append(Node(Reshape(graph.input_shape), (0,), graph.input_shape))
            start = len(nodes) - 1  # stands for the member's own input
            nodes += [replace(node, inputs=tuple(start + i for i in node.inputs)) for node in graph.nodes[1:]]
            nodes.append(Node(Reshape((one.classes,)), (len(nodes) - 1,), (one.classes,)))
            ends.append(len(nodes) - 1)
        nodes.append(Node(Concat(0), tuple(ends), (self.classes,)))
        graphs = [one.graph for one in self.members]
        return Graph(
            tuple(nodes),
            tuple(dict.fromkeys(name for graph in graphs for name in graph.inexact)),
            takes="float32" if any(graph.takes == "float32" for graph in graphs) else "float64",
            computes="float64" if any(graph.computes == "float64" for graph in graphs) else "float32",
        )

    def reference(self, x: Any) -> Floats:
        """The outputs of the original models in onnxruntime, one member after the other."""
        batch, _ = self._accept(x)
        parts = [one.reference(batch.reshape(len(batch), *one.input_shape)) for one in self.members]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, slots=True)
class Joint(Property):
    """Some member keeps the label on top: broken where every one of `members` has another class at least tied.

    It is asked of a `Merged` classifier. `among` lists for each member the classes that count; None counts all.
    """

    kind = "joint"
    members: int
    among: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        whole(self.members, "members", low=1)
        if self.among is not None and len(self.among) != self.members:
            raise InputError(f"joint: expected classes for each of {self.members} members, got {len(self.among)}")

    def targets(self, classes: int, label: int) -> list[tuple[int, ...]]:
        """For each member the classes that fool it, of `classes` outputs in all."""
        each, rest = divmod(classes, self.members)
        if rest or not 0 <= label < each:
            raise InputError(f"joint: expected outputs of {self.members} members and a label of theirs, got {label}")
        every = tuple(c for c in range(each) if c != label)
        if self.among is not None and not set().union(*self.among) <= set(every):
            raise InputError(f"joint: expected other classes than the label {label}, got {self.among}")
        return [every] * self.members if self.among is None else list(self.among)

    def at(self, outputs: Any, label: int) -> Joint:
        """The one way in which these outputs can break it: every member's strongest class but the label."""
        rivals = np.array(outputs, dtype=np.float64).reshape(self.members, -1)
        rivals[:, label] = -np.inf
        return Joint(self.members, tuple((int(c),) for c in rivals.argmax(1)))

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        each, targets = classes // self.members, self.targets(classes, label)
        ways = int(np.prod([len(part) for part in targets], dtype=np.float64))
        if not 0 < ways <= MOST_CLAUSES:
            raise InputError(f"joint: expected 1 to {MOST_CLAUSES} ways to fool {self.members} members, got {ways}")
        clauses = []
        for way in product(*targets):
            rows = np.zeros((self.members, classes))
            for member, target in enumerate(way):
                rows[member, member * each + label], rows[member, member * each + target] = 1.0, -1.0
            clauses.append(Clause(rows, np.zeros(self.members)))
        return OutputSpec(tuple(clauses))


def fools(outputs: Any, label: Any) -> Any:
    """Whether another class is at least tied with the label, for outputs (..., classes) of original models.

    A value that is not a number fools nobody: it is no witness.
    """
    values = np.asarray(outputs, dtype=np.float64)
    top = values.copy()
    wanted = np.broadcast_to(np.asarray(label), values.shape[:-1])[..., None]
    np.put_along_axis(top, wanted, -np.inf, -1)
    own = np.take_along_axis(values, wanted, -1)[..., 0]
    return (top.max(-1) >= own) & np.isfinite(values).all(-1)
