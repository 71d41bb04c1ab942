"""`import radii` is fast and loads nothing heavy; the parts without networks never load torch."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

HEAVY = ("torch", "onnx", "onnxruntime", "pandas", "matplotlib", "sqlalchemy", "plotly", "ray", "scipy")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120)


def test_import_is_fast() -> None:
    """Under 0.3 s by Python's own account (the best of three: the machine may be busy)."""
    totals = []
    for _ in range(3):
        report = run("-X", "importtime", "-c", "import radii").stderr
        line = next(line for line in report.splitlines() if re.search(r"\| radii$", line))
        totals.append(int(line.split("|")[1]) / 1e6)
    assert min(totals) < 0.3


@pytest.mark.parametrize("module", ["radii", "radii.cli.main", "radii.errors"])
def test_nothing_heavy_is_loaded(module: str) -> None:
    script = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run("-c", script).stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["radii.problem", "radii.stats", "radii.runners", "radii.store"])
def test_roots_load_neither_torch_nor_onnx(module: str) -> None:
    script = f"import sys, {module}; print([m for m in ('torch', 'onnx', 'onnxruntime') if m in sys.modules])"
    assert run("-c", script).stdout.strip() == "[]"


def test_analysis_works_without_an_engine() -> None:
    script = (
        "import sys, radii; d = radii.Distribution.from_arrays(lower=[0.1, 0.2], upper=[0.2, 0.3]);"
        "print(d.robust_accuracy(0.15).proven, 'torch' in sys.modules)"
    )
    assert run("-c", script).stdout.split() == ["0.5", "False"]
