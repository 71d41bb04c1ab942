"""What a process tree uses, and how to end it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import psutil

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LINUX = sys.platform.startswith("linux")


def usage(pid: int) -> tuple[int, float]:
    """Resident bytes and CPU seconds of a process with its descendants; zeros when it is gone."""
    if not _LINUX:
        return _portable_usage(pid)
    memory, cpu, queue = 0, 0.0, [pid]
    while queue:
        one = queue.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            resident, seconds = _stat(one)
            memory, cpu = memory + resident, cpu + seconds
            queue += _children(one)
    return memory, cpu


def end_tree(process: psutil.Process) -> None:
    """Kill a process and all its descendants at once; those already gone are no error."""
    # The process is stopped first so that it cannot start another child while we list them.
    with contextlib.suppress(psutil.Error):
        process.suspend()
    family = [process]
    with contextlib.suppress(psutil.Error):
        family += process.children(recursive=True)
    for member in family:
        with contextlib.suppress(psutil.Error):
            member.kill()


def end_group(pid: int) -> None:
    """Kill the process group that a worker leads."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _stat(pid: int) -> tuple[int, float]:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    # Fields after the name: utime, stime and those of reaped children are 11 to 14, resident pages 21.
    return int(fields[21]) * _PAGE, sum(map(int, fields[11:15])) / _TICK


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
            found += map(int, file.read().split())
    return found


def _portable_usage(pid: int) -> tuple[int, float]:
    memory, cpu = 0, 0.0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                times = member.cpu_times()
                memory += member.memory_info().rss
                cpu += times.user + times.system
                cpu += getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return memory, cpu
