"""The driver's side of the zygote: makes warm worker processes and knows how each one ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from radii.errors import InputError, RunnerError

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_START = "import sys; sys.path[:] = {path!r}; from radii.runners._zygote import main; main({number}, {preload!r})"


class Forge:
    """Forks workers with `threads` threads each from one process that has `preload` imported.

    The process is started at once and loads while the caller goes on; the first `ready` or `worker` waits for it.
    """

    def __init__(self, threads: int, preload: Sequence[str]) -> None:
        ours, theirs = socket.socketpair()
        environment = os.environ | dict.fromkeys(_THREADS, str(threads))
        code = _START.format(path=sys.path, number=theirs.fileno(), preload=list(preload))
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.control = ours
        self._text = b""
        self._exits: dict[int, int] = {}
        self._told: dict[str, object] = {}
        self._loaded = False

    def ready(self) -> None:
        """Wait until everything is loaded.

        Raises `InputError` for a module that cannot be imported and `RunnerError` when the process is gone or hangs.
        """
        if not self._loaded:
            self._until("ready", 300)
            self._loaded = True

    def worker(self, environment: Mapping[str, str]) -> tuple[int, Connection]:
        """The process id of a new worker and the link to it."""
        self.ready()
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self.control, [json.dumps(dict(environment)).encode()], [theirs.fileno()])
            pid = self._until("pid", 60)
        except BaseException:
            ours.close()
            raise
        self._exits.pop(pid, None)  # process ids are reused
        return pid, Connection(ours.detach())

    def ending(self, pid: int) -> str:
        """How a worker ended, in words; waits a moment for the news to arrive."""
        deadline = time.monotonic() + 2
        while pid not in self._exits and time.monotonic() < deadline and self.read(0.1):
            pass
        status = self._exits.pop(pid, None)
        return _ended(status, "the worker process")

    def read(self, timeout: float) -> bool:
        """Take in what the zygote says; False when it is gone."""
        if not select.select([self.control], [], [], timeout)[0]:
            return True
        data = self.control.recv(65536)
        self._text += data
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "exit" in message:
                self._exits[message["exit"]] = message["status"]
            else:
                self._told.update(message)
        return bool(data)

    def _until(self, name: str, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while name not in self._told:
            alive = self.read(1.0)
            if "fail" in self._told:
                self.close()
                why = self._told["fail"]
                raise InputError(f"runner: expected workers to start, got {why}; check the modules to preload")
            if not alive or time.monotonic() > deadline:
                self.close()
                got = f"no answer for {seconds:g} s" if alive else _ended(self.process.returncode, "the helper process")
                raise RunnerError(f"runner: expected workers to start, got {got}")
        number = self._told.pop(name)
        return int(str(number))

    def close(self) -> None:
        """End the zygote, which ends every worker that is left."""
        # Closing alone is not seen at the other end while another thread polls the socket.
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        if not self._loaded:  # it would not look at the socket before it has loaded everything, and has no children yet
            self.process.kill()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _ended(status: int | None, who: str) -> str:
    """How a process ended, in words."""
    if status is None:
        return f"{who} is gone"
    if status >= 0:
        return f"{who} ended with exit code {status}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-status).name
        hint = ", perhaps by the system for want of memory" if name == "SIGKILL" else ""
        return f"{who} was ended by {name}{hint}"
    return f"{who} was ended by signal {-status}"
