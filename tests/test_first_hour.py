"""The first hour of a new user, step by step in a clean virtual environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(1800)
def test_the_first_hour(tmp_path: Path) -> None:
    script = Path(__file__).with_name("first_hour.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
