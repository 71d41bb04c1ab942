"""What a second worker gains on a real study: python benchmarks/bench_study.py [--inputs 200] [--rounds 2]

Every round runs the same study by `radii run` with one worker and with two, each in a process and a store of its own.
The budget is in nodes, so both do exactly the same work. The machine's other load is reported: with another program on
the second core no runner can gain.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from radii.store import open_store, radii_frame


@dataclass(frozen=True)
class Timing:
    """One run: wall seconds of the whole command, CPU seconds of its units, and cores that others kept busy."""

    workers: int
    wall: float
    cpu: float
    others: float

    def __str__(self) -> str:
        share = self.cpu / (self.wall * self.workers)
        return (
            f"{self.workers} worker{'s' * (self.workers > 1)}: {self.wall:7.1f} s wall, {self.cpu:7.1f} s CPU in units "
            f"({share:.0%} of the workers' time); others used {self.others:.2f} cores"
        )


def study(folder: Path, inputs: int, nodes: int, network: str) -> Path:
    """A study of one network on the first inputs of the embedded MNIST digits."""
    path = folder / "study.yaml"
    body = {
        "classifiers": network,
        "data": {"source": "mnist5k", "split": "test", "indices": f"0:{inputs}", "only": "correct"},
        "budget": {"nodes": nodes},
    }
    path.write_text(yaml.safe_dump(body))
    return path


def timed(path: Path, workers: int, store: Path) -> Timing:
    """One run of the study into a fresh store."""
    line = [sys.executable, "-m", "radii.cli.main", "run", str(path), "--store", str(store), "--workers", str(workers)]
    before, start = psutil.cpu_times(), time.perf_counter()
    process = psutil.Popen(line, stderr=subprocess.DEVNULL)
    ours = 0.0
    while process.poll() is None:
        ours = max(ours, _used(process))
        time.sleep(0.1)
    wall, after = time.perf_counter() - start, psutil.cpu_times()
    if process.returncode:
        raise SystemExit(f"the study failed with exit code {process.returncode}")
    busy = sum(getattr(after, name) - getattr(before, name) for name in ("user", "nice", "system"))
    with open_store(store, create=False) as opened:
        cpu = float(radii_frame(opened)["cpu_seconds"].sum())
    return Timing(workers, wall, cpu, max(0.0, busy - ours) / wall)


def _used(process: psutil.Popen) -> float:
    """CPU seconds of the command and everything it has started."""
    total = 0.0
    try:
        for one in (process, *process.children(recursive=True)):
            times = one.cpu_times()
            total += times.user + times.system
    except psutil.Error:
        return 0.0  # a process ended while we looked; the next look counts
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--network", default="zoo:mnist5k-adversarial")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    found: dict[int, list[Timing]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        path = study(Path(folder), options.inputs, options.nodes, options.network)
        for number in range(options.rounds):
            for workers in (1, 2) if number % 2 == 0 else (2, 1):
                found[workers].append(timed(path, workers, Path(folder, f"{number}-{workers}.db")))
                print(found[workers][-1], flush=True)
    one, two = (min(timing.wall for timing in found[workers]) for workers in (1, 2))
    print(f"{options.inputs} inputs: {one:.1f} s with one worker, {two:.1f} s with two: {one / two:.2f} times faster")


if __name__ == "__main__":
    main()
