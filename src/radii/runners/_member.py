"""One worker process as the pool sees it: its task, its clock, its limits and its end."""

from __future__ import annotations

import dataclasses
import pickle
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import psutil

from radii.runners._watch import end_group, end_tree, usage
from radii.runners._worker import BEGIN
from radii.runners.base import Failure, Limits, Outcome, Reason, Task, packed

LOADING_SECONDS = 120.0  # how much longer than its wall limit a task may take to import its modules


@dataclass
class PackedTask:
    """A task on its way: its packed function and arguments, and how often it was tried."""

    key: str
    call: bytes
    limits: Limits
    retries: int
    attempts: int = 0

    @staticmethod
    def of(task: Task) -> PackedTask:
        """The task, packed; raises `InputError` when it cannot be packed."""
        return PackedTask(task.key, packed(task), task.limits, task.retries)


class Member:
    """A worker process that runs one task at a time."""

    def __init__(self, index: int, pid: int, link: Connection) -> None:
        self.index = index
        self.pid = pid
        self.link = link
        self.process = psutil.Process(pid)
        self.task: PackedTask | None = None
        self._begun: float | None = None
        self._sent = 0.0
        self._cpu_before = 0.0
        self._cpu = 0.0
        self._peak = 0

    def start(self, task: PackedTask) -> None:
        """Send the task to the process; raises `OSError` when the process is gone."""
        self.task, self._begun, self._sent = task, None, time.monotonic()
        self._cpu, self._peak = 0.0, 0
        task.attempts += 1
        self.link.send_bytes(pickle.dumps((task.key, task.call)))

    def hear(self) -> Outcome | None:
        """The outcome when the process has sent it; raises `EOFError` or `OSError` when the process is gone."""
        message = self.link.recv_bytes()
        if message.startswith(BEGIN):
            self._begun, self._cpu_before = time.monotonic(), pickle.loads(message[len(BEGIN) :])
            return None
        outcome: Outcome = pickle.loads(message)
        peak = None if outcome.peak_memory is None else max(outcome.peak_memory, self._peak)
        task, self.task = self.task, None
        attempts = task.attempts if task else 1
        return dataclasses.replace(outcome, peak_memory=peak or self._peak or None, attempts=attempts)

    def forgive(self, seconds: float) -> None:
        """Take seconds in which nobody could watch (the watching process was stopped) off the task's wall clock."""
        self._sent += seconds
        if self._begun is not None:
            self._begun += seconds

    def breach(self) -> Failure | None:
        """Which limit the running task has passed, if any."""
        if self.task is None:
            return None
        memory, cpu = usage(self.pid)
        if self._begun is not None:
            self._cpu = max(self._cpu, cpu - self._cpu_before)
        self._peak = max(self._peak, memory)
        return self._passed(self.task.limits)

    def _passed(self, limits: Limits) -> Failure | None:
        wall = time.monotonic() - (self._begun or self._sent + LOADING_SECONDS)
        if limits.memory_bytes is not None and self._peak > limits.memory_bytes:
            used = f"{self._peak / 2**20:.0f} MiB of {limits.memory_bytes / 2**20:.0f} MiB"
            return Failure(reason=Reason.MEMORY, message=f"stopped at its memory limit: {used}")
        if limits.cpu_seconds is not None and self._cpu > limits.cpu_seconds:
            return Failure(reason=Reason.TIME, message=f"stopped at its limit of {limits.cpu_seconds:g} CPU seconds")
        if limits.wall_seconds is not None and wall > limits.wall_seconds:
            return Failure(reason=Reason.TIME, message=f"stopped at its limit of {limits.wall_seconds:g} wall seconds")
        return None

    def end(self, failure: Failure) -> Outcome | None:
        """Kill the process with all its children; the outcome of the task it had."""
        self.breach()  # a last look at what it has used
        end_tree(self.process)
        end_group(self.pid)
        self.link.close()
        if self.task is None:
            return None
        return Outcome(
            key=self.task.key,
            failure=failure,
            cpu_seconds=max(0.0, self._cpu),
            wall_seconds=time.monotonic() - (self._begun or self._sent),
            peak_memory=self._peak or None,
            attempts=self.task.attempts,
        )
