"""How fast and how large a store of 100,000 radii is: python benchmarks/bench_store.py [--radii N] [--url URL]"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from radii.problem import Proof, Radius
from radii.problem.radius import Cost
from radii.store import (
    ClassifierRecord,
    Environment,
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


def records(number: int) -> Iterator[RadiusRecord]:
    """Records with random ends and one query each, without witnesses: their size is the inputs' size."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--radii", type=int, default=100_000)
    parser.add_argument("--url", help="a fresh store to fill; default: an SQLite file in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = options.url or str(Path(folder, "study.db"))
        everything = list(records(options.radii))
        print(f"radii                     {len(everything)}")
        fill(where, everything)
        use(where, everything, Path(folder, "radii.csv"))


if __name__ == "__main__":
    main()
