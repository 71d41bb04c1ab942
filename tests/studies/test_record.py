"""The published record: witnesses that are kept refute their rows, and a check that believes nothing finds bad ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.shared import needs

HOME = Path(__file__).parents[2]
SCRIPT = HOME / "studies" / "001" / "record.py"


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "check", "--folder", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@needs("jair", "mnist")
def test_every_kept_witness_refutes_its_published_row() -> None:
    done = check(SCRIPT.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (HOME / "docs" / "papers" / "record.md").read_text(encoding="utf-8")
    table = done.stdout[: done.stdout.index("\n\n")]
    assert table in page  # the page quotes what the command prints
    assert " 0 do not refute their row" in done.stdout


@needs("jair", "mnist")
@pytest.mark.parametrize(
    ("change", "said"), [("image", "the network still says"), ("far", "away, the published lower end is")]
)
def test_a_witness_that_refutes_nothing_is_found(tmp_path: Path, change: str, said: str) -> None:
    for name in ("record.csv", "record.npz"):
        shutil.copy(SCRIPT.parent / name, tmp_path / name)
    with np.load(tmp_path / "record.npz") as kept:
        points = kept["x"].copy()
    if change == "far":
        points[0] = 1.0 - points[0]
    else:  # the image itself, which the network classifies correctly
        sys.path.insert(0, str(SCRIPT.parent))
        from record import DATA, mnist, read_csv

        row = read_csv(tmp_path / "record.csv")[0]
        points[0] = mnist(DATA, row["split"])[0][int(row["index"])]
    np.savez_compressed(tmp_path / "record.npz", x=points)
    done = check(tmp_path)
    assert done.returncode == 1
    assert said in done.stdout
    assert " 1 do not refute their row" in done.stdout
