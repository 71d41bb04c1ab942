"""Measurement: radii of many inputs from Python; the driver is that of `radii run`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from radii.decide import Decider
from radii.models.classifier import Classifier
from radii.problem import Instance, Radius
from radii.runners import Runner
from radii.store import ClassifierRecord, InstanceRecord, Selection, Store, Unit
from radii.study.ask import Ask
from radii.study.plan import Plan, Question, Work
from radii.study.run import Finished, Run, Summary
from radii.study.sources import Held
from radii.study.work import find_radii

log = logging.getLogger(__name__)
Progress = Callable[[int, Radius], None]
_KEYS = 500  # keys looked up in one query


@dataclass(frozen=True)
class Measurement:
    """One question to one classifier, answered by one decider for any number of inputs."""

    classifier: Classifier
    ask: Ask
    decider: Decider

    def __post_init__(self) -> None:
        self.ask.check(self.classifier, self.decider)

    def radii(self, instances: Sequence[Instance]) -> list[Radius]:
        """One radius per instance, in order, kept nowhere."""
        self._check(instances)
        return find_radii(self.classifier, self.ask, self.decider, instances)

    def kept(
        self,
        instances: Sequence[Instance],
        store: Store,
        progress: Progress | None = None,
        runner: Runner | None = None,
    ) -> list[Radius]:
        """One radius per instance, in order; each is stored as it ends, and what is stored is not done again.

        `progress` is called with (how many are finished, the radius). Without a runner all happens in this process.
        """
        self._check(instances)
        units = [self.unit(instance) for instance in instances]
        run = self._run(units, instances, store, runner)
        finished = len(units) - run.prepare()

        def tell(one: Finished) -> None:
            nonlocal finished
            finished += 1
            if progress is not None:
                progress(finished, one.radius)

        run.listen = tell
        _complain(run.run())
        known = _stored(store, [unit.key for unit in units])
        return [known[unit.key] for unit in units]

    def _run(self, units: Sequence[Unit], instances: Sequence[Instance], store: Store, runner: Runner | None) -> Run:
        question = Question(Held(self.classifier), self.classifier, self.ask, self.decider)
        # Equal inputs have equal keys: each is done once.
        works = {unit.key: Work(unit, question, inst) for unit, inst in zip(units, instances, strict=True)}
        return Run(Plan("", list(works.values()), {}, self.ask.seed), store, runner)

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

    def _check(self, instances: Sequence[Instance]) -> None:
        """Refuse a target that some input cannot have before any work is done."""
        for label in sorted({instance.label for instance in instances}):
            self.ask.property.check(self.classifier.classes, label)


def _complain(summary: Summary) -> None:
    """Logs what failed in workers; the radii of those inputs are stored without ends, and their notes say why."""
    for one in summary.failures:
        log.error("input %d: %s", one.work.instance.index, one.failure)


def _stored(store: Store, keys: list[str]) -> dict[str, Radius]:
    wanted = sorted(set(keys))
    return {
        record.unit.key: record.radius
        for start in range(0, len(wanted), _KEYS)
        for record in store.records(Selection(key=tuple(wanted[start : start + _KEYS])))
    }
