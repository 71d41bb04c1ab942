"""run: an external program under wall, CPU and memory limits, ended with everything it started, leaving nothing behind.

The program leads a session of its own and carries a mark in its environment, so that children which leave the session
(daemons) are found as well. Ending it takes a few milliseconds: no grace, since a verifier has nothing to save.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from radii.errors import InputError, ToolMissing
from radii.runners._watch import usage

MARK = "RADII_CHILD"
_PROC = Path("/proc/self/environ").exists()
_PATIENCE = 5.0  # seconds to wait for killed processes to be gone
_TICK = 0.05  # seconds between looks at a running program, at most


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the program and all its children may use together; None means no limit. `output` is in bytes per stream."""

    wall: float | None = None
    cpu: float | None = None
    memory: int | None = None
    output: int = 4 * 2**20


@dataclass(frozen=True)
class Finished:
    """How a program ended: `end` is "exit", "time", "memory" or "cancelled"; a negative code is a signal's number.

    `stdout` is the beginning of what was printed, `stderr` its last part.
    """

    end: str
    code: int | None
    stdout: str
    stderr: str
    cpu_seconds: float
    wall_seconds: float
    peak_memory: int


def run(
    argv: Sequence[str],
    limits: Limits,
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    stop: Callable[[], bool] | None = None,
) -> Finished:
    """What the program printed and how it ended. A program that is not there raises `ToolMissing`."""
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"  # in its environment: finds children that leave the session
    with tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        child = _start(argv, source, cwd, {**(os.environ if env is None else env), MARK: mark})
    watch = _Watch(child, mark, limits)
    with _terminable():
        try:
            return watch.follow(stop)
        finally:
            watch.close()


def end_all() -> None:
    """Ends every program that this process runs, with everything it started: for an exit that cannot wait."""
    for pid in _marked(f"{os.getpid()}-"):
        _kill(pid)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes SIGTERM an exception while a program runs, so that it does not outlive us; a handler that is set stays."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, _: Any) -> None:
    sys.exit(128 + number)


