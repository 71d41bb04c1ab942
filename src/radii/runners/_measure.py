"""What a call costs: CPU and wall seconds and peak memory of this process, and an outcome either way."""

from __future__ import annotations

import contextlib
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from radii._memory import out_of_memory
from radii.runners.base import Failure, Outcome, Reason

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def cpu_seconds() -> float:
    """CPU seconds this process and its finished children have used so far."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def reset_peak() -> bool:
    """Whether the kernel's record of this process's peak memory could be set back to its present size."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return True


def peak_memory() -> int | None:
    """Peak resident bytes of this process since `reset_peak`; None where the kernel does not say."""
    with contextlib.suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None


def measured(key: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """The outcome of `function(*args)` in this process; an exception becomes a failure with its traceback."""
    value: Any = None
    failure: Failure | None = None
    fresh = reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    try:
        value = function(*args)
    except (Exception, SystemExit) as error:
        reason = Reason.MEMORY if out_of_memory(error) else Reason.ERROR
        failure = Failure(reason=reason, message=_line(error), detail=traceback.format_exc())
    return Outcome(
        key=key,
        value=value,
        failure=failure,
        cpu_seconds=cpu_seconds() - cpu,
        wall_seconds=time.perf_counter() - wall,
        peak_memory=peak_memory() if fresh else None,
    )


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
