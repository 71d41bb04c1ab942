"""Combinations that are no networks: classifiers made of several, and searches that prove their radii.

What breaks a combination is a condition on the outputs of all members. It is asked of the merged network, as clauses
that every violation meets in a ball; what is found there is replayed on the combination itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from radii._check import whole
from radii.decide import Budget, Clock, Decider, Measurer, witness_at
from radii.engine.prepare import working
from radii.ensembles.joint import room
from radii.ensembles.members import Merged
from radii.errors import InputError, UnsupportedOperator
from radii.models.classifier import Classifier, Floats
from radii.models.graph import Graph
from radii.problem import Answer, Instance, Norm, Property, Query, Radius, Tolerance, Witness
from radii.problem.radius import Cost


@dataclass(frozen=True, eq=False, repr=False)
class Combined(Classifier):
    """Several classifiers as one whose outputs come from all of theirs; it has no graph and no file."""

    kind: ClassVar[str]
    most: ClassVar[int]  # members
    members: tuple[Classifier, ...] = ()
    weights: tuple[float, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Classifier], weights: Sequence[float], name: str) -> Self:
        """The combination of members with these weights."""
        if len(members) > cls.most:
            raise InputError(f"{cls.kind}: expected at most {cls.most} members, got {len(members)}")
        pairs = sorted(zip(members, weights, strict=True), key=lambda pair: pair[0].fingerprint)
        first = pairs[0][0]
        return cls(
            onnx_bytes=b"",
            input_shape=first.input_shape,
            classes=first.classes,
            name=name,
            domain=first.domain,
            members=tuple(one for one, _ in pairs),
            weights=tuple(float(weight) for _, weight in pairs),
        )

    @cached_property
    def merged(self) -> Merged:
        """The members as one network, in the same order."""
        return Merged.of(self.members)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the members' and their weights."""
        said = f"{self.kind}|{self.weights}|" + "|".join(one.fingerprint for one in self.members)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    @cached_property
    def graph(self) -> Graph:
        """None: there is no network."""
        raise UnsupportedOperator(f"{self.name}: a {self.kind} has no graph of its own", (type(self).__name__,))

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The floats that the members take."""
        return self.merged.dtype

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The members' operators: what verifiers see of a combination."""
        return self.merged.operators

    def save(self, path: Any) -> Any:
        """Refused: there is no network to write."""
        raise InputError(f"{self.name}: expected a network to write, got a {self.kind}; save its members")

    def search(self, decider: Decider) -> CombinedSearch:
        """A decider that asks another one about the combination."""
        raise TypeError(f"{self.kind} has no search")


@dataclass(frozen=True)
class CombinedSearch:
    """Asks another decider about combinations, as clauses over the merged network."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True
    of: ClassVar[type[Combined]] = Combined
    version: ClassVar[int] = 1
    inner: Decider
    seed: int = field(default=0, compare=False)

    @property
    def identity(self) -> str:
        return f"{self.of.kind} {self.version} of {self.inner.identity}"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer; empty when it can."""
        if property.speaks_of != "classes":
            return f"a {self.of.kind} has classes and no other outputs: it takes classification, not {property.kind}"
        ask: Callable[..., str] | None = getattr(self.inner, "supports", None)
        return "" if ask is None else ask(self.posed(), norm, operators)

    def posed(self) -> Property:
        """A property of the kind that the other decider is asked about."""
        raise TypeError(f"{type(self).__name__} asks nothing")

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query."""
        combined = self._combined(classifier)
        answers = []
        for query in queries:
            seen = witness_at(combined, query, query.instance.x)
            answers.append(self.settle(combined, query, budget) if seen is None else Answer.broken(seen))
        return answers

    def settle(self, combined: Any, query: Query, budget: Budget) -> Answer:
        """The answer to a query whose input itself is right."""
        raise TypeError(f"{type(self).__name__} answers nothing")

    def replayed(self, combined: Combined, query: Query, answer: Answer) -> Witness | None:
        """The witness of an answer about the merged network, if it breaks the combination in the ball."""
        if answer.witness is None:
            return None
        seen = witness_at(combined, query, answer.witness.x)
        return seen if seen is not None and seen.distance <= query.epsilon else None

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
        """One radius per instance, in order."""
        combined, found = self._combined(classifier), list[Radius]()
        for position, instance in enumerate(instances):
            found.append(self._measure(combined, instance, property, norm, budget, tolerance, limit))
            if progress is not None:
                progress(position, found[-1])
        return found

    def _measure(
        self,
        combined: Combined,
        instance: Instance,
        property: Property,
        norm: Norm,
        budget: Budget,
        tolerance: Tolerance,
        limit: float | None,
    ) -> Radius:
        clock, query, kind = Clock(), Query(instance, 0.0, property, norm), self.of.kind
        if not isinstance(self.inner, Measurer):
            raise InputError(f"{kind}: expected a verifier that measures radii, got {self.inner.identity}")
        outputs = combined.reference(instance.x[None])[0]
        if witness_at(combined, query, instance.x) is not None:
            return Radius.wrong(_prediction(outputs, instance.label), cost=Cost(cpu_seconds=clock.cpu))
        with working(combined.merged):
            seen = self.attack(combined, query)
            top = min(room(combined, instance, norm), np.inf if limit is None else limit)
            if seen is not None and seen.distance <= top:
                top = float(np.nextafter(seen.distance, 0.0))  # the witness lies on the border: inside it none may
            if not np.isfinite(top):
                raise InputError(
                    f"{kind}: no witness was found and the domain is unbounded; give a limit (the largest ε)"
                )
            left = None if budget.seconds is None else max(1e-3, budget.seconds - clock.cpu)
            radius = self.prove(combined, query, top, replace(budget, seconds=left), tolerance, seen)
        nearer = None if radius.witness is None else witness_at(combined, query, radius.witness.x)
        best = min((one for one in (seen, nearer) if one is not None), key=lambda one: one.distance, default=None)
        cost = replace(radius.cost, queries=1, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        return Radius.found(
            radius.lower,
            None if best is None else best.distance,
            tolerance=tolerance,
            limit=limit,
            witness=best,
            proof=radius.proof,
            prediction=_prediction(outputs, instance.label),
            cost=cost,
            note=radius.note,
        )

    def attack(self, combined: Any, query: Query) -> Witness | None:
        """The nearest replayed point that breaks the combination."""
        raise TypeError(f"{type(self).__name__} attacks nothing")

    def prove(
        self, combined: Any, query: Query, top: float, budget: Budget, tolerance: Tolerance, seen: Witness | None
    ) -> Radius:
        """What is proven of the ball of size `top`; a witness of the radius need not break the combination."""
        raise TypeError(f"{type(self).__name__} proves nothing")

    def _combined(self, classifier: Classifier) -> Combined:
        if not isinstance(classifier, self.of):
            raise InputError(f"{self.of.kind}: expected a {self.of.kind} (radii.combine), got a single network")
        whole(len(classifier.members), "members", low=2)
        return classifier


def _prediction(outputs: Floats, label: int) -> int:
    return label if outputs[label] == outputs.max() else int(np.argmax(outputs))


def suited(decider: Decider, classifier: Classifier) -> Decider:
    """The decider that answers for a classifier: one that knows combinations, where it is one."""
    known = isinstance(decider, CombinedSearch)
    return classifier.search(decider) if isinstance(classifier, Combined) and not known else decider
