"""How much memory there is to take, and the refusal of what cannot fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from radii.errors import InputError

GROUPS = (  # a container's memory group: limit, use, and the cached files in it
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_memory() -> int:
    """Bytes that this process can still get, of the machine's and of those of the container that it runs in."""
    free = int(psutil.virtual_memory().available)
    for folder, limit, used, dropped in GROUPS:
        group = Path(folder)
        try:
            rest = int((group / limit).read_text()) - int((group / used).read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such group, or one without a limit
            continue
        free = min(free, rest + int(stat.get(dropped, 0)))
    return max(0, free)


def out_of_memory(error: BaseException) -> bool:
    """Whether the system gave no more memory: Python's own error, or torch's, which is a RuntimeError."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("alloc" in said or "out of memory" in said)
    )


def must_fit(size: int, what: str, fail: Callable[[str], InputError]) -> None:
    """Refuse what is larger than the free memory: the system would end the process, or others, in the middle."""
    free = free_memory()
    if size > free:
        raise fail(f"expected {what} that fit into memory, got {shown(size)} with {shown(free)} free; take fewer")


def shown(size: int) -> str:
    """A size in bytes for people.

    >>> shown(3 * 2**30)
    '3.0 GiB'
    """
    unit = 0
    value = float(size)
    while value >= 1024 and unit < 4:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}" if unit else f"{size} bytes"
