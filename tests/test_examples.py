"""Every example runs as it stands, is short, says something, and draws the picture that the docs show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
PAGE = (ROOT / "docs" / "how-to" / "examples.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    picture = (tmp_path / f"{path.stem}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5000
    assert f"](../pictures/{path.stem}.png)" in PAGE
    assert (ROOT / "docs" / "pictures" / f"{path.stem}.png").exists()


def test_examples_are_short_and_numbered() -> None:
    assert len(EXAMPLES) >= 6
    numbers = [int(path.stem[:2]) for path in EXAMPLES]
    assert numbers == list(range(1, len(EXAMPLES) + 1))
    assert {path.stem: lines for path in EXAMPLES if (lines := len(path.read_text().splitlines())) >= 60} == {}
