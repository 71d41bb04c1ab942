"""A complete decider for linear classifiers and L∞ balls, and two pools: real ones, small enough to trust."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from radii.decide import Budget, replay
from radii.models import Classifier
from radii.problem import Answer, Classification, Proof, Query, Reason
from radii.runners import Limits, Runner, Task
from radii.testing.toys import LinearToy


@dataclass
class Exact:
    """Decides by minimising each margin over the box; `missing` maps values of ε to reasons for no answer."""

    toy: LinearToy
    missing: dict[float, Reason] = field(default_factory=dict)
    lies: frozenset[float] = frozenset()
    asked: list[int] = field(default_factory=list)

    identity = "exact-linear"
    proves = True
    refutes = True

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        self.asked.append(len(queries))
        return [self.one(classifier, query) for query in queries]

    def one(self, classifier: Classifier, query: Query) -> Answer:
        cost: dict[str, Any] = {"cpu_seconds": 0.5, "wall_seconds": 0.25, "nodes": 3, "peak_memory": 1000}
        if query.epsilon in self.missing:
            return Answer.unknown(self.missing[query.epsilon], "as the test wants it", **cost)
        if query.epsilon in self.lies:
            return Answer.robust(Proof("a lie"), **cost)
        low, high = query.ball(classifier.domain).box()
        assert isinstance(query.property, Classification)
        label = query.instance.label
        for target in query.property.targets(classifier.classes, label):
            slope = self.toy.weight[label] - self.toy.weight[target]
            corner = np.where(slope > 0, low.ravel(), high.ravel())
            if slope @ corner + self.toy.bias[label] - self.toy.bias[target] <= 0:
                witness = replay(classifier, query, inside(corner, query))
                if witness is None:
                    return Answer.unknown(Reason.INCOMPLETE, "the witness does not replay", **cost)
                return Answer.broken(witness, **cost)
        return Answer.robust(Proof("closed form"), **cost)


def inside(corner: Any, query: Query) -> Any:
    """The corner in float32, rounded towards the centre where rounding has left the ball."""
    center = query.instance.x.ravel()
    rounded = corner.astype(np.float32)
    outside = np.abs(rounded.astype(np.float64) - center.astype(np.float64)) > query.epsilon
    return np.where(outside, np.nextafter(rounded, center), rounded)


class ShufflingPool:
    """Finishes the pending queries in a random order; a cancelled one comes back as CANCELLED, at any time later."""

    def __init__(self, classifier: Classifier, decider: Exact, seed: int) -> None:
        self._classifier, self._decider = classifier, decider
        self._random = random.Random(seed)
        self._pending: dict[str, Query] = {}
        self._cancelled: set[str] = set()
        self.most = 0
        self.cancels = 0

    def submit(self, key: str, query: Query) -> None:
        assert key not in self._pending
        self._pending[key] = query
        self.most = max(self.most, len(self._pending) - len(self._cancelled))

    def first(self) -> tuple[str, Answer]:
        key = self._random.choice(sorted(self._pending))
        query = self._pending.pop(key)
        if key in self._cancelled:
            self._cancelled.remove(key)
            return key, Answer.unknown(Reason.CANCELLED, cpu_seconds=0.125)
        return key, self._decider.one(self._classifier, query)

    def cancel(self, key: str) -> None:
        if key in self._pending:
            self._cancelled.add(key)
            self.cancels += 1


class RunnerPool:
    """The coupling of a search with a runner: what the layer above both writes (see docs/search.md)."""

    def __init__(self, runner: Runner, classifier: Classifier, decider: Any, budget: Budget) -> None:
        self._runner, self._fixed = runner, (classifier, decider, budget)
        self._limits = Limits(cpu_seconds=budget.seconds, memory_bytes=budget.memory)

    def submit(self, key: str, query: Query) -> None:
        self._runner.submit(Task(key=key, function=decide_one, args=(*self._fixed, query), limits=self._limits))

    def first(self) -> tuple[str, Answer]:
        outcome = self._runner.wait()
        assert outcome is not None
        if outcome.ok:
            return outcome.key, outcome.value
        reasons = {"time": Reason.TIME, "memory": Reason.MEMORY, "cancelled": Reason.CANCELLED}
        reason = reasons.get(str(outcome.reason), Reason.ERROR)
        message = outcome.failure.message if outcome.failure else ""
        return outcome.key, Answer.unknown(reason, message, cpu_seconds=outcome.cpu_seconds)

    def cancel(self, key: str) -> None:
        self._runner.cancel(key)


def decide_one(classifier: Classifier, decider: Any, budget: Budget, query: Query) -> Answer:
    return decider.decide(classifier, [query], budget)[0]
