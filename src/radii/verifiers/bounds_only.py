"""BoundsOnly: one pass of linear bounds as a decider; it can only prove, and says nothing where it cannot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from radii._torch import torch
from radii.bounds.bound import bound
from radii.bounds.lowering import unbounded
from radii.bounds.region import Region
from radii.decide import Budget, Clock, beyond
from radii.engine.output_rows import margins
from radii.errors import UnsupportedOperator
from radii.models.classifier import Classifier
from radii.models.graph import ACTIVATIONS
from radii.problem import Answer, Norm, Proof, Property, Query, Reason
from radii.problem.property import target_of

_CHUNK = 32  # balls bounded at once


@dataclass(frozen=True)
class BoundsOnly:
    """Answers ROBUST where one pass of linear bounds proves it, else UNKNOWN (incomplete)."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = False

    @property
    def identity(self) -> str:
        return "bounds"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes",), activations=ACTIVATIONS)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query; balls of one norm are bounded together."""
        if unreadable := _unreadable(classifier):
            return [Answer.unknown(Reason.UNSUPPORTED, unreadable) for _ in queries]
        answers: dict[int, Answer] = {}
        missing = unbounded(classifier.graph)
        groups: dict[tuple[Norm, int | None], list[int]] = defaultdict(list)
        for i, query in enumerate(queries):
            classifier.check_inputs(query.instance.x, query.instance.label, strict=False)
            if missing:
                answers[i] = Answer.unknown(Reason.UNSUPPORTED, f"no bounds for {', '.join(missing)}")
            elif query.property.speaks_of == "classes":
                groups[query.norm, target_of(query.property)].append(i)
            else:
                answers[i] = _unsupported(query)
        for members in groups.values():
            for start in range(0, len(members), _CHUNK):
                part = members[start : start + _CHUNK]
                clock = Clock()
                least = _least([queries[i] for i in part], classifier)
                cost = {"cpu_seconds": clock.cpu / len(part), "wall_seconds": clock.wall / len(part)}
                answers.update(zip(part, (_bounded(float(value), cost) for value in least)))
        return [answers[i] for i in range(len(queries))]


def _least(queries: list[Query], classifier: Classifier) -> Any:
    """The least margin of each query that linear bounds can promise."""
    asked = [margins(classifier, query.instance.label, query.property) for query in queries]
    center = torch.from_numpy(np.stack([query.instance.x.reshape(-1) for query in queries]))
    size = torch.tensor([query.epsilon for query in queries], dtype=torch.float64)
    region = Region.around(center, size, queries[0].norm, classifier.domain)
    root = bound(asked[0].graph, region)
    linear = root.margins(torch.stack([one.rows for one in asked]))
    return region.lowest(linear.a, linear.shifted() - torch.stack([one.shift for one in asked])).amin(1)


def _bounded(least: float, cost: dict[str, Any]) -> Answer:
    # Written so that NaN is not robust.
    if least > 0:
        return Answer.robust(Proof("linear bounds", "real"), **cost)
    return Answer.unknown(Reason.INCOMPLETE, f"the bounds promise a margin of {least:.3g} only", **cost)


def _unreadable(classifier: Classifier) -> str:
    """Which operators keep the network's graph from being read; empty when it can be."""
    try:
        _ = classifier.graph
    except UnsupportedOperator as error:
        return str(error)
    return ""


def _unsupported(query: Query) -> Answer:
    return Answer.unknown(Reason.UNSUPPORTED, f"expected a classification property, got {query.property.kind}")
