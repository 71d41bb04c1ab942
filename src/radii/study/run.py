"""Runs the missing units of a plan: each result is stored as it is finished, and nothing is done twice."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import InputError, StoreError
from radii.problem import Answer, Radius, Result
from radii.problem.radius import Cost
from radii.runners import Outcome, Reason, Runner, Task, fair_order
from radii.search import concurrently
from radii.store import Environment, QueryRecord, Record
from radii.study.claims import SECONDS, Claims
from radii.study.plan import Plan, PlannedUnit
from radii.study.question import BATCH
from radii.study.stop import Stop, Stopped
from radii.study.worker import TICK_SECONDS, RunnerPool, limits, measure

if TYPE_CHECKING:
    from radii.store import Alarm, Store

_PATIENCE = 0.5  # seconds between two writes: one for each unit would cost quick verifiers more than the radii
_CHUNK = 8  # instances of one question that a search over a grid takes on at once, for each worker


@dataclass(frozen=True)
class Finished:
    """One unit that this run has finished; `failure` says why a unit gave nothing."""

    unit: PlannedUnit
    result: Result
    failure: str = ""


@dataclass
class Summary:
    """What a run did; `theirs` were finished by other processes meanwhile."""

    planned: int = 0
    known: int = 0
    done: int = 0
    theirs: int = 0
    failures: list[Finished] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    stopped: bool = False
    trouble: str = ""  # what ended the run before its time

    @property
    def complete(self) -> bool:
        """Whether every unit has its result and none of this run failed."""
        return not self.stopped and not self.failures and not self.alarms


Listen = Callable[[Finished], None]


@dataclass
class Run:
    """One process's part in a study, or in a distribution asked for from Python (a plan without a name).

    Without a runner the units are computed in this process, in batches. `listen` hears of every finished unit, `idle`
    while others are waited for, `tick` a few times per second.
    """

    plan: Plan
    store: Store
    runner: Runner | None
    stop: Stop = field(default_factory=Stop)
    retry: bool = False
    command: str = ""
    listen: Listen | None = None
    idle: Callable[[int], None] | None = None
    tick: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self._environment = Environment.current(self.command, self.plan.seed)
        self.summary = Summary(planned=len(self.plan.units))
        self._retry_before: float | None = None
        self._missing: list[PlannedUnit] | None = None
        self._waiting: list[Record] = []
        self._written = 0.0

    def prepare(self) -> int:
        """How many units there are to do, once the plan is in the store; a changed classifier is refused here."""
        self._retry_before = time.time() if self.retry else None
        if self.plan.name and self.store.studies().get(self.plan.name) != self.plan.body:
            self.store.plan(self.plan.name, self.plan.records, self.plan.body)
        wanted = {unit.key for unit in self.store.pending(self.plan.records, retry_before=self._retry_before)}
        self._missing = [unit for unit in self.plan.units if unit.key in wanted]
        self.summary.known = len(self.plan.units) - len(self._missing)
        return len(self._missing)

    def run(self) -> Summary:
        """Do what is missing; a stop leaves everything finished in the store and gives the claims back."""
        if self._missing is None:
            self.prepare()
        missing = self._missing or []
        if self.runner is None:
            self._with_claims(Claims(self.store, missing, self._retry_before, self._patience()), self._here)
            return self.summary
        measured = [unit for unit in missing if unit.question.settings.grid is None]
        asked = [unit for unit in missing if unit.question.settings.grid is not None]
        for units, go in ((_fair(measured), self._measure), (_by_question(asked, self._chunk()), self._ask)):
            if units and not self.summary.stopped:
                self._with_claims(Claims(self.store, units, self._retry_before, self._patience()), go)
        return self.summary

    def _look(self, claims: Claims) -> None:
        """What is done between two units: hear a stop, keep the claims, show how it stands."""
        self.stop.check()
        claims.tend()
        if self.tick is not None:
            self.tick()

    def _patience(self) -> float:
        # A runner that works in this process cannot renew its claims while it does.
        return SECONDS if self.runner is not None and self.runner.hard_limits else 3600.0

    def _with_claims(self, claims: Claims, go: Callable[[Claims], None]) -> None:
        try:
            go(claims)
        except Stopped:
            self.summary.stopped = True
        except StoreError:
            claims.end()  # a store that cannot be written is not waited for again; the next run takes the claims over
            raise
        finally:
            self.summary.theirs += claims.theirs
            if claims.active:
                claims.end()
                with contextlib.suppress(StoreError):
                    self.store.release(claims.owner)

    # In this process: units of one question share batches, and are stored as they end.

    def _here(self, claims: Claims) -> None:
        while not claims.exhausted:
            self._look(claims)
            drawn = claims.draw(BATCH)
            if not drawn:
                self._rest(claims)
            for _, group in groupby(self._right(drawn), key=lambda unit: id(unit.question)):
                self._solve(list(group))

    def _solve(self, units: Sequence[PlannedUnit]) -> None:
        question = units[0].question
        trace: dict[int, list[QueryRecord]] = defaultdict(list)
        left = set(range(len(units)))

        def heard(place: int, epsilon: float, answer: Answer) -> None:
            trace[place].append(QueryRecord.of(epsilon, answer, question.decider.identity))

        def ended(place: int, result: Result) -> None:
            if place in left:
                left.remove(place)
                direct = question.settings.grid is None
                rows = _searched(result, question.decider.identity) if direct else tuple(trace[place])
                self._keep(units[place], result, rows, patient=True)

        try:
            instances = [unit.instance for unit in units]
            for place, result in enumerate(question.results(instances, ended, heard)):
                ended(place, result)
        finally:
            self._write()

    # Direct search: one unit is one task.

    @property
    def _pool(self) -> Runner:
        if self.runner is None:
            raise InputError("run: expected a runner, got none")
        return self.runner

    def _measure(self, claims: Claims) -> None:
        flying: dict[str, PlannedUnit] = {}
        landing = True
        try:
            while flying or not claims.exhausted:
                self._look(claims)
                room = self._room() - len(flying)
                # Refilled when half of the units are done: a claim waits for the disk, so it should serve several.
                drawn = claims.draw(room) if 2 * room >= self._room() else []
                for unit in self._right(drawn):
                    self._pool.submit(_task(unit))
                    flying[unit.key] = unit
                if not flying:
                    self._rest(claims)
                elif (outcome := self._pool.wait(timeout=TICK_SECONDS)) is not None:
                    self._land(flying.pop(outcome.key), outcome)
        except StoreError:
            landing = False
            raise
        finally:
            for key in flying:
                self._pool.cancel(key)
            while flying and (outcome := self._pool.wait(timeout=10.0)) is not None:
                unit = flying.pop(outcome.key)
                if outcome.ok and landing:  # it was finished before the stop reached it
                    self._land(unit, outcome)

    def _room(self) -> int:
        return 2 * self._pool.workers if self._pool.hard_limits else 1

    def _rest(self, claims: Claims) -> None:
        if claims.waiting:
            if self.idle is not None:
                self.idle(claims.waiting)
            time.sleep(0.2)

    def _land(self, unit: PlannedUnit, outcome: Outcome) -> None:
        if outcome.failure is None:
            result: Result = outcome.value
            peak = max(result.cost.peak_memory, outcome.peak_memory or 0)
            whole = replace(result, cost=replace(result.cost, peak_memory=peak))
            self._keep(unit, whole, _searched(whole, unit.question.decider.identity))
            return
        reason, message = outcome.failure.reason, outcome.failure.message
        cost = Cost(
            queries=1,
            timeouts=int(reason is Reason.TIME),
            memory_errors=int(reason is Reason.MEMORY),
            cancelled=int(reason is Reason.CANCELLED),
            cpu_seconds=outcome.cpu_seconds,
            wall_seconds=outcome.wall_seconds,
            peak_memory=outcome.peak_memory or 0,
        )
        # A limit that was reached is an answer; a crash or an exception is a failure of the run.
        failure = "" if reason in (Reason.TIME, Reason.MEMORY) else f"{reason}: {message}"
        self._keep(unit, unit.question.nothing(unit.instance, cost, f"{reason}: {message}"), failure=failure)

    # Search over a grid: one query is one task, and redundant ones are cancelled.

    def _chunk(self) -> int:
        return _CHUNK * self._pool.workers

    def _ask(self, claims: Claims) -> None:
        while not claims.exhausted:
            self._look(claims)
            drawn = claims.draw(self._chunk())
            if not drawn:
                self._rest(claims)
            for _, group in groupby(self._right(drawn), key=lambda unit: id(unit.question)):
                self._search(list(group), claims)

    def _search(self, units: Sequence[PlannedUnit], claims: Claims) -> None:
        question = units[0].question
        pool = RunnerPool(self._pool, question, lambda: self._look(claims))

        def finished(place: int, radius: Radius) -> None:
            lost = [q for q in pool.trace.get(place, ()) if q.reason == "error"]
            failure = f"{len(lost)} queries failed, the last: {lost[-1].detail}" if lost else ""
            self._keep(units[place], radius, tuple(pool.trace.pop(place, ())), failure)

        at_once = 1 + self._pool.workers // question.settings.k if self._pool.hard_limits else 1
        asked, instances = question.settings, [unit.instance for unit in units]
        try:
            concurrently(
                question.classifier,
                asked.machine,
                pool,
                instances,
                property=asked.property,
                norm=asked.norm,
                at_once=at_once,
                progress=finished,
            )
        finally:
            pool.abandon()

    # Storing.

    def _right(self, units: Sequence[PlannedUnit]) -> list[PlannedUnit]:
        """The units whose input is classified correctly, where only those are studied; the others have radius 0."""
        right: list[PlannedUnit] = []
        for chosen, group in groupby(units, key=lambda unit: unit.question if unit.only_correct else None):
            part = list(group)
            if chosen is None:
                right += part
                continue
            outputs = chosen.classifier.reference(np.stack([unit.instance.x for unit in part]))
            for unit, prediction in zip(part, np.argmax(outputs, axis=1).tolist(), strict=True):
                if prediction == unit.instance.label:
                    right.append(unit)
                else:
                    self._keep(unit, Radius.wrong(prediction))
        return right

    def _keep(
        self,
        unit: PlannedUnit,
        result: Result,
        queries: tuple[QueryRecord, ...] = (),
        failure: str = "",
        patient: bool = False,
    ) -> None:
        """Stores a result: at once, or (patient) with others that come within half a second."""
        self._waiting.append(Record.of(unit.record, result, queries=queries, environment=self._environment))
        if not patient or time.monotonic() - self._written >= _PATIENCE:
            self._write()
        self.summary.done += 1
        finished = Finished(unit, result, failure)
        if failure:
            self.summary.failures.append(finished)
        if self.listen is not None:
            self.listen(finished)

    def _write(self) -> None:
        if self._waiting:
            self.summary.alarms += self.store.put_many(self._waiting)
            self._waiting = []
        self._written = time.monotonic()


def _task(unit: PlannedUnit) -> Task:
    question = unit.question
    args = (question.source, question.settings, question.decider, unit.instance)
    return Task(key=unit.key, function=measure, args=args, limits=limits(question.settings.budget), retries=1)


def _searched(result: Result, decider: str) -> tuple[QueryRecord, ...]:
    """The search of a radius as a row of the queries; that of a reach asks about thresholds, not about sizes."""
    return QueryRecord.of_search(result, decider) if isinstance(result, Radius) else ()


def _fair(units: Iterable[PlannedUnit]) -> list[PlannedUnit]:
    """Classifiers and classes in turns, so that early results are a fair picture."""
    return fair_order(units, lambda unit: (unit.record.classifier.name, unit.instance.label))


def _by_question(units: Sequence[PlannedUnit], size: int) -> list[PlannedUnit]:
    """The same, in runs of one question, so that a search can share its machinery."""
    chunks: list[list[PlannedUnit]] = []
    for _, group in groupby(sorted(units, key=lambda unit: id(unit.question)), key=lambda unit: id(unit.question)):
        fair = _fair(group)
        chunks += [fair[start : start + size] for start in range(0, len(fair), size)]
    turns = fair_order(chunks, lambda chunk: (chunk[0].record.classifier.name,))
    return [unit for chunk in turns for unit in chunk]
