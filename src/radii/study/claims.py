"""Claims of one run: which units it may compute now, while other processes work on the same study."""

from __future__ import annotations

import hashlib
import os
import socket
import time
import uuid
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from radii.study.plan import PlannedUnit

if TYPE_CHECKING:
    from radii.store import Store

SECONDS = 120.0  # how long a claim lasts unless it is renewed: what another machine waits for after a crash
_LOOK_SECONDS = 1.0  # how often to ask whether others have finished or died
_active: set[str] = set()  # owners of this process whose run has not ended


class Claims:
    """Hands out units of a list that nobody else computes; what others hold is asked for again later."""

    def __init__(
        self, store: Store, units: Sequence[PlannedUnit], retry_before: float | None = None, seconds: float = SECONDS
    ) -> None:
        self.owner = owner_name()
        _active.add(self.owner)
        self.theirs = 0  # units of the list that others have finished meanwhile
        self._store, self._retry, self._seconds = store, retry_before, seconds
        self._units = {unit.key: unit for unit in units}
        self._ready = deque(units)
        self._busy: list[PlannedUnit] = []
        self._renewed = self._looked = time.monotonic()
        self._offset = _offset()
        release_dead(store)

    def draw(self, count: int) -> list[PlannedUnit]:
        """Up to that many units to compute now, claimed; none when there are none just now."""
        if not self._ready:
            self._look()
        while self._ready:
            part = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
            units = [unit.record for unit in part]
            held = {
                u.key for u in self._store.claim(units, self.owner, seconds=self._seconds, retry_before=self._retry)
            }
            self._busy += [unit for unit in part if unit.key not in held]
            if held:
                return [unit for unit in part if unit.key in held]
        return []

    @property
    def active(self) -> bool:
        """Whether its run goes on."""
        return self.owner in _active

    @property
    def waiting(self) -> int:
        """How many units others are computing."""
        return len(self._busy)

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to hand out, now or later."""
        return not self._ready and not self._busy

    def tend(self) -> None:
        """Prolong the claims when it is time, or when the clock was set: claims run out by it; call it often."""
        jumped = abs(_offset() - self._offset) > 1.0
        if jumped or time.monotonic() - self._renewed > self._seconds / 4:
            self._store.renew(self.owner, seconds=self._seconds)
            self._renewed, self._offset = time.monotonic(), _offset()

    def end(self) -> None:
        """Say that this run is over: what it could not give back counts as left by the dead."""
        _active.discard(self.owner)

    def _look(self) -> None:
        """Drop what others have finished; what they have given up becomes ready again."""
        if not self._busy or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        release_dead(self._store)
        left = self._store.pending([unit.record for unit in self._busy], retry_before=self._retry)
        self.theirs += len(self._busy) - len(left)
        self._ready.extend(self._units[unit.key] for unit in left)
        self._busy.clear()
        self._looked = time.monotonic()


def owner_name() -> str:
    """A name for this run that lets others on the same machine see whether its process still lives."""
    return f"{_place()}/{os.getpid()}/{_started(os.getpid()):.2f}/{uuid.uuid4().hex[:8]}"


def _started(pid: int) -> float:
    """When a process began, by a clock that nobody can set: with its number, what tells it from all others."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.exists():
        return float(stat.read_text().rpartition(")")[2].split()[19])  # in ticks since the machine was started
    return psutil.Process(pid).create_time()


def _offset() -> float:
    """What changes only when the clock is set."""
    return time.time() - time.monotonic()


def release_dead(store: Store) -> int:
    """Give back the claims of runs on this machine that are gone; those of other machines run out."""
    return sum(store.release(owner) for owner in store.owners() if _dead(owner))


def _dead(owner: str) -> bool:
    place, *rest = owner.split("/")
    if place != _place() or len(rest) != 3:
        return False
    if rest[0] == str(os.getpid()):
        return owner not in _active
    try:
        pid = int(rest[0])
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE or abs(_started(pid) - float(rest[1])) > 1.0
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError, ValueError):
        return True


def _place() -> str:
    """A name for where process numbers mean the same: this machine since it was started, or this container."""
    parts = [socket.gethostname()]
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if boot.exists():
        parts.append(boot.read_text().strip())
    if space.is_symlink():
        parts.append(os.readlink(space))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:16]
