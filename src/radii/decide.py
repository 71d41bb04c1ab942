"""The decider protocol: what answers queries, within a budget; and the replay that every witness must pass.

Attacks can only answer BROKEN or UNKNOWN, bounds only ROBUST or UNKNOWN, complete verifiers all three. A decider that
can also measure radii directly offers `measure` as well (`Measurer`), one that finds reaches `reach` (`Reacher`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from radii._check import byte_size, number, whole
from radii._cpu import cpu_seconds
from radii._torch import torch
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import AFFINE
from radii.problem import (
    Answer,
    Instance,
    Norm,
    OutputSpec,
    Property,
    Query,
    Radius,
    Reach,
    SpecQuery,
    Tolerance,
    Witness,
)
from radii.problem.quantity import softmax


@dataclass(frozen=True, slots=True)
class Budget:
    """What one query (or, for `measure`, one instance) may cost; None means no limit.

    `seconds` are CPU seconds, `memory` bytes of resident memory of the process, `nodes` branch-and-bound nodes
    (for runs that must repeat exactly).
    """

    seconds: float | None = 60.0
    memory: int | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            object.__setattr__(self, "seconds", number(self.seconds, "budget seconds", low=0.0, strict=True))
        if self.memory is not None:
            object.__setattr__(self, "memory", byte_size(self.memory, "budget memory"))
            if self.memory == 0:
                raise InputError("budget memory: expected a size above 0, got 0")
        if self.nodes is not None:
            whole(self.nodes, "budget nodes", low=1)


class Clock:
    """CPU and wall seconds of this process since the clock was made."""

    def __init__(self) -> None:
        self._cpu = cpu_seconds()
        self._wall = time.perf_counter()

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds() - self._cpu

    @property
    def wall(self) -> float:
        """Wall-clock seconds so far."""
        return time.perf_counter() - self._wall


@runtime_checkable
class Decider(Protocol):
    """Anything that answers queries. Parameters that change answers belong into `name`/`version`-like identity."""

    @property
    def identity(self) -> str:
        """Name, version and parameters in one stable line: part of every stored result's key."""
        ...

    @property
    def proves(self) -> bool:
        """Whether it can answer ROBUST."""
        ...

    @property
    def refutes(self) -> bool:
        """Whether it can answer BROKEN."""
        ...

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, in order. Misuse raises; time, memory and failures are answers."""
        ...


@runtime_checkable
class Supporter(Protocol):
    """A decider that says beforehand what it can answer; one without `supports` is asked, and may refuse then."""

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind about networks of these operators; empty when it can."""
        ...


def supports(decider: Decider, property: Property, norm: Norm, operators: Sequence[str] = ()) -> str:
    """Why the decider cannot answer; empty when it can, or does not say."""
    return decider.supports(property, norm, operators) if isinstance(decider, Supporter) else ""


def beyond(
    property: Property,
    norm: Norm,
    operators: Sequence[str],
    *,
    takes: Sequence[str],
    norms: Sequence[str] = ("linf", "l2", "l1"),
    activations: Sequence[str] | None = None,
) -> str:
    """What of a question lies beyond a decider that takes this much; empty when nothing does.

    `takes` are subjects of properties (`Property.speaks_of`), `activations` names of operators besides the affine
    ones; None takes networks that radii itself cannot read, and with them any softmax.
    """
    if property.speaks_of not in takes:
        return f"it takes properties of {' and '.join(takes)}, and {property.kind} speaks of {property.speaks_of}"
    if norm.name not in norms:
        return f"it takes the norm {' and '.join(norms)}, not {norm.name}"
    if activations is None:
        return ""
    if unknown := [name for name in operators if name not in (*AFFINE, *activations, "Softmax")]:
        return f"it takes no networks with {', '.join(unknown)}"
    if "Softmax" in operators and not property.ordinal and property.speaks_of != "probabilities":
        return f"the network ends in a softmax, and {property.kind} speaks of more than the order of its outputs"
    return ""


