"""The first hour of a new user, in a clean virtual environment: wheel, demo, a CNN of one's own, its radii, a gate.

Run it as `python tests/first_hour.py FOLDER`. Every step prints its wall-clock and CPU seconds, and any step that fails
ends the script with its output. Only the wheel and what it requires are installed: no development tools, no extras.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRAIN = """
import numpy as np, torch, radii

data = radii.load_dataset("mnist5k", split="train")
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 4, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 7 * 7, 10)
)
best = torch.optim.Adam(net.parameters(), lr=0.01)
x, y = torch.from_numpy(data.x.copy()), torch.from_numpy(data.y.copy())
for epoch in range(4):
    for rows in torch.randperm(len(x)).split(100):
        best.zero_grad()
        torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        best.step()
mine = radii.load_classifier(net, input_shape=(1, 28, 28), name="mine")
test = radii.load_dataset("mnist5k", split="test")
right = float((mine.predict(test.x) == test.y).mean())
assert right > 0.85, right
mine.save("mine.onnx")
np.savez("mine.npz", x=test.x[:60], y=test.y[:60])
print(f"{right:.1%} of the test digits right")
"""
RADII = """
import radii

net = radii.load_classifier("mine.onnx")
data = radii.load_dataset("mine.npz")[:10]
dist = radii.distribution(net, data, seconds=2, store="radii.db")
print(dist.summary())
print(dist.robust_accuracy(0.02))
dist.plot(confidence=0.95).figure.savefig("curve.png")
dist.report("python.html", data=data)
assert dist.lower.min() >= 0
assert "not known here" not in open("python.html", encoding="utf-8").read()
"""
STUDY = """
name: mine
classifiers: [mine.onnx]
data: {source: mine.npz, indices: "0:20"}
budget: {seconds: 2}
"""


def step(name: str, words: list[str | Path], folder: Path, codes: tuple[int, ...] = (0,)) -> str:
    """The standard output of one step, after a line with its times."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "RADII_DATA")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{name:<34} {time.perf_counter() - begun:7.1f} s {cpu:7.1f} CPU s", flush=True)
    if done.returncode not in codes:
        sys.exit(
            f"{shlex.join(str(word) for word in words)}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def install(folder: Path) -> Path:
    """The folder of the programs of a fresh environment that holds the wheel of this tree and nothing else."""
    pip = ["-m", "pip", "--disable-pip-version-check"]
    step("wheel", [sys.executable, *pip, "wheel", "--no-deps", "--quiet", "-w", folder / "dist", ROOT], folder)
    begun = time.perf_counter()
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    print(f"{'virtual environment':<34} {time.perf_counter() - begun:7.1f} s", flush=True)
    programs = folder / "venv" / "bin"
    (wheel,) = (folder / "dist").glob("radii-*.whl")
    quiet = ["install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", wheel]
    step("pip install", [programs / "python", *pip, *quiet], folder)
    return programs


def demo(programs: Path, folder: Path) -> None:
    """The demo in an empty folder, and the first line that it says to try next."""
    empty = folder / "empty"
    empty.mkdir()
    out = step("radii demo", [programs / "radii", "demo"], empty)
    made = {path.name for path in (empty / "radii-demo").iterdir()}
    assert {"report.html", "radii.csv", "demo.db", "robust-accuracy.png", "fooled.png"} <= made, made
    line = out.split("Try next:")[1].strip().splitlines()[0].strip()
    said = step("the first line to try next", [programs / "radii", *shlex.split(line)[1:]], empty)
    assert said.strip(), line


def own(programs: Path, folder: Path) -> None:
    """A network of one's own, from training to a gate."""
    work = folder / "work"
    work.mkdir()
    python, radii = programs / "python", programs / "radii"
    print(step("train a CNN", [python, "-c", TRAIN], work), end="")
    print(step("its radii, plot and report in Python", [python, "-c", RADII], work), end="")
    assert (work / "curve.png").read_bytes().startswith(b"\x89PNG")
    (work / "study.yaml").write_text(STUDY)
    step("radii run --dry-run", [radii, "run", "study.yaml", "--dry-run"], work)
    step("radii run", [radii, "run", "study.yaml"], work)
    found = json.loads(step("radii export", [radii, "export", "study.db", "--format", "json"], work))
    assert len(found) == 20
    assert all(row["upper"] is None or row["lower"] is None or row["lower"] <= row["upper"] for row in found)
    step("radii report", [radii, "report", "study.db", "--data", "mine.npz", "-o", "report.html"], work)
    assert "<!doctype html>" in (work / "report.html").read_text(encoding="utf-8")
    step("radii gate that passes", [radii, "gate", "study.db", "--robust-accuracy", "0.1@0.001"], work)
    step("radii gate that fails", [radii, "gate", "study.db", "--robust-accuracy", "0.99@0.3"], work, codes=(1,))
    step("python -m radii", [python, "-m", "radii", "check", "study.db"], work)


def main(folder: Path) -> None:
    """Every step, in a folder that holds nothing yet."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = install(folder)
    for extra in ("sklearn", "mlxtend", "pytest", "ray"):
        step(f"without {extra}", [programs / "python", "-c", f"import {extra}"], folder, codes=(1,))
    demo(programs, folder)
    own(programs, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
