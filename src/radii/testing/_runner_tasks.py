"""Tasks for the exam of runners: each does one thing that a runner must survive, limit or report."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MIB = 2**20


def square(x: float) -> float:
    return x * x


def fail(message: str) -> None:
    raise ValueError(message)


def unsendable() -> Any:
    return lambda: None


def touch_and_sleep(path: str, seconds: float) -> str:
    Path(path).write_text(str(os.getpid()))
    time.sleep(seconds)
    return path


def spin(seconds: float) -> None:
    """Use that many CPU seconds."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


def devour(chunk: int = 8 * MIB) -> None:
    """Allocate without bound, touching every page."""
    held = []
    while True:
        held.append(bytearray(b"x" * chunk))


def hold(size: int) -> int:
    """Hold `size` bytes for a moment."""
    block = bytearray(b"x" * size)
    time.sleep(0.1)
    return len(block)


def with_child(path: str) -> None:
    """Start a child in its own session, write its process id, wait for it."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as child:
        Path(path).write_text(str(child.pid))
        child.wait()


def spinning_child() -> None:
    """Let a child process use the CPU."""
    subprocess.run([sys.executable, "-c", "while True: pass"], check=True)


def devouring_child() -> None:
    """Let a child process allocate without bound."""
    code = "held = []\nwhile True: held.append(b'x' * (8 << 20))"
    subprocess.run([sys.executable, "-c", code], check=True)


def die_once(path: str) -> str:
    """End the process hard the first time, return the second time."""
    if not Path(path).exists():
        Path(path).touch()
        os._exit(9)
    return "second"


def crash() -> None:
    os.abort()


def crash_leaving_child(path: str) -> None:
    """Start a child in its own session, then die."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    Path(path).write_text(str(child.pid))
    os.abort()
