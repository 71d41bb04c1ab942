"""Stop: Ctrl-C and SIGTERM as a wish that a run looks at between two units, so that nothing is torn apart."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Stopped(Exception):
    """The run was asked to stop."""


class Stop:
    """While it is entered, the first Ctrl-C or SIGTERM only sets `asked`; a second Ctrl-C interrupts as usual."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def check(self) -> None:
        """Raise `Stopped` when a stop was asked for."""
        if self.asked:
            raise Stopped

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
