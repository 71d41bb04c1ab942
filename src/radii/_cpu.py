"""CPU seconds as inputs are charged for them: loading and compiling what all inputs share is nobody's, and limited."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from radii.errors import ModelError

_loading = 0.0
_until = math.inf


def cpu_seconds() -> float:
    """CPU seconds of this process so far, less those within `uncharged`."""
    return time.process_time() - _loading


@contextmanager
def uncharged() -> Iterator[None]:
    """Whatever is loaded here is charged to no input, whichever happens to need it first."""
    global _loading
    start = cpu_seconds()
    try:
        yield
    finally:
        _loading += cpu_seconds() - start


def stopping_point(seconds: float | None) -> float:
    """CPU seconds after which work that does not look at its budget itself is stopped; infinite without a budget."""
    return math.inf if seconds is None else 1.25 * seconds + 10.0


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """A network that is loaded here, for inputs of such a budget, may take as long as `stopping_point` says."""
    global _until
    before, _until = _until, min(_until, time.process_time() + stopping_point(seconds))
    try:
        yield
    finally:
        _until = before


def keep_time() -> None:
    """Refuses the network that is being loaded once it takes too long; called between its operators."""
    if time.process_time() > _until:
        raise ModelError(
            "expected a network that is read and checked within 1.25 times the CPU seconds of an input and 10 more, "
            "got one that takes longer; allow more seconds per input"
        )
