"""What a plan still has to do and how long that may take, from similar finished units in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from radii.study.plan import Plan, PlannedUnit

if TYPE_CHECKING:
    from radii.store import Store


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How many units are missing by classifier, and the wall seconds they may take.

    `seconds` is None when nothing similar is finished; `most` is what the budget allows, None without a limit.
    """

    missing: dict[str, int]
    done: dict[str, int]
    seconds: float | None
    most: float | None
    samples: int

    @property
    def total(self) -> int:
        """How many units are missing."""
        return sum(self.missing.values())


def forecast(plan: Plan, store: Store | None, workers: int, retry_before: float | None = None) -> Forecast:
    """What is missing and how long it may take on so many workers."""
    remaining = plan.units
    if store is not None:
        wanted = {unit.key for unit in store.pending(plan.records, retry_before=retry_before)}
        remaining = [unit for unit in plan.units if unit.key in wanted]
    missing, done = dict.fromkeys(plan.counts(), 0), plan.counts()
    for unit in remaining:
        missing[unit.record.classifier.name] += 1
        done[unit.record.classifier.name] -= 1
    means, samples = _means(store, remaining) if store is not None else ({}, 0)
    spent = [means.get(name, means.get("")) for name, count in missing.items() for _ in range(count)]
    known = [value for value in spent if value is not None]
    limits = [unit.question.settings.budget.seconds for unit in remaining if unit.question.settings.grid is None]
    bounded = len(limits) == len(remaining) and all(limit is not None for limit in limits)
    return Forecast(
        missing=missing,
        done=done,
        seconds=sum(known) / workers if len(known) == len(spent) and samples else None,
        most=sum(limit or 0.0 for limit in limits) / workers if bounded else None,
        samples=samples,
    )


def _means(store: Store, remaining: list[PlannedUnit]) -> tuple[dict[str, float], int]:
    """Mean CPU seconds of finished units like these by classifier, and under "" of all classifiers."""
    settings = {id(unit.question): unit.record.setting for unit in remaining}.values()
    alike = {(one.property, one.norm, one.search, one.verifier, one.measure) for one in settings}
    spent: dict[str, tuple[int, float]] = {}
    for (name, kind), (number, seconds) in store.costs().items():
        for key in (name, "") if kind in alike else ():
            before = spent.get(key, (0, 0.0))
            spent[key] = before[0] + number, before[1] + seconds
    return {name: seconds / number for name, (number, seconds) in spent.items()}, spent.get("", (0, 0.0))[0]
