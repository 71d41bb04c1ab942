"""CPU seconds as inputs are charged for them: loading and compiling what all inputs share is nobody's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_loading = 0.0


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
