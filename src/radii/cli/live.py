"""How a running study is shown: a live table at a terminal, plain lines otherwise, JSON events for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from radii.cli.console import note

if TYPE_CHECKING:
    from rich.table import Table

    from radii.study.run import Finished
    from radii.study.tally import Tally

_LINE_SECONDS = 10.0  # plain lines: at most one in so many seconds
_STATUSES = ("closed", "open", "robust", "misclassified", "unsolved")


class Display(Protocol):
    """What a run tells."""

    def finished(self, finished: Finished) -> None:
        """One more unit."""

    def idle(self, others: int) -> None:
        """Nothing to do but wait for other processes."""


@contextmanager
def shown(tally: Tally, as_json: bool) -> Iterator[Display]:
    """The display that fits: JSON events on stdout, a table at a terminal, or lines on stderr."""
    if as_json:
        yield Events(tally)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
            yield Screen(tally, live)
    else:
        yield Lines(tally)


class Events:
    """One JSON object a line, flushed at once."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def finished(self, finished: Finished) -> None:
        from radii.study.tally import described

        self._tally.add(finished)
        event({"event": "finished", **described(finished), "done": self._tally.done, "planned": self._tally.planned})

    def idle(self, others: int) -> None:
        event({"event": "waiting", "units": others})
        time.sleep(1.0)


def event(body: dict[str, Any]) -> None:
    """One JSON object on a line of stdout."""
    sys.stdout.write(json.dumps(body, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


class Lines:
    """A line of counts now and then."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._last = tally, time.monotonic()

    def finished(self, finished: Finished) -> None:
        self._tally.add(finished)
        unit = finished.work.unit
        if finished.failure:
            note(f"failed: {unit.classifier.name}, {unit.instance.dataset} input {unit.instance.index}: "
                 f"{finished.failure}")  # fmt: skip
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._last = time.monotonic()
            note(progress_line(self._tally))

    def idle(self, others: int) -> None:
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._last = time.monotonic()
            note(f"waiting for {others} units that other processes compute")


class Screen:
    """A table that is redrawn."""

    def __init__(self, tally: Tally, live: Any) -> None:
        self._tally, self._live = tally, live
        live.update(picture(tally))

    def finished(self, finished: Finished) -> None:
        self._tally.add(finished)
        self._live.update(picture(self._tally))

    def idle(self, others: int) -> None:
        self._live.update(f"waiting for {others} units that other processes compute")


def picture(tally: Tally) -> Table:
    """The table of a live display."""
    from rich.table import Table

    drawn = Table(title=progress_line(tally), title_justify="left")
    for name in ("classifier", "done", *_STATUSES, "open width"):
        drawn.add_column(name, justify="left" if name == "classifier" else "right")
    for name, row in tally.rows.items():
        width = "-" if row.width is None else f"{row.width:.3g}"
        counts = [str(row.statuses[status]) for status in _STATUSES]
        drawn.add_row(name, f"{row.done}/{row.planned}", *counts, width)
    return drawn


def progress_line(tally: Tally) -> str:
    """Counts, rate and the remaining time in one line."""
    counts = {status: sum(row.statuses[status] for row in tally.rows.values()) for status in _STATUSES}
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    rate = "" if tally.rate is None else f"; {tally.rate:.3g}/s, {span(tally.seconds_left or 0.0)} left"
    return f"{tally.done}/{tally.planned}" + (f": {said}" if said else "") + rate


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
