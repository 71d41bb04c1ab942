"""Whether the engine still gives the same radii: a table of them with node budgets, and two such tables compared.

    python benchmarks/bench_same.py FILE.csv [--images N] [--nodes N] [--set trees.hull_neurons=0] [--data FOLDER]
    python benchmarks/bench_same.py --compare BEFORE.csv AFTER.csv

Five published networks and a small Tanh network, ten images each, a fixed seed, a budget in nodes: a run repeats
exactly, so a change of the code that should not change results can be held to it. Where the package lies somewhere
else (a work tree of an older commit), put its `src` into PYTHONPATH. `--set` gives a number of the engine's `Tuning`
another value, so that a deliberate change can be left out of the comparison. `--compare` prints every row
whose status differs or whose ends differ by more than 1e-6, and ends with 1 when there is any.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import DATA, correct, markdown, network

from radii.decide import Budget
from radii.models import load_classifier
from radii.problem import LINF, Classification, Instance
from radii.verifiers.catalogue import make

NETWORKS = ("mnist-net_256x2", "mnist_relu_3_50", "mnist-net_256x4", "mnist_relu_9_100", "convSmallRELU__DiffAI")
COLUMNS = ("network", "image", "status", "lower", "upper", "nodes", "cpu_seconds")
SAME = 1e-6  # ends nearer than this are the same


def main() -> int:
    """Write a table, or compare two; 1 when they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--images", type=int, default=10, help="per network")
    parser.add_argument("--nodes", type=int, default=400, help="budget per image")
    parser.add_argument("--set", action="append", default=[], metavar="GROUP.NAME=NUMBER", help="of the tuning")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if options.compare:
        return compare(*(read(file) for file in options.compare))
    if options.file is None:
        parser.error("expected a file to write the table to, or --compare with two tables")
    rows = [row for name in (*NETWORKS, "tanh") for row in measure(name, options)]
    with options.file.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return 0


def measure(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one network."""
    start = time.process_time()
    classifier, instances = curved(options) if name == "tanh" else published(name, options)
    budget = Budget(seconds=None, nodes=options.nodes)
    engine: Any = tuned(make("native"), options.set)
    radii = engine.measure(classifier, instances, Classification(), LINF, budget, tolerance=0.002)
    print(f"{name}: {time.process_time() - start:.1f} CPU s", file=sys.stderr)
    return [
        dict(
            zip(COLUMNS, (name, i.index, r.status.value, r.lower, r.upper, r.cost.nodes, round(r.cost.cpu_seconds, 3)))
        )
        for i, r in zip(instances, radii)
    ]


def tuned(engine: Any, changes: list[str]) -> Any:
    """The engine with some numbers of its tuning changed; engines from before there was one take no changes."""
    for change in changes:
        path, value = change.split("=")
        group, name = path.split(".")
        part = getattr(engine.tuning, group)
        part = replace(part, **{name: type(getattr(part, name))(value)})
        engine = replace(engine, tuning=replace(engine.tuning, **{group: part}))
    return engine


def published(name: str, options: argparse.Namespace) -> tuple[Any, list[Instance]]:
    """A published network and the first training images that it classifies correctly."""
    return network(options.data, name), correct(options.data, name, options.images)


def curved(options: argparse.Namespace) -> tuple[Any, list[Instance]]:
    """A Tanh network with random weights on random inputs, labelled as it sees them."""
    torch.manual_seed(0)
    layers = (
        torch.nn.Linear(40, 24),
        torch.nn.Tanh(),
        torch.nn.Linear(24, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 4),
    )
    for layer in layers[::2]:
        layer.weight.data *= 3.0  # else the curves are nearly lines
    classifier = load_classifier(torch.nn.Sequential(*layers).eval(), input_shape=(40,), name="tanh")
    x = np.random.default_rng(0).uniform(0, 1, (options.images, 40)).astype(np.float32)
    return classifier, [Instance(v, int(y), k) for k, (v, y) in enumerate(zip(x, classifier.predict(x)))]


def read(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The rows of a table by network and image."""
    with file.open(newline="") as lines:
        return {(row["network"], row["image"]): row for row in csv.DictReader(lines)}


def compare(before: dict[tuple[str, str], dict[str, str]], after: dict[tuple[str, str], dict[str, str]]) -> int:
    """Prints the rows that differ; 1 when any does, or when a row is in one table only."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is None or new is None or differs(old, new):
            both = [" ".join((row or {}).get(c) or "-" for c in ("status", "lower", "upper")) for row in (old, new)]
            lines.append([*key, *both])
    shared = before.keys() & after.keys()
    seconds = [sum(float(table[key]["cpu_seconds"]) for key in shared) for table in (before, after)]
    nodes = sum(before[key]["nodes"] != after[key]["nodes"] for key in shared)
    if lines:
        print(markdown(["network", "image", "before", "after"], lines))
    print(f"{len(shared)} radii in both, {len(lines)} differ, {nodes} took another number of nodes; CPU seconds "
          f"{seconds[0]:.1f} before, {seconds[1]:.1f} after")  # fmt: skip
    return int(bool(lines) or not shared)


def differs(old: dict[str, str], new: dict[str, str]) -> bool:
    """Whether two rows have another status, an end that only one has, or ends more than `SAME` apart."""
    if old["status"] != new["status"]:
        return True
    pairs = [(old[end], new[end]) for end in ("lower", "upper")]
    return any((a == "") != (b == "") or (a and abs(float(a) - float(b)) > SAME) for a, b in pairs)


if __name__ == "__main__":
    sys.exit(main())
