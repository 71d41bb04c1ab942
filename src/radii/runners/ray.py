"""Runs tasks on a Ray cluster with the semantics of the local pool; Ray is imported on construction.

Every Ray worker keeps one warm local process (`ProcessRunner`) and runs tasks in it, so limits, crashes and
costs mean the same on a cluster as on one machine. Lost nodes are Ray's to notice: the task runs again elsewhere.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from radii import _check
from radii.errors import InputError
from radii.runners._member import PackedTask
from radii.runners.base import Failure, Outcome, Reason, Runner, Task
from radii.runners.processes import ProcessRunner, cores

_FORCE_SECONDS = 2.0  # how long a cancelled task may take to end by itself
_COUNT_SECONDS = 5.0  # how often the cluster's slots are counted
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What one task occupies on its node; `gpus` may be a fraction, `resources` are a cluster's own names."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory_bytes: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)

    def needs(self) -> dict[str, float]:
        """The amounts by Ray's names; nothing is asked for what is zero."""
        amounts = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory_bytes or 0), **self.resources}
        return {name: amount for name, amount in amounts.items() if amount > 0}


class RayRunner(Runner):
    """Tasks on the Ray cluster at `address` ("auto", "HOST:PORT" or "ray://HOST:PORT"), or on a new local one.

    `request` is what each task occupies, `preload` names modules that every worker imports first, and a task
    whose node is lost runs again up to `node_retries` times.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        request: Request | None = None,
        preload: Sequence[str] = (),
        node_retries: int = 3,
    ) -> None:
        self.request = request or Request()
        self.preload = tuple(preload)
        self._ray = _check.optional("ray", "ray", "the Ray runner")
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _connect(self._ray, address)
        self._remote = self._ray.remote(_execute).options(
            num_cpus=self.request.cpus,
            num_gpus=self.request.gpus,
            memory=self.request.memory_bytes,
            resources=dict(self.request.resources) or None,
            max_retries=_check.whole(node_retries, "node_retries"),
            retry_exceptions=False,
        )
        self._queue: deque[PackedTask] = deque()
        self._keys: set[str] = set()
        self._flights: dict[Any, tuple[PackedTask, float]] = {}
        self._leaving: dict[Any, float] = {}
        self._dropped: deque[Outcome] = deque()
        self._slots, self._counted = 0, -_COUNT_SECONDS
        self._closed = False

    @property
    def workers(self) -> int:
        """How many tasks the cluster can run at once; it may grow and shrink."""
        now = time.monotonic()
        if now - self._counted >= _COUNT_SECONDS:
            self._slots, self._counted = _slots(self._ray.nodes(), self.request), now
            if self._slots == 0:
                _log.warning("no node of the Ray cluster has %s; tasks wait until one joins", self.request.needs())
        return max(1, self._slots)

    def submit(self, task: Task) -> None:
        """Queue a task; Ray places it on a node with room for the request."""
        if self._closed:
            raise InputError("runner: expected an open runner, got one that was closed")
        if task.key in self._keys:
            raise InputError(f"task {task.key!r}: expected a key that is not pending, got it twice")
        self._queue.append(PackedTask.of(task))
        self._keys.add(task.key)
        self._launch()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """The next finished outcome; None when nothing is pending or the time is up."""
        outcome = self._next(timeout)
        if outcome is not None:
            self._keys.discard(outcome.key)
        return outcome

    def _next(self, timeout: float | None) -> Outcome | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._dropped:
                return self._dropped.popleft()
            self._launch()
            if not self._flights:
                return None
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _ = self._ray.wait(list(self._flights), timeout=self._patience(left))
            if ready:
                return self._land(ready[0])
            if left is not None and left <= 0:
                return None

    def cancel(self, key: str) -> bool:
        """Stop a task, queued or running; a running one is asked first, then killed."""
        for task in self._queue:
            if task.key == key:
                self._queue.remove(task)
                failure = Failure(reason=Reason.CANCELLED, message="cancelled before it started")
                self._dropped.append(Outcome(key=key, failure=failure, attempts=0))
                return True
        for ref, (task, _) in self._flights.items():
            if task.key == key and ref not in self._leaving:
                if self._ray.wait([ref], timeout=0)[0]:
                    return False
                self._ray.cancel(ref, force=False)
                self._leaving[ref] = time.monotonic() + _FORCE_SECONDS
                return True
        return False

    def close(self) -> None:
        """Cancel everything; a cluster that this runner started is ended, another one is left as it was."""
        if self._closed:
            return
        self._closed = True
        self._queue.clear()
        self._ground(list(self._flights))
        self._flights.clear()
        if self._ours:
            self._ray.shutdown()

    def _ground(self, refs: list[Any]) -> None:
        """End what is in flight: asked first, so that tasks can end their own child processes, then killed."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            for ref in refs:
                self._ray.cancel(ref, force=False)
            if refs:
                _, stuck = self._ray.wait(refs, num_returns=len(refs), timeout=_FORCE_SECONDS)
                for ref in stuck:
                    self._ray.cancel(ref, force=True)

    def _launch(self) -> None:
        # A little ahead of the slots, so that no slot waits for the driver.
        while self._queue and len(self._flights) < 2 * self.workers + 1:
            task = self._queue.popleft()
            threads = max(1, int(self.request.cpus))
            ref = self._remote.remote(task, threads, self.preload, [path for path in sys.path if path])
            self._flights[ref] = (task, time.monotonic())

    def _patience(self, left: float | None) -> float | None:
        """How long to wait in one go; cancelled tasks that do not end are killed meanwhile."""
        now = time.monotonic()
        for ref, deadline in self._leaving.items():
            if now >= deadline:
                self._ray.cancel(ref, force=True)
                self._leaving[ref] = now + _FORCE_SECONDS
        if not self._leaving and not self._queue:
            return left
        return 0.2 if left is None else min(left, 0.2)

    def _land(self, ref: Any) -> Outcome:
        task, started = self._flights.pop(ref)
        left = self._leaving.pop(ref, None) is not None
        try:
            outcome: Outcome = self._ray.get(ref)
            return outcome
        except self._ray.exceptions.RayError as error:
            failure = _failure(self._ray.exceptions, error, left)
            return Outcome(key=task.key, failure=failure, wall_seconds=time.monotonic() - started)


