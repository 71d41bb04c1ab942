"""What a runner carries (`Task`), what comes back (`Outcome`) and what every runner can do (`Runner`).

A runner maps picklable functions over keyed tasks. It knows nothing of what the functions compute.
"""

from __future__ import annotations

import importlib
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from types import TracebackType
from typing import Any, Self

from radii import _check
from radii.errors import InputError


class Reason(StrEnum):
    """Why a task gave no value."""

    TIME = "time"
    MEMORY = "memory"
    CRASH = "crash"
    ERROR = "error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one task may use, its child processes included; None means without limit.

    Memory is the resident size of the worker's process tree, the loaded libraries included.
    """

    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "wall_seconds", "memory_bytes"):
            value = getattr(self, name)
            if value is not None:
                _check.number(value, f"limits.{name}", low=0, strict=True)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One call of `function(*args)` under `limits`, named by a key that is unique among the pending tasks.

    `retries` counts further tries after a crash or a lost node. An exception, a limit or a
    cancellation is an outcome, not an accident, and is never retried.
    """

    key: str
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    limits: Limits = field(default_factory=Limits)
    retries: int = 0

    def __post_init__(self) -> None:
        _check.whole(self.retries, "task.retries")
        if not self.key or not callable(self.function):
            raise InputError(f"task: expected a key and a callable, got {self.key!r} and {self.function!r}")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why there is no value: the reason, one line for people, and the traceback where there is one."""

    reason: Reason
    message: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of one task: a value, or a failure with its reason; and what it cost.

    `peak_memory` is in bytes and None where it could not be seen; `attempts` counts the tries.
    """

    key: str
    value: Any = None
    failure: Failure | None = None
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_memory: int | None = None
    attempts: int = 1

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return self.failure is None

    @property
    def reason(self) -> Reason | None:
        """Why it failed; None when it did not."""
        return None if self.failure is None else self.failure.reason


class Runner(ABC):
    """Runs tasks and hands each outcome back as it is finished: exactly one for every submitted task.

    Use as a context manager; leaving it cancels what still runs and leaves no process behind.
    `hard_limits` says whether the runner can stop a task at its limits and cancel it while it runs.
    """

    hard_limits: bool = True

    @property
    def workers(self) -> int:
        """How many tasks can run at once."""
        return 1

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Queue a task. A task that cannot be pickled, or a key already pending, raises `InputError`."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> Outcome | None:
        """The next finished outcome; None when nothing is pending or `timeout` seconds have passed."""

    @abstractmethod
    def cancel(self, key: str) -> bool:
        """Stop a task, queued or running; its outcome is then CANCELLED. False when it was not pending."""

    @abstractmethod
    def close(self) -> None:
        """Stop everything and leave no process behind; safe to call twice."""

    def run(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Outcomes of the tasks as they finish; tasks are drawn lazily, a few per worker ahead.

        Closing the iterator early cancels what it has submitted. Do not mix with `submit`.
        """
        pending: set[str] = set()
        source = iter(tasks)
        try:
            while True:
                for task in islice(source, 2 * self.workers + 1 - len(pending)):
                    self.submit(task)
                    pending.add(task.key)
                outcome = self.wait()
                if outcome is None:
                    return
                pending.discard(outcome.key)
                yield outcome
        finally:
            self._drop(pending)

    def _drop(self, pending: set[str]) -> None:
        for key in pending:
            self.cancel(key)
        while pending and (outcome := self.wait(timeout=10)) is not None:
            pending.discard(outcome.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def packed(task: Task) -> bytes:
    """The task's function and arguments as bytes, for a worker process."""
    call = (task.function, task.args)
    try:
        if getattr(task.function, "__module__", None) != "__main__":
            return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        # A function of the user's own script is not importable by a worker; cloudpickle sends its code.
        cloudpickle = importlib.import_module("cloudpickle")
        return bytes(cloudpickle.dumps(call, pickle.HIGHEST_PROTOCOL))
    except ImportError:
        raise InputError(
            f"task {task.key!r}: expected a function that workers can import, got one of the running script; "
            "move it into a module or pip install cloudpickle"
        ) from None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"task {task.key!r}: expected a module-level function and picklable arguments, got {error}; "
            "pass paths or arrays instead of open objects"
        ) from None
