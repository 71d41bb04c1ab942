"""Radii of many inputs in this process: what a store already holds is not done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from radii.decide import Decider
from radii.models.classifier import Classifier
from radii.problem import Instance, Radius, Status
from radii.search import direct, in_batches
from radii.store import ClassifierRecord, Environment, InstanceRecord, QueryRecord, RadiusRecord, Selection, Store, Unit
from radii.study.ask import Ask

T = TypeVar("T")
Progress = Callable[[int, Radius], None]
_BATCH = 32  # inputs that share batches, and that a killed run loses at most
_KEYS = 500  # keys looked up in one query


@dataclass(frozen=True)
class Measurement:
    """One question to one classifier, answered by one decider for any number of inputs."""

    classifier: Classifier
    ask: Ask
    decider: Decider

    def __post_init__(self) -> None:
        self.ask.check(self.classifier, self.decider)

    def radii(self, instances: Sequence[Instance], progress: Progress | None = None) -> list[Radius]:
        """One radius an instance, in order; `progress` is called with (how many are finished, the radius)."""
        self._check(instances)
        count = _Count(progress)
        return [radius for part in _parts(instances, _BATCH) for radius in self._solve(part, count)]

    def kept(self, instances: Sequence[Instance], store: Store, progress: Progress | None = None) -> list[Radius]:
        """Like `radii`; finished work is stored, batch by batch, and what the store holds is taken from there."""
        self._check(instances)
        units = [self.unit(instance) for instance in instances]
        todo = {unit.key for unit in store.pending(units)}
        count = _Count(progress)
        count.finished = len(units) - len(todo)
        environment = Environment.current(seed=self.ask.seed)
        # Equal inputs have equal keys: each is done once.
        work = {unit.key: (unit, inst) for unit, inst in zip(units, instances, strict=True) if unit.key in todo}
        for part in _parts(list(work.values()), _BATCH):
            found = self._solve([instance for _, instance in part], count)
            store.put_many([self._record(u, r, environment) for (u, _), r in zip(part, found, strict=True)])
        known = _stored(store, [unit.key for unit in units])
        return [known[unit.key] for unit in units]

    def unit(self, instance: Instance) -> Unit:
        """The stored name of one piece of work."""
        net = self.classifier
        record = ClassifierRecord(fingerprint=net.fingerprint, name=net.name or net.fingerprint, path=net.path or "")
        return Unit(
            classifier=record,
            instance=InstanceRecord.of(instance),
            setting=self.ask.setting(self.decider),
            budget=self.ask.costs(),
        )

    def _record(self, unit: Unit, radius: Radius, environment: Environment) -> RadiusRecord:
        rows = QueryRecord.of_search(radius, self.decider.identity) if self.ask.grid is None else ()
        return RadiusRecord(unit=unit, radius=radius, queries=rows, environment=environment)

    def _check(self, instances: Sequence[Instance]) -> None:
        """Refuse a target that some input cannot have before any work is done."""
        for label in sorted({instance.label for instance in instances}):
            self.ask.property.check(self.classifier.classes, label)

    def _solve(self, instances: Sequence[Instance], count: _Count) -> list[Radius]:
        ask, job = self.ask, self.ask.job(self.classifier)
        count.begin()
        if ask.grid is not None:
            found = in_batches(job, ask.machine, self.decider, instances, ask.budget, progress=count.ended)
        else:
            found = direct(
                job,
                self.decider,
                instances,
                ask.budget,
                tolerance=ask.tolerance,
                limit=ask.limit,
                progress=count.improved,
            )
        for place, radius in enumerate(found):
            count.ended(place, radius)
        return found


class _Count:
    """Counts finished inputs from reports about single ones: an input is reported once."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.finished = 0
        self._seen: set[int] = set()

    def begin(self) -> None:
        self._seen.clear()

    def improved(self, place: int, radius: Radius) -> None:
        if radius.status in (Status.CLOSED, Status.MISCLASSIFIED, Status.ROBUST):
            self.ended(place, radius)

    def ended(self, place: int, radius: Radius) -> None:
        if place in self._seen:
            return
        self._seen.add(place)
        self.finished += 1
        if self.progress is not None:
            self.progress(self.finished, radius)


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _stored(store: Store, keys: list[str]) -> dict[str, Radius]:
    return {
        record.unit.key: record.radius
        for part in _parts(sorted(set(keys)), _KEYS)
        for record in store.records(Selection(key=tuple(part)))
    }
