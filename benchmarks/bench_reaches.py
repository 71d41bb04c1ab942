"""Reaches of published networks: how far apart the witnessed and the proven end are after some CPU seconds per image.

    python benchmarks/bench_reaches.py              # mnist-net_256x2: 100 test images, ε = .02, 10 CPU s per image
    python benchmarks/bench_reaches.py --also       # and relu_9_100 and a tanh network, on a few images
    python benchmarks/bench_reaches.py --quick      # three images of each

Rows go to a file of JSON lines; a run goes on where it was stopped. The gap is (proven − witnessed) / proven. Ends with
1 when a mean of mnist-net_256x2 is above the bar of 10 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, ROOT

from radii.data import load_dataset
from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.prepare import working
from radii.models import load_classifier
from radii.problem import Norm
from radii.problem.property import measured

PROPERTIES = ("standard", "probability")
BAR, BARRED = 0.10, "mnist-net_256x2"
TOLERANCE, NORM = 0.05, Norm.of("linf")


@dataclass(frozen=True)
class Case:
    """A network, the balls that are asked of it, and on how many of the first test images."""

    name: str
    file: Path
    epsilon: float
    images: int


def cases(options: argparse.Namespace) -> list[Case]:
    """The networks that were asked for."""
    published = options.data / "jair" / "networks"
    found = [Case(BARRED, published / "mnist-net_256x2.onnx", 0.02, options.images)]
    if options.also:
        found += [
            Case("mnist_relu_9_100", published / "mnist_relu_9_100.onnx", 0.01, options.few),
            Case("mnist-tanh-50", ROOT / "build" / "properties" / "mnist-tanh-50.onnx", 0.02, options.few),
        ]
    return [case for case in found if not options.network or case.name in options.network]


def main() -> int:
    options = arguments()
    known = {(r["network"], r["property"], r["index"]): r for r in kept(options.output)}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("a", encoding="utf-8") as file:
        for case in cases(options):
            measure(case, known, options, file)
    return summarise(list(known.values()))


def kept(file: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def measure(case: Case, known: dict[Any, dict[str, Any]], options: argparse.Namespace, file: Any) -> None:
    """Writes the rows that are not known yet."""
    net = load_classifier(case.file)
    data = load_dataset("mnist", split="test", root=options.data / "mnist")[: case.images]
    with working(net):
        for text in PROPERTIES:
            for instance in data:
                key = case.name, text, instance.index
                if key in known:
                    continue
                asked = measured(text), NORM, case.epsilon, Budget(seconds=options.seconds)
                found = Native().reach(net, [instance], *asked, tolerance=TOLERANCE)[0]
                row = {"network": case.name, "property": text, "index": instance.index, "epsilon": case.epsilon}
                row |= {"witnessed": found.lower, "proven": found.upper, "cpu": found.cost.cpu_seconds}
                known[key] = row
                print(json.dumps(row), file=file, flush=True)


def summarise(rows: list[dict[str, Any]]) -> int:
    """Prints the gaps of each network and property; 1 when the bar is missed."""
    missed = 0
    for name, text in dict.fromkeys((r["network"], r["property"]) for r in rows):
        mine = [r for r in rows if (r["network"], r["property"]) == (name, text)]
        gaps = np.array([1.0 if r["proven"] is None else (r["proven"] - r["witnessed"]) / r["proven"] for r in mine])
        cpu = np.array([r["cpu"] for r in mine])
        print(
            f"{name}, ε = {mine[0]['epsilon']}, {text}: {len(mine)} images, gap {gaps.mean():.3f} on average, "
            f"{np.median(gaps):.3f} median, {gaps.max():.3f} largest; {(gaps <= TOLERANCE).sum()} within 5 %; "
            f"{cpu.mean():.2f} CPU s per image, {cpu.max():.1f} at most"
        )
        missed += name == BARRED and bool(gaps.mean() > BAR)
    return 1 if missed else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--few", type=int, default=5, help="images of the networks of --also")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds per image and property")
    parser.add_argument("--also", action="store_true", help="relu_9_100 and a tanh network (train_properties.py) too")
    parser.add_argument("--network", action="append", help="only this one; may be given more than once")
    parser.add_argument("--quick", action="store_true", help="three images of each")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "properties" / "reaches.jsonl")
    options = parser.parse_args()
    if options.quick:
        options.images = options.few = 3
        options.output = options.output.with_name("reaches-quick.jsonl")
    return options


if __name__ == "__main__":
    sys.exit(main())