def _connect(ray: Any, address: str | None) -> None:
    if address not in (None, "auto", "local"):
        _probe(str(address))
    # Ray must not change the caller's logging, print, or open a dashboard on a machine it only borrows.
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
    if address in (None, "local") and "RAY_ADDRESS" not in os.environ:
        options |= {"num_cpus": cores(), "include_dashboard": False, "address": "local"}
    elif address is not None:
        options["address"] = address
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, ImportError, ray.exceptions.RayError) as error:
        line = " ".join(str(error).split())
        raise InputError(f"ray: expected a cluster at {address or 'this machine'}, got {line}") from None


def _probe(address: str) -> None:
    """Ask the address for a connection; Ray itself would keep trying for a long time."""
    parts = urlsplit(address if "://" in address else f"ray://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise InputError(f"ray: expected an address such as 'auto', 'HOST:6379' or 'ray://HOST:10001', got {address!r}")
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise InputError(
            f"ray: expected a cluster at {address}, got {error.strerror or error}; start one with `ray start --head`"
        ) from None


def _slots(nodes: Sequence[Mapping[str, Any]], request: Request) -> int:
    """How many requests fit on the living nodes, each node by itself."""
    needs = request.needs()
    fits = [
        int(min((node["Resources"].get(name, 0.0) / amount for name, amount in needs.items()), default=1))
        for node in nodes
        if node["Alive"]
    ]
    return sum(fits)


def _failure(exceptions: Any, error: Exception, cancelled: bool) -> Failure:
    message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if cancelled or isinstance(error, exceptions.TaskCancelledError):
        return Failure(reason=Reason.CANCELLED, message="cancelled")
    if isinstance(error, exceptions.OutOfMemoryError):
        return Failure(reason=Reason.MEMORY, message="stopped by Ray: its node ran out of memory", detail=str(error))
    if isinstance(error, exceptions.RayTaskError):
        last = str(error).strip().splitlines()[-1]
        return Failure(reason=Reason.ERROR, message=f"the node cannot run tasks: {last}", detail=str(error))
    return Failure(reason=Reason.CRASH, message=f"{type(error).__name__}: {message}", detail=str(error))


# From here on: in the Ray worker, on whatever node it is.

_pools: dict[tuple[Any, ...], ProcessRunner] = {}


def _execute(task: PackedTask, threads: int, preload: tuple[str, ...], path: list[str]) -> Outcome:
    """The outcome of a task, run in this Ray worker's own warm process."""
    sys.path += [entry for entry in path if entry not in sys.path and os.path.exists(entry)]
    pool = _pool(min(threads, cores()), preload)
    try:
        pool.accept(task)
        while True:
            # A cancellation arrives as KeyboardInterrupt between two waits.
            if (outcome := pool.wait(timeout=0.1)) is not None:
                return outcome
    except KeyboardInterrupt:
        pool.cancel(task.key)
        last = pool.wait(timeout=_FORCE_SECONDS)
        if last is None:
            raise
        return last


def _pool(threads: int, preload: tuple[str, ...]) -> ProcessRunner:
    # A Ray worker may be given another GPU for its next task; the warm process has seen only its own.
    key = (threads, preload, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if key not in _pools:
        for old in _pools.values():
            old.close()
        _pools.clear()
        _pools[key] = ProcessRunner(1, threads=threads, preload=preload)
    return _pools[key]
