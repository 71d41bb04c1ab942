"""Clauses of several rows: weights λ that each node climbs, against maxima written into the network as ReLUs.

    python benchmarks/bench_clauses.py                 # two networks, eight test images each, 5 CPU s per image and way

The radius of "one of two other classes stays below the label" is measured, the two being the runners-up at the input:
it is broken where both reach the label at once, a clause of two rows (three with `--rows 3`). Prints lower and upper
ends, nodes and CPU seconds of both ways. Ends with 1 when the ways contradict each other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from common import DATA

from radii.data import load_dataset
from radii.decide import Budget
from radii.engine import maxima, properties
from radii.engine.native import Native
from radii.engine.prepare import working
from radii.models import load_classifier
from radii.problem import Norm, Radius, Rows

NETWORKS = ("mnist-net_256x2", "mnist_relu_3_50")
LIMIT = 0.2  # the largest ε of interest


@contextmanager
def as_maxima(wanted: bool) -> Iterator[None]:
    """Searches take clauses as maxima while this holds."""
    kept = properties.searchable
    properties.searchable = maxima.maxima if wanted else kept
    try:
        yield
    finally:
        properties.searchable = kept


def main() -> int:
    options = arguments()
    data, wrong = load_dataset("mnist", split="test", root=options.data / "mnist"), 0
    for name in options.network or NETWORKS:
        net = load_classifier(options.data / "jair" / "networks" / f"{name}.onnx")
        with working(net):
            for instance in data[: options.images]:
                order = np.argsort(-net.reference(instance.x[None])[0])
                if order[0] != instance.label:
                    continue
                unit = np.eye(net.classes)
                rows = tuple(tuple(unit[instance.label] - unit[t]) for t in order[1 : 1 + options.rows])
                asked = Rows(rows, clauses=(tuple(range(options.rows)),))
                found: list[Radius] = []
                for wanted in (False, True):
                    with as_maxima(wanted):
                        budget = Budget(seconds=options.seconds)
                        found += Native().measure(
                            net, [instance], asked, Norm.of("linf"), budget, tolerance=0.002, limit=LIMIT
                        )
                print(f"{name} {instance.index}: " + "; ".join(map(told, ("λ", "maxima"), found)), flush=True)
                low = max(one.lower or 0.0 for one in found)
                wrong += any(one.upper is not None and one.upper < low for one in found)
    return 1 if wrong else 0


def told(way: str, found: Radius) -> str:
    """One radius in a few words."""
    ends = ", ".join("none" if end is None else f"{end:.4f}" for end in (found.lower, found.upper))
    return f"{way} [{ends}] {found.status}, {found.cost.nodes} nodes, {found.cost.cpu_seconds:.1f} s"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--network", action="append", help="one of the JAIR networks; may be given more than once")
    parser.add_argument("--images", type=int, default=8)
    parser.add_argument("--rows", type=int, default=2, help="rows of the clause")
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU seconds per image and way")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
