"""Evidence: 1,000 files made and checked, their sizes and times; 200 damaged ones refused.

    python benchmarks/bench_evidence.py [--toys 700] [--zoo 80] [--jair 30] [--damaged 200] [--data ../shared/data]

`--toys` random tiny networks of every kind in L∞, L2 and L1; `--zoo` and `--jair` images per network, the latter of the
JAIR networks that `--networks` names. Search seconds are CPU seconds of the whole search (attack, failed goals and
all), making seconds what evidence adds to it, check seconds what `radii.evidence.check` takes for the same radius.
`--first` is the first seed of the toys, for runs in parts; with `--nodes` the radii repeat exactly.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT, correct, keep, machine, network

from radii import load_classifier, load_dataset
from radii.decide import Budget
from radii.engine import native
from radii.errors import InputError
from radii.evidence import check
from radii.evidence.record import Recorder
from radii.models import Classifier
from radii.problem import L1, L2, LINF, Classification, Instance, Norm
from radii.testing import KINDS, random_instance, random_network

ZOO = ("mnist5k-standard", "mnist5k-adversarial", "mnist5k-conv")
JAIR = ("mnist-net_256x2", "mnist_relu_3_50")


@dataclass
class Tally:
    """What happened to the inputs of one network."""

    inputs: int = 0
    proven: int = 0
    files: int = 0
    confirmed: int = 0
    bytes: list[int] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    making: list[float] = field(default_factory=list)
    check: list[float] = field(default_factory=list)
    without: dict[str, int] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """The figures of one row of the table."""
        times = {name: np.array(getattr(self, name)) for name in ("search", "making", "check")}
        return {
            "inputs": self.inputs,
            "proven": self.proven,
            "files": self.files,
            "confirmed": self.confirmed,
            "without": self.without,
            "median_bytes": float(np.median(self.bytes)) if self.bytes else None,
            "largest_bytes": max(self.bytes, default=None),
            **{f"{name}_seconds": round(float(values.sum()), 3) for name, values in times.items()},
            "search_over_check": round(float(times["search"].sum() / max(times["check"].sum(), 1e-9)), 1),
        }


class Timed(Recorder):
    """A recorder that says how long making evidence took."""

    last = 0.0

    def build(self, radius: float, seconds: float = float("inf")) -> bytes:
        start = time.process_time()
        try:
            return super().build(radius, seconds)
        finally:
            Timed.last = time.process_time() - start


def take(net: Classifier, instance: Instance, norm: Norm, tally: Tally, budget: Budget) -> bytes | None:
    """The evidence of one input, checked; None where there is none."""
    Timed.last = 0.0
    decider = native.Native(effort="fast", evidence=True)
    radius = decider.measure(net, [instance], Classification(), norm, budget, tolerance=0.002, limit=3.0)[0]
    tally.inputs += 1
    if radius.lower is None or radius.misclassified:
        return None
    tally.proven += 1
    if radius.evidence is None:
        tally.without[radius.note] = tally.without.get(radius.note, 0) + 1
        return None
    tally.files += 1
    tally.bytes.append(len(radius.evidence))
    tally.making.append(Timed.last)
    tally.search.append(radius.cost.cpu_seconds)
    begun = time.process_time()
    claim = check(radius.evidence, net)
    tally.check.append(time.process_time() - begun)
    tally.confirmed += claim.radius == radius.lower
    return radius.evidence


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with a bit flipped, some bytes put in or taken out, or its end cut off."""
    broken = bytearray(data)
    at, kind = int(rng.integers(0, len(data))), int(rng.integers(0, 4))
    if kind == 0:
        broken[at] ^= 1 << int(rng.integers(0, 8))
    elif kind == 1:
        broken[at:at] = rng.bytes(int(rng.integers(1, 32)))
    elif kind == 2:
        del broken[at : at + int(rng.integers(1, 32))]
    else:
        del broken[at:]
    return bytes(broken)


def refused(files: list[tuple[Classifier, bytes]], count: int) -> int:
    """How many of so many randomly damaged files are refused."""
    rng, total = np.random.default_rng(0), 0
    for _ in range(count):
        net, data = files[int(rng.integers(0, len(files)))]
        try:
            check(damage(data, rng), net)
        except InputError:
            total += 1
    return total


def toy(seed: int) -> tuple[Classifier, Instance, Norm]:
    """A random tiny network with an input and a norm."""
    net = random_network(seed, KINDS[seed % len(KINDS)], (0.0, 1.0) if seed // 5 % 2 else None)
    return net, random_instance(net, seed), (LINF, L2, L1)[seed // len(KINDS) % 3]


def jobs(asked: argparse.Namespace) -> Iterator[tuple[str, Iterator[tuple[Classifier, Instance, Norm]], int]]:
    """What is measured: a name, inputs, and how many files are wanted."""
    yield "random toys", (toy(seed) for seed in range(asked.first, asked.first + 2 * asked.toys)), asked.toys
    digits = load_dataset("mnist5k", split="test")[: 2 * asked.zoo].instances if asked.zoo else []
    for name in ZOO if asked.zoo else ():
        net = load_classifier(f"zoo:{name}")
        yield name, ((net, digit, LINF) for digit in digits), asked.zoo
    if asked.jair and asked.data.is_dir():
        for name in asked.networks:
            images = correct(asked.data, name, asked.jair)
            yield name, ((network(asked.data, name), image, LINF) for image in images), asked.jair


def main() -> None:
    """Measures, prints a line per network, and keeps the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("toys", 700), ("zoo", 80), ("jair", 30), ("damaged", 200), ("first", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds per input")
    parser.add_argument("--nodes", type=int, help="nodes per input")
    parser.add_argument("--networks", nargs="+", default=JAIR, help="of the JAIR benchmark")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench_evidence.json")
    asked = parser.parse_args()
    native.Recorder = Timed
    files: list[tuple[Classifier, bytes]] = []
    rows: dict[str, Any] = {}
    for name, inputs, wanted in jobs(asked):
        tally = Tally()
        for net, instance, norm in inputs:
            if tally.files >= wanted:
                break
            data = take(net, instance, norm, tally, Budget(seconds=asked.seconds, nodes=asked.nodes))
            files += [] if data is None else [(net, data)]
        rows[name] = tally.row()
        print(name, rows[name], flush=True)
    total = {"files": len(files), "damaged": asked.damaged, "refused": refused(files, asked.damaged)}
    print(total)
    keep(asked.output, "evidence", {"machine": machine(), "networks": rows, **total})


if __name__ == "__main__":
    main()
