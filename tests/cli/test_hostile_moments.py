"""What happens to a run while it works: files that change, a clock that is set, memory that ends, another locale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.command import radii
from tests.study.build import assert_same, events, start, table, toy_study

from radii import zoo
from radii.cli.main import run
from radii.runners import ProcessRunner
from radii.store import open_store, radii_frame
from radii.study.plan import load_plan
from radii.study.run import Run
from radii.testing.toys import relu_toy

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return toy_study(tmp_path / "s")


@pytest.fixture
def expected(study: Path) -> Any:
    """What the study gives when nothing happens."""
    assert run(["run", str(study), "--runner", "serial", "--store", str(study.parent / "calm.db")]) == 0
    return table(study.parent / "calm.db")


def test_a_data_file_that_changes_during_a_run(study: Path, expected: Any, capfd: Capture) -> None:
    """Inputs are those that were planned; the changed file shows when the store is checked, or the run repeated."""
    process = start(study, store := study.parent / "run.db", "--workers", 1)
    assert process.stdout is not None
    first = process.stdout.readline()
    points = study.parent / "points.npz"
    kept = points.read_bytes()
    np.savez(points, x=np.load(points)["x"][::-1] * np.float32(0.5), y=np.load(points)["y"])
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert len(events(first + out)) == 12
    assert_same(table(store), expected)
    assert run(["check", str(store)]) == 3
    assert "expected the input that the store speaks of" in capfd.readouterr().err
    points.write_bytes(kept)
    assert run(["check", str(store)]) == 0


def test_a_network_that_changes_during_a_run(study: Path, expected: Any) -> None:
    """A worker that loads it afterwards refuses it: these units fail by name, and are done when it is back."""
    nets, plan = study.parent / "nets", load_plan(study)
    kept = (nets / "toy0.onnx").read_bytes()
    relu_toy(7).save(nets / "toy0.onnx")
    with open_store(study.parent / "run.db") as store:
        with ProcessRunner(1) as runner:
            done = Run(plan, store, runner).run()
        assert {failed.unit.record.classifier.name for failed in done.failures} == {"toy0"}
        assert "toy0.onnx: expected the network that the study began with" in done.failures[0].failure
        solved = radii_frame(store)
        assert set(solved[solved["classifier"] == "toy0"]["status"]) == {"unsolved"}
    (nets / "toy0.onnx").write_bytes(kept)
    assert run(["run", str(study), "--store", str(study.parent / "run.db"), "--runner", "serial", "--retry"]) == 0
    assert_same(table(study.parent / "run.db"), expected)


JUMPS = """
import itertools, time
real, jumps = time.time, itertools.cycle([0.0, 86400.0, 0.0, -86400.0, 3600.0])
time.time = lambda: real() + next(jumps)
"""


def test_a_clock_that_jumps_all_the_time(study: Path, expected: Any) -> None:
    """In every process of the run: days ahead, days back, at each look. Nothing is lost, done twice or given up."""
    (study.parent / "sitecustomize.py").write_text(JUMPS)
    path = os.pathsep.join([str(study.parent), os.environ.get("PYTHONPATH", "")])
    done = radii("run", study, "--store", study.parent / "run.db", "--workers", 1, "--json", env={"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    keys = [one["key"] for one in events(done.stdout)]
    assert len(keys) == len(set(keys)) == 12
    assert_same(table(study.parent / "run.db"), expected)


SCARCE = """
import resource, sys
import numpy as np, torch
import radii
from radii.models.load import load_classifier
torch.set_num_threads(1)
net = load_classifier(sys.argv[1])
x = np.random.default_rng(0).random((1, 28, 28)).astype(np.float32)
label = int(net.predict(x))
radii.radius(net, x, label, nodes=1, limit=1e-4)  # everything is loaded
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, resource.RLIM_INFINITY))
found = radii.radius(net, x, label, nodes=64)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
whole = radii.radius(net, x, label, nodes=64)
assert found.lower is None or found.lower < whole.upper
assert found.upper is None or found.upper > whole.lower
print(found.status.value, found.note, found.cost.memory_errors)
"""


def test_memory_that_really_ends_is_an_open_interval() -> None:
    """The system gives no more pages in the middle of a search: what was found stands, and the reason is given."""
    words = [sys.executable, "-c", SCARCE, str(zoo.path("mnist5k-conv"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() in ("open out of memory 1", "unsolved out of memory 1")


GERMAN = "comma_DE.UTF-8"
COMMAS = """
import locale, sys
assert locale.setlocale(locale.LC_ALL, "comma_DE.UTF-8")
assert locale.str(0.5) == "0,5"
from radii.cli.main import run
study, store, folder = sys.argv[1:]
codes = [run(["run", study, "--runner", "serial", "--store", store])]
for what in ("radii", "queries"):
    codes.append(run(["export", store, "--what", what, "-o", f"{folder}/{what}.csv"]))
codes.append(run(["export", store, "--format", "json", "-o", f"{folder}/radii.json"]))
codes.append(run(["report", store, "-o", f"{folder}/report.md"]))
codes.append(run(["report", store, "-o", f"{folder}/report.html"]))
codes.append(run(["check", store]))
print(codes, file=sys.stderr)
"""


def test_a_locale_with_decimal_commas(study: Path, expected: Any, tmp_path: Path) -> None:
    """Numbers are written with points and read back exactly, whatever the C library would print."""
    if shutil.which("localedef") is None or not Path("/usr/share/i18n/locales/de_DE").exists():
        pytest.skip("NO LOCALES: needs localedef and its sources (Debian: apt install locales)")
    subprocess.run(["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", tmp_path / GERMAN], check=False)
    store = study.parent / "commas.db"
    calm, german = tmp_path / "calm", tmp_path / "german"
    for folder in (calm, german):
        folder.mkdir()
    env = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": GERMAN}
    words = [sys.executable, "-c", COMMAS, str(study), str(store), str(german)]
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == str([0] * 7), done.stderr
    assert_same(table(store), expected)
    assert run(["export", str(store), "-o", str(calm / "radii.csv")]) == 0
    assert run(["export", str(store), "--format", "json", "-o", str(calm / "radii.json")]) == 0
    for name in ("radii.csv", "radii.json"):
        assert (german / name).read_text() == (calm / name).read_text()
    for name in ("queries.csv", "report.md", "report.html"):
        assert (german / name).stat().st_size > 100
