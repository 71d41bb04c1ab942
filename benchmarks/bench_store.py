"""How fast and how large a store of 100,000 radii is, and what its readers take of time and memory.

python benchmarks/bench_store.py [--radii N] [--url URL]
python benchmarks/bench_store.py --radii 40000 --evidence 12000 --readers     a store of 500 MB
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import numpy as np
import psutil

from radii.problem import Proof, Radius
from radii.problem.radius import Cost
from radii.store import (
    ClassifierRecord,
    Environment,
    Evidence,
    InstanceRecord,
    QueryRecord,
    RadiusRecord,
    Selection,
    Setting,
    Unit,
    export,
    open_store,
    radii_frame,
)

NETWORKS = 10
PORT = 8979


def records(number: int, size: int = 0) -> Iterator[RadiusRecord]:
    """Records with random ends and one query each, without witnesses: their size is the inputs' size.

    `size` is that of the evidence, in bytes that do not pack.
    """
    random = np.random.default_rng(0)
    nets = [
        ClassifierRecord(fingerprint=f"{n:064x}", name=f"net-{n}", path=f"nets/net-{n}.onnx") for n in range(NETWORKS)
    ]
    setting = Setting(search_parameters={"tolerance": 0.002}, identity="native 0.1.0", seed=0)
    environment = Environment.current("radii run study.yaml", seed=0)
    ends = np.sort(random.uniform(0, 0.4, (number, 2)), axis=1).tolist()
    for i, (lower, upper) in enumerate(ends):
        index = i // NETWORKS
        instance = InstanceRecord(
            dataset="mnist", split="test", index=index, label=index % 10, fingerprint=f"{index:032x}"
        )
        cost = Cost(queries=1, nodes=120, cpu_seconds=0.4, wall_seconds=0.41, peak_memory=300 << 20)
        yield RadiusRecord(
            unit=Unit(classifier=nets[i % NETWORKS], instance=instance, setting=setting, budget={"seconds": 60}),
            radius=Radius(lower, upper, tolerance=0.002, proof=Proof("branch"), prediction=index % 10, cost=cost),
            queries=(QueryRecord(epsilon=upper, verdict="robust", decider="native", nodes=120, cpu_seconds=0.4),),
            environment=environment,
            evidence=Evidence(kind="tree", data=random.bytes(size)) if size else None,
        )


class Clock:
    """Wall and CPU seconds since it was made; on a busy machine the second is the fairer figure."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.wall:7.2f} s wall {time.process_time() - self.cpu:7.2f} s CPU"


def fill(where: str, everything: list[RadiusRecord]) -> None:
    with open_store(where) as store:
        clock = Clock()
        for one in everything[:500]:
            store.put(one)
        print(f"store 500, each synced    {clock}")
        clock = Clock()
        for part in range(500, len(everything), 5000):
            store.put_many(everything[part : part + 5000])
        print(f"store the rest in bulk    {clock}")


def use(where: str, everything: list[RadiusRecord], target: Path) -> None:
    import pandas  # noqa: F401  its loading is not the store's time

    whole = clock = Clock()
    with open_store(where, create=False) as store:
        print(f"open                      {clock}")
        clock = Clock()
        chosen = radii_frame(store, Selection(classifier=("net-3",), label=(1, 2, 3)))
        print(f"filter ({len(chosen)} rows)        {clock}")
        clock = Clock()
        export(radii_frame(store), "csv", target)
        print(f"export all as CSV         {clock}")
        print(f"open, filter, export      {whole}")
        clock = Clock()
        left = store.pending([one.unit for one in everything])
        print(f"what is left to do ({len(left)})    {clock}")
        print(f"size                      {store.info().size_bytes / 1e6:7.1f} MB")


def readers(where: str, folder: Path) -> None:
    """CPU seconds and peak memory of every command that reads a store whole, each in a process of its own."""
    commands = {
        "status": ["status", where],
        "stats": ["stats", where],
        "export": ["export", where, "-o", str(folder / "all.csv")],
        "report": ["report", where, "-o", str(folder / "report.html")],
        "check": ["check", where],
    }
    for name, words in commands.items():
        process = psutil.Popen([sys.executable, "-m", "radii", *words], stdout=DEVNULL, stderr=DEVNULL)
        _, code, used = os.wait4(process.pid, 0)
        seconds = used.ru_utime + used.ru_stime
        print(f"{name:8} exit {os.waitstatus_to_exitcode(code)} {seconds:7.1f} s CPU {used.ru_maxrss / 1024:7.0f} MB")
    serve = [sys.executable, "-m", "radii", "serve", where, "--port", str(PORT)]
    with psutil.Popen(serve, stdout=DEVNULL, stderr=DEVNULL) as process:
        page = _page()
        used, memory = process.cpu_times(), process.memory_full_info()
        seconds = used.user + used.system
        print(f"serve    {len(page) / 1e6:.1f} MB page {seconds:7.1f} s CPU {memory.rss / 2**20:7.0f} MB")
        process.terminate()


def _page() -> bytes:
    """The page of a server that is starting."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=600) as answer:
                return bytes(answer.read())
        except urllib.error.URLError:
            time.sleep(0.5)
    raise SystemExit("radii serve: expected a page within five minutes, got none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--radii", type=int, default=100_000)
    parser.add_argument("--url", help="a fresh store to fill; default: an SQLite file in a temporary folder")
    parser.add_argument("--evidence", type=int, default=0, help="bytes of evidence per radius")
    parser.add_argument("--readers", action="store_true", help="also what status, report, check, serve … take")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = options.url or str(Path(folder, "study.db"))
        # In a process of its own: what readers take must not begin with the memory of what was written.
        writer = multiprocessing.get_context("spawn").Process(target=write, args=(where, options, Path(folder)))
        writer.start()
        writer.join()
        if options.readers:
            readers(where, Path(folder))


def write(where: str, options: argparse.Namespace, folder: Path) -> None:
    """Fill a store and use it."""
    everything = list(records(options.radii, options.evidence))
    print(f"radii                     {len(everything)}")
    fill(where, everything)
    use(where, everything, folder / "radii.csv")


if __name__ == "__main__":
    main()
