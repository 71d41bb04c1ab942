"""The load-time check: the graph must equal onnxruntime on random inputs, and odd networks raise alarms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import torch
from radii.errors import ModelError
from radii.models import arrays
from radii.models.classifier import Classifier
from radii.models.graph import Graph, Node
from radii.models.operators import Affine, Operator, Scale, Softmax
from radii.problem import Domain

# Relative to the largest output: about ten times what two float32 sums of a few thousand terms differ by.
TOLERANCE = 1e-4
INPUTS = 32
MOST_AT_ONCE = 2**26  # values of all nodes for the inputs that are compared at once
FLOAT32 = np.dtype(np.float32)
MINE = 0.1  # of a difference: when the graph, computed as the file says, is as far from the exact one, it is rounding

Floats = NDArray[np.floating[Any]]


def random_inputs(
    shape: tuple[int, ...], domain: Domain, count: int = INPUTS, seed: int = 0, dtype: np.dtype[Any] = FLOAT32
) -> Floats:
    """Inputs of the domain: ever denser noise on its lower end, as plain noise leaves many networks without an active
    neuron; where the domain is unbounded, normal values in place of uniform ones and 0 in place of the end.
    """
    rng = np.random.default_rng(seed)
    size = (count, *shape)
    density = np.linspace(0.05, 1.0, count).reshape(count, *(1 for _ in shape))
    present = rng.random(size) < density
    if domain.bounded:
        drawn = domain.low + (domain.high - domain.low) * rng.random(size) * present
    elif np.isfinite(domain.low):
        drawn = domain.low + np.abs(rng.normal(size=size)) * present
    elif np.isfinite(domain.high):
        drawn = domain.high - np.abs(rng.normal(size=size)) * present
    else:
        drawn = rng.normal(size=size) * present
    # Rounding may step over an end of the domain; the nearest float inside does not.
    inside: Floats = np.clip(drawn.astype(dtype), *domain.ends(dtype))
    return inside


def examine(classifier: Classifier) -> tuple[float, tuple[str, ...]]:
    """The largest difference to onnxruntime, relative to the largest output, and alarms; refuses above TOLERANCE."""
    x = random_inputs(classifier.input_shape, classifier.domain, dtype=classifier.dtype)
    mine = _values(classifier.graph, x, classifier.graph.computes)  # first: unlike onnxruntime, it can be stopped
    outputs = classifier.reference(x)
    if not np.isfinite(outputs).all():
        raise ModelError("expected finite outputs, got NaN or infinity on random inputs of the domain")
    found = _compared(mine, outputs)
    if not found <= TOLERANCE:
        raise ModelError(_too_different(classifier, x, outputs, found))
    last = classifier.graph.nodes[-1].operator
    return found, tuple(_alarms(classifier, last, x, outputs, lambda: _flat(classifier, x)))


def glance(classifier: Classifier, graph: Graph) -> tuple[float, tuple[str, ...]]:
    """The same from a graph of arrays, without torch; what is not plainly right is left to `examine`."""
    x = random_inputs(classifier.input_shape, classifier.domain, dtype=classifier.dtype)
    mine = arrays.outputs(graph, x)  # first: unlike onnxruntime, it can be stopped
    outputs = classifier.reference(x)
    sane = mine.shape == outputs.shape and np.isfinite(mine).all() and np.isfinite(outputs).all()
    found = _distance(mine, outputs) if sane else np.inf
    if not found <= TOLERANCE:
        return examine(classifier)
    rng = np.random.default_rng(1)
    nearby = (x * (1 + 1e-3 * rng.random(x.shape)) + 1e-3 * rng.random(x.shape)).astype(x.dtype)

    def flat() -> bool:
        return bool((arrays.outputs(graph, nearby) == mine).all()) and _flat(classifier, x)

    return found, tuple(_alarms(classifier, graph.nodes[-1].operator, x, outputs, flat))


def difference(graph: Graph, x: Floats, outputs: Floats, computes: str | None = None) -> float:
    """The largest difference between a graph, in its own precision or another, and outputs, relative to the largest."""
    return _compared(_values(graph, x, computes or graph.computes), outputs)


def _compared(mine: Floats, outputs: Floats) -> float:
    if mine.shape != outputs.shape:
        raise ModelError(f"expected {mine.shape[1]} outputs per input, onnxruntime gave {outputs.shape[1]}")
    return _distance(mine, outputs)


def _distance(mine: Floats, outputs: Floats) -> float:
    largest = float(np.abs(outputs).max())
    return float(np.abs(mine.astype(np.float64) - outputs).max() / (largest if largest > 0 else 1.0))


def _values(graph: Graph, x: Floats, computes: str) -> Floats:
    step = max(1, MOST_AT_ONCE // sum(node.size for node in graph.nodes))
    with torch.no_grad():
        values = torch.from_numpy(x).to(getattr(torch, computes))
        parts = [graph(values[start : start + step]).flatten(1) for start in range(0, len(x), step)]
        found: Floats = torch.cat(parts).numpy()
    return found


def _too_different(classifier: Classifier, x: Floats, outputs: Floats, found: float) -> str:
    single = np.concatenate([classifier.reference(row[None]) for row in x])
    graph = classifier.graph
    if difference(graph, x, single) <= TOLERANCE:
        return "expected outputs that depend on their own input only, got a network that mixes the inputs of a batch"
    node = _infinite(graph, x)
    if node:
        return (
            f"expected values that {graph.computes} can hold, got infinity or NaN in node {node} on random inputs "
            "of the domain; rescale its weights"
        )
    lost = difference(graph, x, outputs, "float64")
    if difference(_unfolded(graph), x, _values(graph, x, "float64")) > MINE * lost:
        return (
            f"expected {graph.computes} outputs within {TOLERANCE:g} of the exact ones, got some that are off by "
            f"{lost:.2g} of the largest output: large numbers cancel{_where(graph)}, and {graph.computes} keeps few "
            "digits of what is left; rescale them, or fold them in float64 and export again"
        )
    return (
        f"expected the graph to equal onnxruntime within {TOLERANCE:g} of the largest output, got {found:.2g}; "
        "radii misreads this network: please report it"
    )


def _infinite(graph: Graph, x: Floats) -> str:
    """The name of the first node with values that are not finite in the graph's precision, empty when all are."""
    with torch.no_grad():
        values = graph.values(torch.from_numpy(x).to(getattr(torch, graph.computes)))
    found = (node for node, value in zip(graph.nodes, values) if not bool(value.isfinite().all()))
    return next((node.name or type(node.operator).__name__ for node in found), "")