@contextlib.contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A new folder for the files of one run, gone afterwards; one that cannot be made is bad input, with the remedy.

    A process that was killed leaves its folder to the next one that needs a folder.
    """
    wanted = os.environ.get("TMPDIR")
    if wanted and not (os.path.isdir(wanted) and os.access(wanted, os.W_OK | os.X_OK)):
        # Python would quietly take another folder; who set this one has a reason, such as a full disk.
        raise InputError(f"{wanted}: expected a folder to write to ({purpose}); set TMPDIR to one")
    try:
        _sweep()
        folder = tempfile.TemporaryDirectory(prefix=f"radii-{os.getpid()}-", ignore_cleanup_errors=True)
    except OSError as error:
        where = tempfile.tempdir or os.environ.get("TMPDIR", "the temporary folder")
        raise InputError(f"{where}: expected a folder to write to ({purpose}), got: {error}; set TMPDIR") from error
    with folder as name:
        yield Path(name)


def _sweep() -> None:
    """Removes the folders of processes that are no more."""
    for folder in Path(tempfile.gettempdir()).glob("radii-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _start(argv: Sequence[str], source: IO[bytes], cwd: Any, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if cwd is not None and not Path(cwd).is_dir():
            raise InputError(f"{cwd}: expected a folder to run {argv[0]} in, got none") from error
        raise ToolMissing(str(argv[0]), "expected a program on the PATH or the path of one") from error
    except OSError as error:
        raise InputError(f"{shlex.join(argv)}: cannot be started: {error.strerror}") from error


class _Watch:
    """Follows one program: reads its output, adds up what it uses, ends it."""

    def __init__(self, child: subprocess.Popen[bytes], mark: str, limits: Limits) -> None:
        self.child, self.mark, self.limits = child, mark, limits
        self.start, self.peak, self.cpu = time.perf_counter(), 0, 0.0
        assert child.stdout is not None
        assert child.stderr is not None
        self.kept: dict[int, bytearray] = {}
        self.selector = selectors.DefaultSelector()
        for stream in (child.stdout, child.stderr):
            os.set_blocking(stream.fileno(), False)
            self.kept[stream.fileno()] = bytearray()
            self.selector.register(stream, selectors.EVENT_READ)

    def follow(self, stop: Callable[[], bool] | None) -> Finished:
        """Waits until the program ends, a limit is met, or `stop` says so."""
        tick, look = 0.001, 0.0
        while True:
            self._read(tick)
            tick = min(2 * tick, _TICK)
            if self._reap():
                return self._finished("exit")
            if stop is not None and stop():
                return self._finished("cancelled")
            now = time.perf_counter()
            if now >= look:
                look = now + _TICK
                self._measure()
            end = self._exceeded(now)
            if end:
                return self._finished(end)

    def close(self) -> None:
        """Ends whatever is left and gives back every handle."""
        self._end()
        self.selector.close()
        for stream in (self.child.stdout, self.child.stderr):
            if stream is not None:
                stream.close()

    def _exceeded(self, now: float) -> str:
        limits = self.limits
        if limits.memory is not None and self.peak > limits.memory:
            return "memory"
        late = limits.wall is not None and now - self.start >= limits.wall
        return "time" if late or (limits.cpu is not None and self.cpu >= limits.cpu) else ""

    def _read(self, timeout: float) -> bool:
        """Takes what the program printed; whether there was anything."""
        if not self.selector.get_map():
            time.sleep(timeout)
            return False
        events = self.selector.select(timeout)
        for key, _ in events:
            chunk = b""
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    self.selector.unregister(key.fileobj)
            self._keep(key.fd, chunk)
        return bool(events)

    def _keep(self, fd: int, chunk: bytes) -> None:
        kept = self.kept[fd]
        kept += chunk
        if len(kept) > self.limits.output:
            if self.child.stdout is not None and fd == self.child.stdout.fileno():
                del kept[self.limits.output :]
            else:
                del kept[: -self.limits.output]

    def _reap(self) -> bool:
        """Whether the program itself has ended; collects it and its CPU time."""
        if self.child.returncode is not None:
            return True
        try:
            pid, status, used = os.wait4(self.child.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else collected it: the code is lost, the end is not
            self.child.returncode = -1
            return True
        if pid == 0:
            return False
        self.child.returncode = os.waitstatus_to_exitcode(status)
        self.cpu = max(self.cpu, used.ru_utime + used.ru_stime)
        return True

    def _measure(self) -> None:
        memory, cpu = usage(self.child.pid)
        self.peak, self.cpu = max(self.peak, memory), max(self.cpu, cpu)

    def _finished(self, end: str) -> Finished:
        # What is in the pipes by now still counts; children that keep them open do not hold us up.
        deadline = time.perf_counter() + 0.2
        while self.selector.get_map() and time.perf_counter() < deadline and self._read(0.0):
            pass
        code = self.child.returncode
        self._end()
        out, err = (bytes(kept).decode("utf-8", "replace") for kept in self.kept.values())
        return Finished(end, code, out, err, self.cpu, time.perf_counter() - self.start, self.peak)

    def _end(self) -> None:
        """Kills the session and every process that carries the mark, until none is left; collects the program."""
        deadline = time.perf_counter() + _PATIENCE
        while time.perf_counter() < deadline:
            if self.child.returncode is None:
                _kill(self.child.pid, group=True)
            alive = {pid for pid in _marked(self.mark) if pid != self.child.pid}
            for pid in alive:
                _kill(pid)
            if self.child.returncode is None:
                with contextlib.suppress(ChildProcessError):
                    _, status, used = os.wait4(self.child.pid, 0)
                    self.child.returncode = os.waitstatus_to_exitcode(status)
                    self.cpu = max(self.cpu, used.ru_utime + used.ru_stime)
            elif not alive:
                return
            else:
                time.sleep(0.002)  # a killed process takes a moment to go, longer on a busy machine


def _kill(pid: int, group: bool = False) -> None:
    with contextlib.suppress(OSError):
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    """The processes, zombies not counted, whose environment carries a mark that starts like this."""
    wanted = f"{MARK}={mark}".encode()
    if _PROC:
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read():
                        yield int(name)
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK, "").startswith(mark):
                yield process.pid
