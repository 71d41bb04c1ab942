"""What every attack that decides queries shares: checks, groups, budgets, replays. A new attack writes `search`.

The attacks by name are in `radii.attacks.names`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from radii.attacks.exact import Floats
from radii.decide import Budget, Clock, beyond, replay
from radii.models.classifier import Classifier
from radii.models.graph import ACTIVATIONS
from radii.problem import Answer, Norm, Property, Query, Reason, Witness

Candidates = Iterator[Floats]
"""Batches of points, one per query, NaN where there is none: each is replayed until every query is broken."""


class Refused(Exception):
    """Raised by `search` when the tool behind an attack does not take these queries: UNKNOWN, with its words."""


@dataclass(frozen=True)
class Attack(ABC):
    """A decider that looks for witnesses: BROKEN with one that was replayed, else UNKNOWN. Its fields identify it."""

    proves: ClassVar[bool] = False
    refutes: ClassVar[bool] = True

    name: ClassVar[str] = ""  # what studies and commands call it; the class's name unless given
    takes: ClassVar[tuple[str, ...]] = ("classes", "outputs")  # what a property may speak of

    @property
    def identity(self) -> str:
        return repr(self).replace(type(self).__name__, self.name or type(self).__name__, 1)

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why this attack cannot try queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=self.takes, activations=ACTIVATIONS)

    def batch(self, query: Query) -> Hashable:
        """What queries that `search` gets together have in common; the norm is the least."""
        return query.norm

    @abstractmethod
    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Candidates:
        """Candidates for queries of one batch, in rounds; a round costs little enough to look at the clock after it."""

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, in order; queries that share a batch are searched together."""
        answers: dict[int, Answer] = {}
        groups: dict[Hashable, list[int]] = {}
        for i, query in enumerate(queries):
            classifier.check_inputs(query.instance.x[None], [query.instance.label])
            why = self.supports(query.property, query.norm, classifier.operators)
            if why:
                answers[i] = Answer.unknown(Reason.UNSUPPORTED, why)
            else:
                query.property.check(classifier.classes, query.instance.label)
                groups.setdefault(self.batch(query), []).append(i)
        for members in groups.values():
            answers.update(zip(members, self._group(classifier, [queries[i] for i in members], budget)))
        return [answers[i] for i in range(len(queries))]

    def _group(self, classifier: Classifier, queries: list[Query], budget: Budget) -> list[Answer]:
        clock = Clock()
        found: dict[int, Witness] = {}
        limit = np.inf if budget.seconds is None else budget.seconds * len(queries)
        reason, why = Reason.INCOMPLETE, f"{self.name or type(self).__name__} found no witness"
        try:
            for points in self.search(classifier, queries):
                found.update(_replayed(classifier, queries, points, found.__contains__))
                if len(found) == len(queries):
                    break
                if clock.cpu > limit:
                    reason = Reason.TIME
                    break
        except Refused as refusal:
            reason, why = Reason.UNSUPPORTED, str(refusal)
        cost = {"cpu_seconds": clock.cpu / len(queries), "wall_seconds": clock.wall / len(queries)}
        return [
            Answer.broken(found[i], **cost) if i in found else Answer.unknown(reason, why, **cost)
            for i in range(len(queries))
        ]


def _replayed(
    classifier: Classifier, queries: list[Query], points: Floats, skip: Callable[[int], bool]
) -> Iterator[tuple[int, Witness]]:
    for i, (query, point) in enumerate(zip(queries, points)):
        if not skip(i) and np.isfinite(point).all():
            witness = replay(classifier, query, point)
            if witness is not None:
                yield i, witness