@runtime_checkable
class Measurer(Protocol):
    """A decider that finds radii itself, which `search: direct` drives."""

    def measure(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        budget: Budget,
        *,
        tolerance: Tolerance,
        limit: float | None = None,
        progress: Callable[[int, Radius], None] | None = None,
    ) -> list[Radius]:
        """One radius per instance, in order; `progress` is called with the position of each as it ends.

        `tolerance` is a number of ε or `Percent` of the upper end; `closing_gap` gives the gap it means.
        """
        ...


@runtime_checkable
class Reacher(Protocol):
    """A decider that finds reaches: how large a property's quantity gets in a ball of fixed ε."""

    def reach(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        epsilon: float,
        budget: Budget,
        *,
        tolerance: float,
        progress: Callable[[int, Reach], None] | None = None,
    ) -> list[Reach]:
        """One reach per instance, in order; `progress` is called with the position of each as it ends."""
        ...


@runtime_checkable
class SpecDecider(Protocol):
    """A decider that also answers general linear specifications over boxes, as VNN-LIB asks."""

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST when no input of the box violates the specification, BROKEN with an input that does."""
        ...


def replay(classifier: Classifier, query: Query, x: Any) -> Witness | None:
    """The witness if x lies in the ball and the domain and breaks the property on the original model, else None.

    The input is rounded to the model's own floats, as the model would get it; the model runs in its own runtime, its
    outputs are compared as it gives them, distances are taken in float64. A tie with the label breaks classification.
    """
    value = np.asarray(x, dtype=classifier.dtype).reshape(query.instance.x.shape)
    if not np.isfinite(value).all() or not query.ball(classifier.domain).contains(value):
        return None
    return witness_at(classifier, query, value)


def witness_at(classifier: Classifier, query: Query, value: Any) -> Witness | None:
    """Like `replay`, for a value already known to lie in the domain; the query's ε is not looked at."""
    value = np.asarray(value, dtype=classifier.dtype).reshape(query.instance.x.shape)
    both = classifier.reference(np.stack([query.instance.x, value]))
    outputs = both[1]
    if not np.isfinite(outputs).all():
        return None
    label, distance = query.instance.label, query.norm.distance(value, query.instance.x)
    spec = violation(classifier, query.property, label, both[0])
    if not spec.violated(values_of(classifier, spec.of, outputs), distance):
        return None
    if spec.by_distance and not _steep(classifier, query, value, distance):
        return None
    others = outputs.astype(np.float64).copy()
    others[label] = -np.inf
    top = int(np.argmax(others))
    prediction = top if others[top] >= outputs[label] else label
    return Witness(value, distance, prediction, outputs)


def violation(classifier: Classifier, property: Property, label: int, center: Any) -> OutputSpec:
    """What breaks a property around an input whose outputs on the original model are `center`."""
    of = "probabilities" if property.speaks_of == "probabilities" else "outputs"
    return property.violations(classifier.classes, label, values_of(classifier, of, center))


def values_of(classifier: Classifier, of: str, outputs: Any) -> NDArray[np.float64]:
    """What rows are about: the outputs, or probabilities; a network that ends in a softmax gives those itself."""
    values = np.asarray(outputs, dtype=np.float64)
    return softmax(values) if of == "probabilities" and classifier.graph.logits is classifier.graph else values


def _steep(classifier: Classifier, query: Query, value: Any, distance: float) -> bool:
    """Whether a slope stands in float64 too: near the centre a difference of rounded outputs is mostly rounding."""
    pair = torch.from_numpy(np.stack([query.instance.x, value]).astype(np.float64))
    with torch.no_grad():
        center, there = classifier.logits(pair).numpy()
    return violation(classifier, query.property, query.instance.label, center).violated(there, distance)


def replay_spec(classifier: Classifier, query: SpecQuery, x: Any) -> Witness | None:
    """The witness if x lies in the box and its outputs on the original model violate the specification, else None."""
    value = np.asarray(x, dtype=classifier.dtype).reshape(classifier.input_shape)
    flat = value.astype(np.float64).ravel()
    if not (np.all(flat >= query.lower.ravel()) and np.all(flat <= query.upper.ravel())):
        return None
    outputs = classifier.reference(value[None])[0]
    if not np.isfinite(outputs).all() or not query.spec.violated(outputs):
        return None
    return Witness(value, 0.0, int(np.argmax(outputs)), outputs)
