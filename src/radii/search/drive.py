"""Drivers: run the state machines of many instances against something that answers queries.

`in_batches` asks a decider in this process: every round gathers the open questions of all instances into one call.
`concurrently` asks a `Pool`, anything that can start a query, hand back the first that finishes and cancel one; only
here are redundant queries really stopped. Search knows no runners: the layer that knows both wraps a runner into
three methods (see docs/search.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from radii.decide import Budget, Decider, values_of, violation
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import LINF, Answer, Classification, Instance, Norm, Property, Query, Radius, Verdict
from radii.search.case import Case
from radii.search.machine import GridSearch

Finish = Callable[[int, Radius], None]
Heard = Callable[[int, float, Answer], None]
CLASSIFICATION = Classification()
_CHUNK = 256  # inputs whose predictions are computed in one call


class Pool(Protocol):
    """Where queries run: each submitted key comes back exactly once, cancelled ones with the reason CANCELLED."""

    def submit(self, key: str, query: Query) -> None:
        """Start a query as soon as there is room."""
        ...

    def first(self) -> tuple[str, Answer]:
        """Wait for the next query to finish."""
        ...

    def cancel(self, key: str) -> None:
        """Stop a query; no error when it has finished meanwhile."""
        ...


def in_batches(
    classifier: Classifier,
    search: Callable[[], GridSearch],
    decider: Decider,
    instances: Sequence[Instance],
    budget: Budget,
    *,
    property: Property = CLASSIFICATION,
    norm: Norm = LINF,
    at_once: int = 256,
    progress: Finish | None = None,
    heard: Heard | None = None,
) -> list[Radius]:
    """One radius per instance, in order; the open questions of up to `at_once` instances make one batch.

    A batch is answered as a whole, so nothing is cancelled. An instance's wall time is its share of each round, by
    questions. `progress` is called with the place of each instance that is finished, `heard` with the place, the ε and
    the answer of every query.
    """
    results: dict[int, Radius] = {}
    finish = _finisher(results, progress)
    for start in range(0, len(instances), at_once):
        batch = instances[start : start + at_once]
        cases = dict(_begin(classifier, property, norm, search, batch, start, finish))
        walls = dict.fromkeys(cases, 0.0)
        while cases:
            asked = [(place, position) for place, case in cases.items() for position in case.machine.ask()]
            queries = [cases[place].query(position) for place, position in asked]
            begun = time.perf_counter()
            answers = _decided(decider, classifier, queries, budget)
            share = (time.perf_counter() - begun) / max(1, len(queries))
            for (place, position), answer in sorted(zip(asked, answers, strict=True), key=_quietest):
                cases[place].hear(position, answer)
                walls[place] += share
                if heard is not None:
                    heard(place, cases[place].machine.grid[position], answer)
            for place in [place for place, case in cases.items() if case.finished]:
                finish(place, cases.pop(place).radius(walls[place]))
    return [results[place] for place in range(len(instances))]


def concurrently(
    classifier: Classifier,
    search: Callable[[], GridSearch],
    pool: Pool,
    instances: Sequence[Instance],
    *,
    property: Property = CLASSIFICATION,
    norm: Norm = LINF,
    at_once: int = 1,
    progress: Finish | None = None,
) -> list[Radius]:
    """One radius per instance, in order, with up to k queries each for `at_once` instances in flight."""
    results: dict[int, Radius] = {}
    finish = _finisher(results, progress)
    waiting = _begin(classifier, property, norm, search, instances, 0, finish)
    cases: dict[int, Case] = {}
    while True:
        while len(cases) < at_once and (fresh := next(waiting, None)) is not None:
            cases[fresh[0]] = fresh[1]
            fresh[1].started = time.perf_counter()
            _submit(pool, *fresh)
        if not cases:
            return [results[place] for place in range(len(instances))]
        key, answer = pool.first()
        place, position = (int(part) for part in key.split("/"))
        case = cases[place]
        case.pending -= 1
        for redundant in case.hear(position, answer):
            pool.cancel(f"{place}/{redundant}")
        if not case.alarm:
            _submit(pool, place, case)
        if case.pending == 0:  # the cancelled ones have come back too, so their cost is known
            finish(place, cases.pop(place).radius())


def _begin(
    classifier: Classifier,
    property: Property,
    norm: Norm,
    search: Callable[[], GridSearch],
    instances: Sequence[Instance],
    start: int,
    finish: Finish,
) -> Iterator[tuple[int, Case]]:
    """A case for each instance that has the property where it stands; the others get radius 0 at once."""
    for chunk in range(0, len(instances), _CHUNK):
        part = instances[chunk : chunk + _CHUNK]
        outputs = classifier.reference(np.stack([instance.x for instance in part]))
        for offset, (instance, values) in enumerate(zip(part, outputs, strict=True)):
            place, prediction = start + chunk + offset, int(np.argmax(values))
            spec = violation(classifier, property, instance.label, values)
            if spec.violated(values_of(classifier, spec.of, values)):
                finish(place, Radius.wrong(prediction))
            else:
                yield place, Case(instance, search(), prediction, property, norm)


def _finisher(results: dict[int, Radius], progress: Finish | None) -> Finish:
    def finish(place: int, radius: Radius) -> None:
        results[place] = radius
        if progress is not None:
            progress(place, radius)

    return finish


def _submit(pool: Pool, place: int, case: Case) -> None:
    for position in case.machine.ask():
        pool.submit(f"{place}/{position}", case.query(position))
        case.pending += 1


def _quietest(item: tuple[tuple[int, int], Answer]) -> tuple[int, int]:
    """An order of telling in which no answer of the same batch makes another one redundant."""
    (_, position), answer = item
    if answer.verdict is Verdict.UNKNOWN:
        return 0, position
    return (1, position) if answer.verdict is Verdict.ROBUST else (2, -position)


def _decided(decider: Decider, classifier: Classifier, queries: list[Query], budget: Budget) -> list[Answer]:
    answers = decider.decide(classifier, queries, budget)
    if len(queries) != len(answers):
        raise InputError(f"{decider.identity}: expected {len(queries)} answers, one per query, got {len(answers)}")
    return answers
