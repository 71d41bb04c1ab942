"""`import radii` is fast and loads nothing heavy; the parts without networks never load torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "onnx", "onnxruntime", "pandas", "matplotlib", "sqlalchemy", "plotly", "ray", "scipy")


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120, cwd=cwd
    )


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


def test_verifiers_are_made_without_torch() -> None:
    """What a plan asks of a verifier (its identity, what it takes) needs no tensors."""
    script = (
        "import sys; from radii.verifiers.catalogue import everyone; import radii.study.run, radii.evidence.check;"
        "print(all(one.identity for one, _ in everyone().values()), 'torch' in sys.modules)"
    )
    assert run("-c", script).stdout.split() == ["True", "False"]


def test_analysis_works_without_an_engine() -> None:
    script = (
        "import sys, radii; d = radii.Distribution.from_arrays(lower=[0.1, 0.2], upper=[0.2, 0.3]);"
        "print(d.robust_accuracy(0.15).proven, 'torch' in sys.modules)"
    )
    assert run("-c", script).stdout.split() == ["0.5", "False"]


STUDY = """
classifiers: ["zoo:*"]
data: {source: mnist5k, split: test, first: 2}
verifier: [native, milp, envelope]
budget: {seconds: 1}
"""
SMALL = STUDY.replace("zoo:*", "zoo:mnist5k-standard").replace(", milp, envelope", "")
PLOTS = ("matplotlib", "plotly", "ray", "foolbox", "sympy", "torch._dynamo")
NETWORKS = ("torch", "onnx", "onnxruntime", *PLOTS)
TABLES = ("pandas", "scipy.stats", "sqlalchemy", "radii.study.file")
LIGHT = {  # command -> what it must not have loaded when it ends
    "--help": (*NETWORKS, *TABLES, "numpy"),
    "run --help": (*NETWORKS, *TABLES, "numpy"),
    "run study.yaml --dry-run": ("torch", *PLOTS, "pandas", "scipy.stats", "sqlalchemy"),
    "run study.yaml --dry-run --store small.db": ("torch", *PLOTS, "pandas", "scipy.stats"),
    "status small.db": (*NETWORKS, "pandas", "scipy.stats", "radii.study.file"),
    "export small.db": (*NETWORKS, "scipy.stats", "radii.study.file"),
    "stats small.db": (*NETWORKS, "radii.study.file"),
    "gate small.db --robust-accuracy 0@0.001": (*NETWORKS, "radii.study.file"),
    "verifiers": (*NETWORKS, *TABLES),
    "attacks": (*NETWORKS, *TABLES),
    "datasets": (*NETWORKS, *TABLES),
    "properties": (*NETWORKS, *TABLES, "numpy"),
    "radius zoo:mnist5k-standard --data mnist5k": (*PLOTS, *TABLES, "numba"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of three networks, and a store with two radii."""
    place = tmp_path_factory.mktemp("light")
    (place / "study.yaml").write_text(STUDY, encoding="utf-8")
    (place / "small.yaml").write_text(SMALL, encoding="utf-8")
    run("-m", "radii", "run", "small.yaml", "--runner", "serial", cwd=place)
    return place


@pytest.mark.parametrize("command", LIGHT)
def test_commands_load_what_they_need(command: str, folder: Path) -> None:
    script = (
        "import sys; from radii.cli.main import run; code = run(sys.argv[1:]);"
        f"print(code, [m for m in {LIGHT[command]!r} if m in sys.modules])"
    )
    assert run("-c", script, *command.split(), cwd=folder).stdout.splitlines()[-1] == "0 []"


def test_what_is_loaded_on_the_way_is_not_charged() -> None:
    """The kernel of cuts takes most of a second to load; the clock of a budget does not see it."""
    script = (
        "import time, torch; from radii.bounds import cuts, tuning; from radii.decide import Clock;"
        "one, always = torch.ones, tuning.Bounding(cut_kernel=0); clock, start = Clock(), time.process_time();"
        "cuts.lowest_under_cut(one((1, 1, 1)), one((1, 1)), one((1, 1)), one(1), one(1), one(1), tuning=always);"
        "whole = time.process_time() - start; print(clock.cpu < whole / 5)"
    )
    assert run("-c", script).stdout.strip() == "True"
