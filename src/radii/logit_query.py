"""LogitQuery: a query as exact verifiers see it: a region of inputs, clauses over logits, and its replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.decide import replay, replay_spec
from radii.errors import InputError, UnsupportedOperator
from radii.models.classifier import Classifier
from radii.models.graph import Graph
from radii.problem import LINF, Classification, Domain, Norm, OutputSpec, Query, SpecQuery, Witness

Vector = NDArray[np.float64]
Missing = Callable[[Graph], Sequence[str]]  # names the operators that a verifier does not know


@dataclass(frozen=True, eq=False)
class Region:
    """A ball within a box, or just a box (center None). `low` and `high` are rounded outwards, so nothing is lost."""

    low: Vector
    high: Vector
    center: Vector | None = None
    epsilon: float = 0.0
    norm: Norm = LINF

    @staticmethod
    def ball(query: Query, domain: Domain) -> Region:
        """The ball of a query within the domain."""
        size = query.epsilon
        center = query.instance.x.astype(np.float64).ravel()
        low = np.maximum(np.nextafter(center - size, -np.inf), domain.low)
        high = np.minimum(np.nextafter(center + size, np.inf), domain.high)
        return Region(low, high, center, size, query.norm)

    @staticmethod
    def box(query: SpecQuery) -> Region:
        """The box of a specification."""
        return Region(query.lower.ravel(), query.upper.ravel())

    @property
    def empty(self) -> bool:
        """Whether no input is left."""
        return bool(np.any(self.low > self.high))

    @property
    def is_box(self) -> bool:
        """Whether the region is a box, so that an encoding's own bounds say it all."""
        return self.center is None or self.norm == LINF

    def settle(self, x: Any, dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
        """The input as floats of a precision that lie inside the region."""
        wanted = np.asarray(x, dtype=np.float64).ravel()
        if self.center is None or self.norm == LINF:
            inner_low, inner_high = self.low, self.high
            if self.center is not None:
                inner_low = np.maximum(self.low, self.center - self.epsilon)
                inner_high = np.minimum(self.high, self.center + self.epsilon)
            return _inside(wanted, inner_low, inner_high, dtype)
        value = _inside(wanted, self.low, self.high, dtype)
        for shrink in (1.0, 1 - 1e-7, 1 - 1e-6, 1 - 1e-5):
            size = self.norm.distance(value, self.center)
            if size <= self.epsilon:
                break
            nearer = self.center + (value - self.center) * (shrink * self.epsilon / size)
            value = _inside(nearer, self.low, self.high, dtype)
        return value


def _inside(x: Vector, low: Vector, high: Vector, dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
    value = np.clip(x, low, high).astype(dtype)
    value = np.where(value > high, np.nextafter(value, -np.inf, dtype=dtype), value)
    return np.asarray(np.where(value < low, np.nextafter(value, np.inf, dtype=dtype), value), dtype=dtype)


@dataclass(frozen=True, eq=False)
class LogitQuery:
    """One thing to decide: is there an input of the region whose logits meet a clause of the specification?

    `confirm` replays a candidate on the original model. `obstacle` is why the query cannot be put, else empty.
    """

    classifier: Classifier
    region: Region
    spec: OutputSpec
    confirm: Callable[[Any], Witness | None]
    obstacle: str = ""


def logit_query(classifier: Classifier, query: Query, norms: tuple[str, ...], missing: Missing) -> LogitQuery:
    """The query as one about logits, for a verifier that knows these norms."""
    region = Region.ball(query, classifier.domain)
    reference = classifier.reference(query.instance.x[None])[0]
    if query.property.speaks_of not in ("classes", "outputs"):
        spec = Classification().violations(classifier.classes, query.instance.label)
        obstacle = f"{query.property.kind} is no property of the outputs alone"
    else:
        spec = query.property.violations(classifier.classes, query.instance.label, reference)
        obstacle = _obstacle(classifier, region, spec, missing)
    if not obstacle and query.norm.name not in norms:
        obstacle = f"expected the norm {' or '.join(norms)}, got {query.norm}"

    def confirm(x: Any) -> Witness | None:
        return replay(classifier, query, region.settle(x, classifier.dtype))

    return LogitQuery(classifier, region, spec, confirm, obstacle)


def check_spec(classifier: Classifier, query: SpecQuery) -> None:
    """Raises `InputError` when the specification was written for another network."""
    if query.lower.size != classifier.size or query.spec.outputs != classifier.classes:
        raise InputError(
            f"query: expected {classifier.size} inputs and {classifier.classes} outputs as {classifier!r} has, "
            f"got {query.lower.size} and {query.spec.outputs}; it was written for another network"
        )


def logit_spec(classifier: Classifier, query: SpecQuery, missing: Missing) -> LogitQuery:
    """The specification as one about logits."""
    check_spec(classifier, query)
    region = Region.box(query)

    def confirm(x: Any) -> Witness | None:
        return replay_spec(classifier, query, region.settle(x, classifier.dtype))

    return LogitQuery(classifier, region, query.spec, confirm, _obstacle(classifier, region, query.spec, missing))


def _obstacle(classifier: Classifier, region: Region, spec: OutputSpec, missing: Missing) -> str:
    try:
        names = missing(classifier.graph)
    except UnsupportedOperator as error:  # the graph itself cannot be read
        return str(error)
    if names:
        return f"no piecewise-linear form for {', '.join(names)}"
    if region.empty:
        return "the ball holds no point of the domain"
    if not (np.isfinite(region.low).all() and np.isfinite(region.high).all()):
        return "expected finite bounds for every input"
    if classifier.graph.logits is not classifier.graph and not all(
        _orders(c.coefficients, c.bounds) for c in spec.clauses
    ):
        return "the network ends in a softmax, and the property speaks of more than the order of its outputs"
    return ""


def _orders(rows: Vector, bounds: Vector) -> bool:
    """Whether rows only compare two outputs, which a softmax does not change."""
    two = (np.count_nonzero(rows, axis=1) == 2) & (rows.sum(axis=1) == 0)
    return bool(np.all(two) and not bounds.any())
