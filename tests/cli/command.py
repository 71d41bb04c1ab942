"""Runs `radii` as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from radii.cli.main import run


def radii(
    *words: object, cwd: Path | None = None, env: dict[str, str] | None = None, seconds: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """The finished process of one command line."""
    return subprocess.run(
        [sys.executable, "-m", "radii.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=600,
        check=False,
    )


def refused(*words: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The one line of a command line that must be refused as bad input, run in a process of its own."""
    done = radii(*words, cwd=cwd, env=env)
    return the_line(done.returncode, done.stdout, done.stderr)


def refused_here(capfd: pytest.CaptureFixture[str], *words: object) -> str:
    """The same without a new process, which is what most of the time of such a test goes to."""
    capfd.readouterr()
    code = run([str(word) for word in words])
    return the_line(code, *capfd.readouterr())


def the_line(code: int, out: str, err: str) -> str:
    """The only line on stderr, after a check of the contract: exit code 2, nothing on stdout."""
    assert code == 2, (code, out, err)
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("radii: ")
    return lines[0]
