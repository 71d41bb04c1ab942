"""A process that has loaded the heavy modules once and forks warm workers from itself on request.

Its only client is `_forge.Forge`. Requests are one JSON line with a socket for the worker attached;
replies are JSON messages: ready, pid and exit. When the client goes away, every worker is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
from multiprocessing.connection import Connection
from typing import Any

import psutil

from radii.runners import _worker
from radii.runners._watch import end_group, end_tree

_SET_CHILD_SUBREAPER = 36  # from linux/prctl.h


def main(number: int, preload: list[str]) -> None:
    """Load the modules, then fork workers until the client closes the socket `number`."""
    control = socket.socket(fileno=number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for name in preload:
            if not name.endswith("?") or importlib.util.find_spec(name[:-1]) is not None:
                importlib.import_module(name.removesuffix("?"))
    except Exception as error:
        _say(control, fail=f"{type(error).__name__}: {error}")
        return
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    _say(control, ready=os.getpid())
    workers: set[int] = set()
    try:
        _serve(control, workers)
    finally:
        _end_orphans(set())


def _serve(control: socket.socket, workers: set[int]) -> None:
    wake, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control.fileno(), wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _reap(control, workers)
        if control.fileno() in ready:
            text, links = _request(control)
            if not text:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for number in (control.detach(), wake, bell):
                    os.close(number)
                _become_worker(links[0], json.loads(text))
            os.close(links[0])
            workers.add(pid)
            _say(control, pid=pid)


def _request(control: socket.socket) -> tuple[bytes, list[int]]:
    try:
        text, links, _, _ = socket.recv_fds(control, 65536, 1)
    except ConnectionError:  # the client is gone with a message of ours unread
        return b"", []
    return text, links


def _become_worker(link: int, environment: dict[str, str]) -> None:
    status = 1
    try:
        _worker.settle(environment)
        _worker.serve(Connection(link))
        status = 0
    finally:
        # Without _exit the forked copy would return into the zygote's loop.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)


def _reap(control: socket.socket, workers: set[int]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in workers:
            workers.discard(pid)
            end_group(pid)
            _say(control, exit=pid, status=os.waitstatus_to_exitcode(status))
            _end_orphans(workers)


def _end_orphans(workers: set[int]) -> None:
    """Kill what dead workers have left behind; as their sub-reaper we inherit it."""
    for child in psutil.Process().children():
        if child.pid not in workers:
            end_tree(child)


def _say(control: socket.socket, **message: Any) -> None:
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")
