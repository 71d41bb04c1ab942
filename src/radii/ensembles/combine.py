"""Several classifiers as one: averaged, by vote, or joined as ensembles need them.

mean         the weighted mean of the logits: one network, written to ONNX, which everything takes
probability  the weighted mean of the softmax probabilities: a network too, for two classes (a softmax of two is a
             sigmoid of their difference); more classes have no operator that proofs know
vote         the weights of the members' votes: no network, but its radii are proven (`ensembles.vote`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from radii._check import choice, number
from radii._torch import torch
from radii.ensembles.members import Merged, check_members
from radii.ensembles.vote import Vote
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import Graph, Node
from radii.models.load import load_classifier
from radii.models.operators import Dense, Operator, Sigmoid

JOINT = "joint"
WAYS = ("mean", "probability", "vote")


def combine(
    members: Sequence[Any], how: str = "mean", weights: Sequence[float] | None = None, name: str | None = None
) -> Classifier:
    """Several classifiers of the same inputs and classes as one, which everything takes that takes classifiers.

    `how` is "mean" (of the logits), "probability" (mean of the softmax, two classes) or "vote" (each member votes for
    its class; a class that at least ties with the label breaks it). `weights` are one per member, equal unless given.

    >>> import radii
    >>> nets = [radii.load_classifier(f"zoo:mnist5k-{name}") for name in ("standard", "adversarial", "conv")]
    >>> data = radii.load_dataset("mnist5k", split="test")
    >>> radii.combine(nets, how="vote")(data[0].x).tolist()
    [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    loaded = check_members([load_classifier(one) for one in members])
    choice(how, "combine", WAYS)
    shares = [1.0] * len(loaded) if weights is None or not len(weights) else [_weight(one) for one in weights]
    if len(shares) != len(loaded):
        raise InputError(f"combine: expected one weight for each of {len(loaded)} members, got {len(shares)}")
    called = name or f"{how}({','.join(one.name or one.fingerprint[:8] for one in loaded)})"
    if how == "vote":
        return Vote.of(loaded, shares, called)
    if how == "probability" and loaded[0].classes != 2:
        raise InputError(
            f"combine probability: expected two classes, got {loaded[0].classes}: no proof knows the softmax of more; "
            "use mean or vote"
        )
    ordered = Merged.of(loaded)
    scale = {one.fingerprint: share / sum(shares) for one, share in zip(loaded, shares)}
    parts = np.array([scale[one.fingerprint] for one in ordered.members])
    graph = _averaged(ordered.graph, parts, ordered.classes // len(parts), how == "probability")
    module = ordered.with_graph(graph).torch_module()
    return load_classifier(module, input_shape=ordered.input_shape, domain=ordered.domain, name=called)


def together(
    how: str, members: Sequence[Classifier], weights: Sequence[float] = (), name: str | None = None
) -> Classifier:
    """What `combine` gives, and the members side by side, as joint radii need them."""
    return Merged.of(members) if how == JOINT else combine(members, how, weights, name)


def _averaged(graph: Graph, parts: Any, classes: int, softmax: bool) -> Graph:
    """The merged graph with the weighted mean of all members' logits, or of their two probabilities, behind it."""
    steps: list[tuple[Operator, int]] = []
    if softmax:
        second = np.kron(np.eye(len(parts)), np.array([[-1.0, 1.0]]))  # the second logit less the first
        steps = [(Dense(_tensor(second)), len(parts)), (Sigmoid(), len(parts))]
        mean = np.stack([-parts, parts])
        steps.append((Dense(_tensor(mean), _tensor(np.array([1.0, 0.0]))), 2))
    else:
        steps.append((Dense(_tensor(np.kron(parts[None], np.eye(classes)))), classes))
    nodes = list(graph.nodes)
    for operator, size in steps:
        nodes.append(Node(operator, (len(nodes) - 1,), (size,)))
    return Graph(tuple(nodes), graph.inexact, graph.takes, graph.computes)


def _tensor(values: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))


def _weight(value: Any) -> float:
    found = number(value, "weights", low=0.0, strict=True)
    if not math.isfinite(found):
        raise InputError(f"weights: expected finite numbers, got {value}")
    return found