def _unfolded(graph: Graph) -> Graph:
    """The graph with the operators of the file where several were folded into one: it rounds as the file does."""
    nodes: list[Node] = []
    place: list[int] = []
    for node in graph.nodes:
        inputs = tuple(place[i] for i in node.inputs)
        steps = node.operator.steps if isinstance(node.operator, Affine) else ()
        for step in steps or (node.operator,):
            nodes.append(Node(step, inputs, node.shape, node.name))
            inputs = (len(nodes) - 1,)
        place.append(len(nodes) - 1)
    return replace(graph, nodes=tuple(nodes))


def _where(graph: Graph) -> str:
    """The operator in which most cancels, by its name, if one was folded from parts that do."""
    worst, name = 1e3, ""
    for node in graph.nodes:
        if isinstance(node.operator, Scale) and node.operator.steps and node.operator.shift is not None:
            gross = node.operator.absolute().shift
            ratio = 0.0 if gross is None else float((gross / node.operator.shift.abs().clamp_min(1e-300)).max())
            worst, name = (ratio, node.name) if ratio > worst else (worst, name)
    return f" in node {name}" if name else ""


def _alarms(
    classifier: Classifier, last: Operator | None, x: Floats, outputs: Floats, flat: Callable[[], bool]
) -> list[str]:
    alarms = []
    if not np.array_equal(outputs, classifier.reference(x)):
        alarms.append("non-deterministic outputs: the same inputs gave different outputs")
    if isinstance(last, Softmax):
        kind = "log-softmax" if last.log else "softmax"
        alarms.append(f"softmaxed logits: the network ends in a {kind}; margins use the logits before it")
    elif _probabilities(outputs):
        alarms.append(
            "softmaxed logits: the outputs are probabilities, which saturate; export the network without them"
        )
    if classifier.classes < 2:
        alarms.append("a single output: there is no other class to change to")
    if np.all(outputs == outputs[0]):
        alarms.append(f"constant outputs: {len(x)} random inputs of the domain all gave the same outputs")
    elif flat():
        alarms.append("zero gradients: no output changes with the input near random inputs; gradient attacks are blind")
    return alarms


def _probabilities(outputs: Floats) -> bool:
    inside = outputs.shape[1] > 1 and outputs.min() >= 0 and outputs.max() <= 1
    return bool(inside and np.allclose(outputs.sum(axis=1), 1.0, atol=1e-4))


def _flat(classifier: Classifier, x: Floats) -> bool:
    """Whether the gradients of all outputs vanish at all these inputs."""
    with torch.enable_grad():  # the caller may have switched gradients off
        point = torch.from_numpy(x).requires_grad_()
        logits = classifier.logits(point)
        # Random weights keep the gradients of different classes from cancelling.
        weights = torch.from_numpy(np.random.default_rng(1).normal(size=tuple(logits.shape)).astype(np.float32))
        gradient: Any = torch.autograd.grad((logits * weights).sum(), point)[0]
    return not bool((gradient != 0).any())
