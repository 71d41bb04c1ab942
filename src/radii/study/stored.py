"""Radii or reaches of many inputs from Python, kept in a store; the driver is that of `radii run`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from radii.problem import Instance, Radius, Result
from radii.runners import Runner
from radii.study.plan import Plan, PlannedUnit
from radii.study.question import Question
from radii.study.run import Finished, Run, Summary

if TYPE_CHECKING:
    from radii.store import Store

log = logging.getLogger(__name__)
Progress = Callable[[int, Any], None]
_KEYS = 500  # keys looked up in one query


def stored_radii(
    question: Question,
    instances: Sequence[Instance],
    store: Store,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> list[Radius]:
    """One radius per instance, in order; see `stored_results`."""
    return [cast(Radius, one) for one in stored_results(question, instances, store, progress, runner)]


def stored_results(
    question: Question,
    instances: Sequence[Instance],
    store: Store,
    progress: Progress | None = None,
    runner: Runner | None = None,
) -> list[Result]:
    """One radius or reach per instance, in order; each is stored as it ends, and what is stored is not done again.

    `progress` is called with (how many are finished, the result). Without a runner all happens in this process.
    """
    question.check_labels(instances)
    keys = [question.unit(instance).key for instance in instances]
    run = _run(question, instances, store, runner)
    finished = len(keys) - run.prepare()

    def tell(one: Finished) -> None:
        nonlocal finished
        finished += 1
        if progress is not None:
            progress(finished, one.result)

    run.listen = tell
    _complain(run.run())
    known = results_of(store, keys)
    return [known[key] for key in keys]


def _run(question: Question, instances: Sequence[Instance], store: Store, runner: Runner | None) -> Run:
    planned = [PlannedUnit(question.unit(instance), question, instance) for instance in instances]
    # Equal inputs have equal keys: each is done once.
    units = {unit.key: unit for unit in planned}
    return Run(Plan("", list(units.values()), {}, question.settings.seed), store, runner)


def _complain(summary: Summary) -> None:
    """Logs what failed in workers; the results of those inputs are stored without ends, and their notes say why."""
    for alarm in summary.alarms:
        log.error("input %d: %s", alarm.index, alarm.message)
    for one in summary.failures:
        log.error("input %d: %s", one.unit.instance.index, one.failure)


def radii_of(store: Store, keys: list[str]) -> dict[str, Radius]:
    """The stored radii of units, by key; those without a result are left out."""
    return {key: one for key, one in results_of(store, keys).items() if isinstance(one, Radius)}


def results_of(store: Store, keys: list[str]) -> dict[str, Result]:
    """The stored results of units, by key; those without one are left out."""
    from radii.store import Selection

    wanted = sorted(set(keys))
    return {
        record.unit.key: record.result
        for start in range(0, len(wanted), _KEYS)
        for record in store.results(Selection(key=tuple(wanted[start : start + _KEYS])))
    }
