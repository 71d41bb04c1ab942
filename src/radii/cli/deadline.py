"""Deadline: the wall-clock limit of one command, kept even when a solver does not look at the clock."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from radii._check import number

_GRACE = 1.0  # a solver that keeps its own budget has this long to give a better answer than timed-out


class Deadline:
    """Counts from its construction; `guard` ends the process with `timed-out` when the limit is passed inside it."""

    def __init__(self, seconds: float) -> None:
        self._limit = number(seconds, "--timeout", low=0.0, strict=True)
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._said = False

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Seconds until the limit; below 0 after it."""
        return self._limit - self.spent

    def say(self, verdict: str) -> None:
        """Print the verdict, once."""
        with self._lock:
            if not self._said:
                self._said = True
                typer.echo(verdict)

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Watch the clock while a solver runs that may be deep in native code."""
        watch = threading.Timer(max(0.0, self.left) + _GRACE, self._end)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def _end(self) -> None:
        with self._lock:
            if not self._said:
                self._said = True
                sys.stdout.write("timed-out\n")
                sys.stdout.flush()
                # The solver's thread cannot be stopped from here, so the process is, with what it runs.
                try:
                    # Absent while the module is being loaded; then it has started nothing.
                    getattr(sys.modules.get("radii.verifiers.process"), "end_all", lambda: None)()
                finally:
                    os._exit(0)
