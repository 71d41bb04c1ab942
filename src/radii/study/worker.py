"""What a worker does: one radius or reach, or one query; and how a search over a grid asks a runner."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from radii._cpu import stopping_point
from radii.decide import Budget, Decider
from radii.models.classifier import Classifier
from radii.problem import Answer, Instance, Query, Reason, Result
from radii.runners import Limits, Outcome, Runner, Task
from radii.store import QueryRecord
from radii.study.question import Question
from radii.study.settings import RadiusSettings
from radii.study.sources import AnySource

TICK_SECONDS = 0.5  # how often a waiting run looks for Ctrl-C and renews its claims
_KEPT = 8  # classifiers that a worker keeps loaded
_loaded: OrderedDict[str, Classifier] = OrderedDict()


def classifier_of(source: AnySource) -> Classifier:
    """The classifier of a source, loaded once per worker; it was checked against onnxruntime when it was planned."""
    if source.fingerprint not in _loaded:
        _loaded[source.fingerprint] = source.load(check=False)
        if len(_loaded) > _KEPT:
            _loaded.popitem(last=False)
    _loaded.move_to_end(source.fingerprint)
    return _loaded[source.fingerprint]


def measure(source: AnySource, settings: RadiusSettings, decider: Decider, instance: Instance) -> Result:
    """The radius of one instance by direct search, or its reach."""
    return Question(source, classifier_of(source), settings, decider).results([instance])[0]


def answer(source: AnySource, decider: Decider, budget: Budget, query: Query) -> Answer:
    """The answer to one query."""
    return decider.decide(classifier_of(source), [query], budget)[0]


def limits(budget: Budget) -> Limits:
    """Where the runner stops a task: a little beyond the budget, which deciders keep by themselves.

    A decider that stops itself still reports what it has proven; one that is stopped from outside cannot. The wall
    limit is for tasks that hang without computing; it is wide, for a worker may share its core with others.
    """
    return Limits(
        cpu_seconds=None if budget.seconds is None else stopping_point(budget.seconds),
        wall_seconds=None if budget.seconds is None else 20.0 * budget.seconds + 600.0,
        memory_bytes=None if budget.memory is None else budget.memory + budget.memory // 10,
    )


@dataclass
class RunnerPool:
    """A runner as a search over a grid sees it; `trace` keeps every answer by the instance's place.

    `tick` is called while waiting and may raise to end the search.
    """

    runner: Runner
    question: Question
    tick: Callable[[], None]
    trace: dict[int, list[QueryRecord]] = field(default_factory=dict)
    _asked: dict[str, Query] = field(default_factory=dict)

    def submit(self, key: str, query: Query) -> None:
        """Start a query as soon as there is room."""
        self._asked[key] = query
        budget = self.question.settings.budget
        args = (self.question.source, self.question.decider, budget, query)
        self.runner.submit(Task(key=key, function=answer, args=args, limits=limits(budget), retries=1))

    def first(self) -> tuple[str, Answer]:
        """Wait for the next query to finish."""
        while True:
            self.tick()
            outcome = self.runner.wait(timeout=TICK_SECONDS)
            if outcome is not None and outcome.key in self._asked:
                break
        query, found = self._asked.pop(outcome.key), _answered(outcome)
        place = int(outcome.key.split("/")[0])
        record = QueryRecord.of(query.epsilon, found, self.question.decider.identity)
        self.trace.setdefault(place, []).append(record)
        return outcome.key, found

    def cancel(self, key: str) -> None:
        """Stop a query; no error when it has finished meanwhile."""
        self.runner.cancel(key)

    def abandon(self) -> None:
        """Stop everything that was asked and wait for it to be gone."""
        for key in self._asked:
            self.runner.cancel(key)
        while self._asked and (outcome := self.runner.wait(timeout=10.0)) is not None:
            self._asked.pop(outcome.key, None)


def _answered(outcome: Outcome) -> Answer:
    cost = {"cpu_seconds": outcome.cpu_seconds, "wall_seconds": outcome.wall_seconds}
    if outcome.failure is None:
        found: Answer = outcome.value
        return found
    known = {reason.value: reason for reason in (Reason.TIME, Reason.MEMORY, Reason.CANCELLED)}
    reason = known.get(outcome.failure.reason.value, Reason.ERROR)
    return Answer.unknown(reason, outcome.failure.message, peak_memory=outcome.peak_memory or 0, **cost)
