"""Runs tasks on a pool of warm local processes under hard limits."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence

import psutil

from radii import _check
from radii.errors import InputError, RunnerError
from radii.runners._forge import Forge
from radii.runners._member import Member, PackedTask
from radii.runners.base import Failure, Outcome, Reason, Runner, Task

POLL_SECONDS = 0.025
STARTS = 3  # tries to start the process that forks the workers, when something outside ends it
STOPPED_SECONDS = 2.0  # a longer gap between two looks at the workers: this process was suspended


def cores() -> int:
    """How many CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ProcessRunner(Runner):
    """A pool of local worker processes.

    Each worker computes with `threads` threads, by default as many as keep workers × threads within the
    cores. `preload` names modules that every worker has imported before its first task (with a ? at its end: if it
    is installed). `devices` are handed out in turns as CUDA_VISIBLE_DEVICES. Processes start with `warm` or the
    first task.

    >>> from radii.runners import ProcessRunner, Task
    >>> with ProcessRunner(workers=1) as runner:
    ...     [outcome.value for outcome in runner.run([Task(key="a", function=max, args=(2, 3))])]
    [3]
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        threads: int | None = None,
        preload: Sequence[str] = (),
        devices: Sequence[str] = (),
    ) -> None:
        available = cores()
        self._workers = available if workers is None else _check.whole(workers, "workers", low=1)
        most = max(1, available // self.workers)
        self.threads = most if threads is None else _check.whole(threads, "threads", low=1)
        if self.threads > most:
            raise InputError(
                f"threads: expected workers × threads within {available} cores, "
                f"got {self.workers} × {self.threads}; use at most {most} threads"
            )
        self.preload, self.devices = tuple(preload), tuple(devices)
        self._lock = threading.RLock()
        self._forge: Forge | None = None
        self._crew: list[Member] = []
        self._tasks: deque[PackedTask] = deque()
        self._keys: set[str] = set()
        self._done: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._undelivered = 0
        self._pump: threading.Thread | None = None
        self._wake, self._bell = os.pipe()
        self._closed = False

    @property
    def workers(self) -> int:
        """How many worker processes there are."""
        return self._workers

    def __repr__(self) -> str:
        return f"ProcessRunner(workers={self.workers}, threads={self.threads})"

    def warm(self) -> None:
        """Begin to load what the workers need, while the caller does something else; returns at once."""
        with self._lock:
            if self._forge is None and not self._closed:
                self._forge = Forge(self.threads, self.preload)

    def submit(self, task: Task) -> None:
        """Queue a task and start it when a worker is free."""
        self.accept(PackedTask.of(task))

    def accept(self, task: PackedTask) -> None:
        """Queue a task that is packed already."""
        with self._lock:
            if self._closed:
                raise InputError("runner: expected an open runner, got one that was closed")
            if task.key in self._keys:
                raise InputError(f"task {task.key!r}: expected a key that is not pending, got it twice")
            self._prepared()
            if self._pump is None:
                self._pump = threading.Thread(target=self._tend, name="radii-runner", daemon=True)
                self._pump.start()
            self._keys.add(task.key)
            self._undelivered += 1
            self._tasks.append(task)
            self._dispatch()
        os.write(self._bell, b".")

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """The next finished outcome; None when nothing is pending or the time is up."""
        if self._undelivered == 0:
            return None
        try:
            outcome = self._done.get(timeout=timeout)
        except queue.Empty:
            return None
        with self._lock:
            self._undelivered -= 1
        return outcome

    def cancel(self, key: str) -> bool:
        """Stop a task, queued or running, with every process it has started."""
        failure = Failure(reason=Reason.CANCELLED, message="cancelled")
        with self._lock:
            for task in self._tasks:
                if task.key == key:
                    self._tasks.remove(task)
                    self._finish(Outcome(key=key, failure=failure, attempts=task.attempts))
                    return True
            for member in self._crew:
                if member.task is not None and member.task.key == key:
                    self._stop(member, failure)
                    self._dispatch()
                    os.write(self._bell, b".")
                    return True
        return False

    def close(self) -> None:
        """Kill every worker; tasks that had not finished get no outcome."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._tasks.clear()
            for member in self._crew:
                member.end(Failure(reason=Reason.CANCELLED, message="closed"))
            self._crew.clear()
            if self._forge is not None:
                self._forge.close()
        os.write(self._bell, b".")
        if self._pump is not None:
            self._pump.join()
        os.close(self._wake)
        os.close(self._bell)

    # From here on: called with the lock held, by the caller's thread or by the pump.

    def _prepared(self) -> Forge:
        for left in reversed(range(STARTS)):
            forge, self._forge = self._forge or Forge(self.threads, self.preload), None
            try:
                forge.ready()
            except RunnerError:
                if not left:
                    raise
                continue
            self._forge = forge
            return forge
        raise AssertionError("every try has returned or raised")

    def _finish(self, outcome: Outcome) -> None:
        self._keys.discard(outcome.key)
        self._done.put(outcome)

    def _dispatch(self) -> None:
        while self._tasks:
            member = next((one for one in self._crew if one.task is None), None) or self._hire()
            if member is None:
                return
            task = self._tasks.popleft()
            try:
                member.start(task)
            except OSError:
                self._lost(member)

    def _hire(self) -> Member | None:
        if len(self._crew) >= self.workers:
            return None
        index = min(set(range(self.workers)) - {member.index for member in self._crew})
        device = {"CUDA_VISIBLE_DEVICES": self.devices[index % len(self.devices)]} if self.devices else {}
        for left in reversed(range(STARTS)):
            try:
                member = Member(index, *self._prepared().worker(device))
            except (RunnerError, OSError, psutil.Error) as error:
                forge, self._forge = self._forge, None
                if forge is not None:
                    forge.close()
                if not left:
                    self._abandon(f"no worker could be started: {error}")
            except InputError as error:
                self._abandon(f"no worker could be started: {error}")
                return None
            else:
                self._crew.append(member)
                return member
        return None

    def _abandon(self, message: str) -> None:
        self._forge = None
        while self._tasks:
            task = self._tasks.popleft()
            failure = Failure(reason=Reason.CRASH, message=message)
            self._finish(Outcome(key=task.key, failure=failure, attempts=task.attempts))

    def _stop(self, member: Member, failure: Failure) -> None:
        self._crew.remove(member)
        outcome = member.end(failure)
        if outcome is not None:
            self._finish(outcome)

    def _lost(self, member: Member) -> None:
        self._crew.remove(member)
        how = self._forge.ending(member.pid) if self._forge else "the worker process is gone"
        outcome = member.end(Failure(reason=Reason.CRASH, message=how))
        if outcome is None or member.task is None:
            return
        if member.task.attempts <= member.task.retries:
            self._tasks.appendleft(member.task)
        else:
            self._finish(outcome)

    def _hear(self, member: Member) -> None:
        try:
            outcome = member.hear()
        except (EOFError, OSError):
            self._lost(member)
            return
        if outcome is not None:
            self._finish(outcome)

    # The pump: one thread that hears the workers, watches their limits and hands out the next tasks.

    def _tend(self) -> None:
        seen = time.monotonic()
        while not self._closed:
            with self._lock:
                links = {member.link: member for member in self._crew}
                busy = any(member.task for member in self._crew)
                control = [] if self._forge is None else [self._forge.control]
            # A member ended by the caller's thread meanwhile has a closed link; the next round forgets it.
            with contextlib.suppress(OSError, ValueError):
                multiprocessing.connection.wait([self._wake, *control, *links], POLL_SECONDS if busy else None)
            with self._lock:
                gap, seen = time.monotonic() - seen, time.monotonic()
                for member in self._crew if busy and gap > STOPPED_SECONDS else ():
                    member.forgive(gap)
                if not self._closed:
                    self._round()

    def _round(self) -> None:
        while multiprocessing.connection.wait([self._wake], 0):
            os.read(self._wake, 4096)
        if self._forge is not None and not self._forge.read(0):
            self._forge.close()
            self._forge = None
        for member in list(self._crew):
            while member in self._crew and member.link.poll():
                self._hear(member)
            if member in self._crew and (failure := member.breach()) is not None and not member.link.poll():
                self._stop(member, failure)
        self._dispatch()
