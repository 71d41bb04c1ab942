"""Tally: how a run stands, for a display, a log line or a program."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from radii.study.plan import Plan
from radii.study.run import Finished

if TYPE_CHECKING:
    from radii.store import Store

_LOOK_SECONDS = 2.0  # how often the store is asked what other processes have finished, unless asking takes long


@dataclass
class Row:
    """One classifier: how many units it has, what came out, and the mean width of the open intervals."""

    planned: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    width: float | None = None

    @property
    def done(self) -> int:
        """How many are finished."""
        return sum(self.statuses.values())


class Tally:
    """Counts by classifier over all processes that work on the study; the rate is that since this run began.

    Make it when the plan is in the store. `remaining` is how many units this run has to do; with `retry`, units that
    have a result are among them.
    """

    def __init__(self, plan: Plan, store: Store, remaining: int, retry: bool = False) -> None:
        self.rows = {name: Row(planned=count) for name, count in plan.counts().items()}
        self.planned, self.remaining, self.retry = len(plan.units), remaining, retry
        self.ran, self.failed = 0, 0
        self._began: float | None = None
        self._store, self._study = store, plan.name
        self._next_look = 0.0
        self.look()
        self.before = self.done

    def look(self) -> None:
        """Ask the store how far the study is."""
        start = time.monotonic()
        for one in self._store.progress(self._study):
            if one.classifier in self.rows:
                row = self.rows[one.classifier]
                row.statuses, row.width = Counter(one.statuses), one.width
        now = time.monotonic()
        self._next_look = now + max(_LOOK_SECONDS, 50 * (now - start))

    def add(self, finished: Finished) -> None:
        """Count one finished unit."""
        if self._began is None:  # loading the workers is not part of the rate
            self._began = time.monotonic() - max(0.001, finished.result.cost.wall_seconds)
        if not self.retry:
            self.rows[finished.unit.record.classifier.name].statuses[finished.result.status.value] += 1
        self.ran += 1
        self.failed += bool(finished.failure)
        self.tick()

    def tick(self) -> None:
        """Look again when it is time."""
        if time.monotonic() >= self._next_look:
            self.look()

    @property
    def done(self) -> int:
        """How many units are finished, by whomever."""
        return sum(row.done for row in self.rows.values())

    @property
    def progressed(self) -> int:
        """How many of the units to do are done."""
        return self.ran if self.retry else self.done - self.before

    @property
    def rate(self) -> float | None:
        """Units per second since the first one began."""
        return None if self._began is None else self.progressed / (time.monotonic() - self._began)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at this rate."""
        rate = self.rate
        return None if not rate else max(0, self.remaining - self.progressed) / rate


def described(finished: Finished) -> dict[str, Any]:
    """One finished unit as plain values."""
    unit, result = finished.unit.record, finished.result
    return {
        "classifier": unit.classifier.name,
        "dataset": unit.instance.dataset,
        "split": unit.instance.split,
        "index": unit.instance.index,
        "target": unit.setting.target,
        "norm": unit.setting.norm,
        **({} if unit.setting.epsilon is None else {"epsilon": unit.setting.epsilon}),
        "status": result.status.value,
        "lower": result.lower,
        "upper": result.upper,
        "cpu_seconds": result.cost.cpu_seconds,
        "failure": finished.failure or None,
        "key": unit.key,
    }
