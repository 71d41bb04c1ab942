"""The load-time check: the graph must equal onnxruntime on random inputs, and odd networks raise alarms."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from radii.errors import ModelError
from radii.models.classifier import Classifier
from radii.models.operators import Softmax
from radii.problem import Domain

TOLERANCE = 1e-4  # of the largest output: some ten times what float32 sums of a few thousand terms differ by
INPUTS = 32


def random_inputs(shape: tuple[int, ...], domain: Domain, count: int = INPUTS, seed: int = 0) -> NDArray[np.float32]:
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
    # Rounding to float32 may step over an end; the nearest float32 inside the domain does not.
    low, high = inner(domain)
    return np.clip(drawn.astype(np.float32), low, high)


def inner(domain: Domain) -> tuple[np.float32, np.float32]:
    """The least and the largest float32 of a domain."""
    low, high = np.float32(domain.low), np.float32(domain.high)
    low = np.nextafter(low, np.float32(np.inf)) if float(low) < domain.low else low
    high = np.nextafter(high, np.float32(-np.inf)) if float(high) > domain.high else high
    return low, high


def examine(classifier: Classifier) -> tuple[float, tuple[str, ...]]:
    """The largest difference to onnxruntime, relative to the largest output, and alarms; refuses above TOLERANCE."""
    x = random_inputs(classifier.input_shape, classifier.domain)
    outputs = classifier.reference(x)
    if not np.isfinite(outputs).all():
        raise ModelError("expected finite outputs, got NaN or infinity on random inputs of the domain")
    found = difference(classifier, x, outputs)
    if not found <= TOLERANCE:
        raise ModelError(_too_different(classifier, x, found))
    return found, tuple(_alarms(classifier, x, outputs))


def difference(classifier: Classifier, x: NDArray[np.float32], outputs: NDArray[np.float32]) -> float:
    """The largest difference between the graph in float32 and these outputs, relative to the largest output."""
    with torch.no_grad():
        mine = classifier.graph(torch.from_numpy(x)).flatten(1).numpy()
    if mine.shape != outputs.shape:
        raise ModelError(f"expected {mine.shape[1]} outputs per input, onnxruntime gave {outputs.shape[1]}")
    largest = float(np.abs(outputs).max())
    return float(np.abs(mine.astype(np.float64) - outputs).max() / (largest if largest > 0 else 1.0))


def _too_different(classifier: Classifier, x: NDArray[np.float32], found: float) -> str:
    single = np.concatenate([classifier.reference(row[None]) for row in x])
    if difference(classifier, x, single) <= TOLERANCE:
        return "expected outputs that depend on their own input only, got a network that mixes the inputs of a batch"
    return (
        f"expected the graph to equal onnxruntime within {TOLERANCE:g} of the largest output, got {found:.2g}; "
        "radii misreads this network: please report it"
    )


def _alarms(classifier: Classifier, x: NDArray[np.float32], outputs: NDArray[np.float32]) -> list[str]:
    alarms = []
    if not np.array_equal(outputs, classifier.reference(x)):
        alarms.append("non-deterministic outputs: the same inputs gave different outputs")
    last = classifier.graph.nodes[-1].operator
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
    elif _flat(classifier, x):
        alarms.append("zero gradients: no output changes with the input near random inputs; gradient attacks are blind")
    return alarms


def _probabilities(outputs: NDArray[np.float32]) -> bool:
    return bool(outputs.shape[1] > 1 and (outputs >= 0).all() and np.allclose(outputs.sum(axis=1), 1.0, atol=1e-4))


def _flat(classifier: Classifier, x: NDArray[np.float32]) -> bool:
    """Whether the gradients of all outputs vanish at all these inputs."""
    with torch.enable_grad():  # the caller may have switched gradients off
        point = torch.from_numpy(x).requires_grad_()
        logits = classifier.logits(point)
        # Random weights keep the gradients of different classes from cancelling.
        weights = torch.from_numpy(np.random.default_rng(1).normal(size=tuple(logits.shape)).astype(np.float32))
        gradient: Any = torch.autograd.grad((logits * weights).sum(), point)[0]
    return not bool((gradient != 0).any())
