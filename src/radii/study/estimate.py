"""What a plan still has to do and how long that may take, from similar finished work in the store."""

from __future__ import annotations

from dataclasses import dataclass

from radii.store import Store, radii_frame
from radii.study.plan import Plan, Work


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
    todo = plan.works
    if store is not None:
        wanted = {unit.key for unit in store.pending(plan.units, retry_before=retry_before)}
        todo = [work for work in plan.works if work.key in wanted]
    missing, done = dict.fromkeys(plan.counts(), 0), plan.counts()
    for work in todo:
        missing[work.unit.classifier.name] += 1
        done[work.unit.classifier.name] -= 1
    means, samples = _means(store, todo) if store is not None else ({}, 0)
    spent = [means.get(name, means.get("")) for name, count in missing.items() for _ in range(count)]
    known = [value for value in spent if value is not None]
    limits = [work.question.ask.budget.seconds for work in todo if work.question.ask.grid is None]
    bounded = len(limits) == len(todo) and all(limit is not None for limit in limits)
    return Forecast(
        missing=missing,
        done=done,
        seconds=sum(known) / workers if len(known) == len(spent) and samples else None,
        most=sum(limit or 0.0 for limit in limits) / workers if bounded else None,
        samples=samples,
    )


def _means(store: Store, todo: list[Work]) -> tuple[dict[str, float], int]:
    """Mean CPU seconds of finished units like these by classifier, and under "" of all classifiers."""
    frame = radii_frame(store)
    alike = {
        (s.property, s.norm, s.search, s.verifier) for s in {id(w.question): w.unit.setting for w in todo}.values()
    }
    kinds = list(zip(frame["property"], frame["norm"], frame["search"], frame["verifier"], strict=True))
    chosen = frame[[kind in alike for kind in kinds]]
    if chosen.empty:
        return {}, 0
    means = {str(name): float(value) for name, value in chosen.groupby("classifier")["cpu_seconds"].mean().items()}
    return {**means, "": float(chosen["cpu_seconds"].mean())}, len(chosen)
