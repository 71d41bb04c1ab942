"""Tally: how a run stands, for a display, a log line or a program."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from radii.store import Store
from radii.study.plan import Plan
from radii.study.run import Finished


@dataclass
class Row:
    """One classifier: how many units it has, what came out, and how wide the open intervals are."""

    planned: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    gap: float = 0.0
    gaps: int = 0

    @property
    def done(self) -> int:
        """How many are finished."""
        return sum(self.statuses.values())

    @property
    def width(self) -> float | None:
        """The mean width of the intervals that were left open in this run."""
        return self.gap / self.gaps if self.gaps else None


class Tally:
    """Counts by classifier; the rate and the remaining time come from this run alone."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self.rows = {name: Row(planned=count) for name, count in plan.counts().items()}
        self.planned = len(plan.works)
        names = {work.key: work.unit.classifier.name for work in plan.works}
        self.began, self.ran, self.failed = time.monotonic(), 0, 0
        for name, status in _known(store, plan.name, names):
            self.rows[name].statuses[status] += 1

    def add(self, finished: Finished) -> None:
        """Count one finished unit."""
        row, radius = self.rows[finished.work.unit.classifier.name], finished.radius
        # A unit that is tried again was counted as open or unsolved; the display is only about what is finished.
        if row.done < row.planned:
            row.statuses[radius.status.value] += 1
        if radius.status.value == "open" and radius.gap is not None:
            row.gap, row.gaps = row.gap + radius.gap, row.gaps + 1
        self.ran += 1
        self.failed += bool(finished.failure)

    @property
    def done(self) -> int:
        """How many units are finished, by this run or before it."""
        return sum(row.done for row in self.rows.values())

    @property
    def rate(self) -> float | None:
        """Units a second in this run."""
        seconds = time.monotonic() - self.began
        return self.ran / seconds if self.ran and seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """How long the rest will take at this rate."""
        return None if self.rate is None else (self.planned - self.done) / self.rate


def _known(store: Store, study: str, names: dict[str, str]) -> list[tuple[str, str]]:
    from radii.store import Selection, radii_frame

    frame = radii_frame(store, Selection(study=(study,)))
    return [(names[k], s) for k, s in zip(frame["key"], frame["status"], strict=True) if k in names]


def described(finished: Finished) -> dict[str, Any]:
    """One finished unit as plain values."""
    unit, radius = finished.work.unit, finished.radius
    return {
        "classifier": unit.classifier.name,
        "dataset": unit.instance.dataset,
        "split": unit.instance.split,
        "index": unit.instance.index,
        "target": unit.setting.target,
        "norm": unit.setting.norm,
        "status": radius.status.value,
        "lower": radius.lower,
        "upper": radius.upper,
        "cpu_seconds": radius.cost.cpu_seconds,
        "failure": finished.failure or None,
        "key": unit.key,
    }
