"""Runs tasks one after another in this process: for tests, debugging and single queries."""

from __future__ import annotations

from collections import deque

from radii.errors import InputError
from radii.runners._measure import measured
from radii.runners.base import Failure, Outcome, Reason, Runner, Task


class SerialRunner(Runner):
    """Tasks run in the order of submission, each when its outcome is waited for.

    Limits cannot be enforced from inside: a function that must stop by itself is told its budget.
    """

    hard_limits = False

    def __init__(self) -> None:
        self._queue: dict[str, Task] = {}
        self._cancelled: deque[str] = deque()
        self._closed = False

    def submit(self, task: Task) -> None:
        """Queue a task; nothing runs yet."""
        if self._closed:
            raise InputError("runner: expected an open runner, got one that was closed")
        if task.key in self._queue or task.key in self._cancelled:
            raise InputError(f"task {task.key!r}: expected a key that is not pending, got it twice")
        self._queue[task.key] = task

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Run the next task to its end; the time-out cannot interrupt it."""
        if self._cancelled:
            message = "cancelled before it started"
            key = self._cancelled.popleft()
            return Outcome(key=key, failure=Failure(reason=Reason.CANCELLED, message=message), attempts=0)
        if not self._queue:
            return None
        task = self._queue.pop(next(iter(self._queue)))
        return measured(task.key, task.function, task.args)

    def cancel(self, key: str) -> bool:
        """Take a task that has not started out of the queue."""
        if self._queue.pop(key, None) is None:
            return False
        self._cancelled.append(key)
        return True

    def close(self) -> None:
        """Forget what has not started."""
        self._closed = True
        self._queue.clear()
        self._cancelled.clear()
