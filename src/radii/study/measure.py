"""Radii of many inputs in this process: what a store already holds is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from radii.decide import Decider
from radii.models.classifier import Classifier
from radii.problem import Instance, Radius
from radii.search import direct, in_batches
from radii.store import ClassifierRecord, Environment, InstanceRecord, QueryRecord, RadiusRecord, Selection, Store, Unit
from radii.study.ask import Ask

T = TypeVar("T")
Progress = Callable[[int, Radius], None]
_BATCH = 32  # inputs that share batches
_PATIENCE = 0.5  # seconds between two writes: one for each input would cost quick verifiers more than the radii
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
        """One radius per instance, in order; `progress` is called with (how many are finished, the radius)."""
        self._check(instances)
        count = _Count(progress)
        return [radius for part in _parts(instances, _BATCH) for radius in self._solve(part, count)]

    def kept(self, instances: Sequence[Instance], store: Store, progress: Progress | None = None) -> list[Radius]:
        """Like `radii`; each is stored as it ends, whatever ends the rest, and what is stored is not done again."""
        self._check(instances)
        units = [self.unit(instance) for instance in instances]
        todo = {unit.key for unit in store.pending(units)}
        count = _Count(progress)
        count.finished = len(units) - len(todo)
        environment = Environment.current(seed=self.ask.seed)
        # Equal inputs have equal keys: each is done once.
        work = {unit.key: (unit, inst) for unit, inst in zip(units, instances, strict=True) if unit.key in todo}
        for part in _parts(list(work.values()), _BATCH):
            self._keep(part, store, environment, count)
        known = _stored(store, [unit.key for unit in units])
        return [known[unit.key] for unit in units]

    def _keep(
        self, part: Sequence[tuple[Unit, Instance]], store: Store, environment: Environment, count: _Count
    ) -> None:
        def keep(place: int, radius: Radius) -> None:
            keeper.add(self._record(part[place][0], radius, environment))

        with _Keeper(store) as keeper:
            count.keep = keep
            self._solve([instance for _, instance in part], count)

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
                progress=count.ended,
            )
        for place, radius in enumerate(found):
            count.ended(place, radius)
        return found


class _Count:
    """Counts finished inputs from reports about single ones: an input is reported once."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.keep: Callable[[int, Radius], None] | None = None
        self.finished = 0
        self._seen: set[int] = set()

    def begin(self) -> None:
        self._seen.clear()

    def ended(self, place: int, radius: Radius) -> None:
        if place in self._seen:
            return
        self._seen.add(place)
        self.finished += 1
        if self.keep is not None:
            self.keep(place, radius)
        if self.progress is not None:
            self.progress(self.finished, radius)


class _Keeper:
    """Writes records to a store as they come, several at once where they come quickly; the end writes the rest."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._waiting: list[RadiusRecord] = []
        self._written = time.monotonic()

    def add(self, record: RadiusRecord) -> None:
        self._waiting.append(record)
        if time.monotonic() - self._written >= _PATIENCE:
            self._write()

    def _write(self) -> None:
        self.store.put_many(self._waiting)
        self._waiting = []
        self._written = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _stored(store: Store, keys: list[str]) -> dict[str, Radius]:
    return {
        record.unit.key: record.radius
        for part in _parts(sorted(set(keys)), _KEYS)
        for record in store.records(Selection(key=tuple(part)))
    }
