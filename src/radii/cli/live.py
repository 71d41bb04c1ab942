"""How a running study is shown: a live table at a terminal, plain lines otherwise, JSON events for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from radii.cli.console import counted, note

if TYPE_CHECKING:
    from rich.console import Group

    from radii.study.run import Finished
    from radii.study.tally import Row, Tally

_LINE_SECONDS = 10.0  # seconds between two plain lines, at least
_DRAW_SECONDS = 0.25  # seconds between two redraws of the live table, at least
_MARGIN = 4  # columns left free: a terminal that echoes ^C must not break the last line
_STATUSES = ("closed", "open", "robust", "misclassified", "unsolved")


class Display(Protocol):
    """What a run tells."""

    def finished(self, finished: Finished) -> None:
        """One more unit."""

    def idle(self, others: int) -> None:
        """Nothing to do but wait for other processes."""

    def tick(self) -> None:
        """A moment has passed."""


@contextmanager
def shown(tally: Tally, as_json: bool) -> Iterator[Display]:
    """The display that fits: JSON events on stdout, a table at a terminal, or lines on stderr."""
    if as_json:
        yield Events(tally)
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        # Drawn by the run itself: a thread of its own could meet counts that are just being changed.
        with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
            yield Screen(tally, live)
    else:
        yield Lines(tally)


class Events:
    """One JSON object per line, flushed at once."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def finished(self, finished: Finished) -> None:
        from radii.study.tally import described

        self._tally.add(finished)
        event({"event": "finished", **described(finished), "done": self._tally.done, "planned": self._tally.planned})

    def idle(self, others: int) -> None:
        event({"event": "waiting", "units": others})
        time.sleep(1.0)

    def tick(self) -> None:
        self._tally.tick()


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
        unit = finished.unit.record
        if finished.failure:
            note(f"failed: {unit.classifier.name}, {unit.instance.dataset} input {unit.instance.index}: "
                 f"{finished.failure}")  # fmt: skip
        self.tick()

    def idle(self, others: int) -> None:
        self._say(f"waiting for {counted(others, 'unit')} of other processes")

    def tick(self) -> None:
        self._tally.tick()
        self._say(None)

    def _say(self, text: str | None) -> None:
        if time.monotonic() - self._last >= _LINE_SECONDS:
            self._last = time.monotonic()
            note(text or progress_line(self._tally))


class Screen:
    """A table that is redrawn in its place."""

    def __init__(self, tally: Tally, live: Any) -> None:
        self._tally, self._live = tally, live
        self._size, self._next = live.console.size, 0.0
        self._draw()

    def finished(self, finished: Finished) -> None:
        self._tally.add(finished)
        self._draw()

    def idle(self, others: int) -> None:
        self._tally.tick()
        self._draw(f"waiting for {counted(others, 'unit')} of other processes")

    def tick(self) -> None:
        self._tally.tick()
        self._draw()

    def _draw(self, last: str = "") -> None:
        now, console = time.monotonic(), self._live.console
        if now < self._next and not last:
            return
        self._next = now + _DRAW_SECONDS
        if console.size != self._size:  # the terminal has wrapped the old picture anew: it cannot be found to overwrite
            self._size = console.size
            console.clear()
        self._live.update(picture(self._tally, console.width, console.height, last), refresh=True)


def picture(tally: Tally, columns: int, lines: int, last: str = "") -> Group:
    """The counts of every classifier in a terminal of that size; those that do not fit are counted in a last line."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    width = max(20, columns - _MARGIN)
    room = max(1, lines - 5)
    rows = list(tally.rows.items())
    if len(rows) > room:  # the busy ones first, then those not begun, in the order of the study
        rows.sort(key=lambda pair: (pair[1].done >= pair[1].planned, pair[1].done == 0))
    statuses = [s for s in _STATUSES if s in ("closed", "open") or any(r.statuses[s] for r in tally.rows.values())]
    heads = ["done", *(("miscl." if s == "misclassified" and columns < 100 else s) for s in statuses), "width"]
    cells = [_cells(row, statuses) for _, row in rows[:room]]
    needed = sum(max(map(len, column)) + 2 for column in zip(heads, *cells, strict=True))
    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    drawn.add_column("classifier", no_wrap=True)
    for head in heads:
        drawn.add_column(head, justify="right", no_wrap=True)
    for (name, _), values in zip(rows[:room], cells, strict=True):
        drawn.add_row(shortened(name, max(10, width - needed - 2)), *values)
    below = [f"and {len(rows) - room} more classifiers"] if len(rows) > room else []
    texts = [Text(line[:width]) for line in (*below, *([last] if last else []))]
    return Group(Text(progress_line(tally)[:width], style="bold"), drawn, *texts)


def _cells(row: Row, statuses: list[str]) -> list[str]:
    width = "-" if row.width is None else f"{row.width:.2g}"
    return [f"{row.done}/{row.planned}", *(str(row.statuses[status]) for status in statuses), width]


def shortened(name: str, width: int) -> str:
    """The name cut in its middle, since names of one study tend to differ at their ends."""
    if len(name) <= width:
        return name
    front = (width - 1) // 3
    return f"{name[:front]}…{name[len(name) - (width - 1 - front) :]}"


def progress_line(tally: Tally) -> str:
    """Counts, rate and the remaining time in one line."""
    rate = "" if tally.rate is None else f", {tally.rate:.3g}/s, {span(tally.seconds_left or 0.0)} left"
    counts = {status: sum(row.statuses[status] for row in tally.rows.values()) for status in _STATUSES}
    said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    failed = f"; {tally.failed} failed" if tally.failed else ""
    again = f" ({tally.ran} of {tally.remaining} tried again)" if tally.retry else ""
    return f"{tally.done}/{tally.planned} done{again}{rate}" + (f": {said}" if said else "") + failed


def span(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 1 or seconds == 0 else "1 s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
