"""What hulls of first-layer neurons change: goals and radii of single training images, with triangles and with hulls.

    python benchmarks/bench_hull.py [--seconds N] [--radii N] [--data FOLDER]

Every goal (network, image, ε) is decided once with triangles alone (`hull_neurons=0`) and once with hulls, one after
the other, so that a busy machine is busy for both. `--radii N` measures radii of the same images, N CPU seconds each.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from common import DATA, correct, markdown, network

from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.tuning import Trees, Tuning
from radii.problem import LINF, Classification, Instance, Query

GOALS = (
    ("mnist_relu_3_50", 0, 0.065),
    ("mnist_relu_3_50", 17, 0.07),
    ("mnist-net_256x4", 10, 0.0597),
    ("mnist-net_256x4", 11, 0.033),
    ("mnist_relu_9_100", 3, 0.0216),
    ("mnist_relu_9_100", 13, 0.0349),
    ("mnist_relu_6_200", 10, 0.024),
)
IMAGES = 25  # correctly classified training images among which those of the goals are


def main() -> int:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds per goal")
    parser.add_argument("--radii", type=float, default=None, help="measure radii instead, so many CPU seconds each")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    ways = Tuning(trees=replace(Trees(), hull_neurons=0)), Tuning()
    asked = GOALS if options.radii is None else tuple(dict.fromkeys((name, image, 0.0) for name, image, _ in GOALS))
    lines = []
    for name, image, goal in asked:
        instance = next(one for one in correct(options.data, name, IMAGES) if one.index == image)
        both = [_measured(options, name, instance, goal, way) for way in ways]
        lines.append([name, str(image), str(goal) if goal else "radius", *both])
        print(" | ".join(lines[-1]), file=sys.stderr)
    print(markdown(["network", "image", "goal", "triangles", "hulls"], lines))
    return 0


def _measured(options: argparse.Namespace, name: str, instance: Instance, goal: float, tuning: Tuning) -> str:
    engine, classifier = Native(tuning=tuning), network(options.data, name)
    if goal:
        query = Query(instance, goal, Classification(), LINF)
        answer = engine.decide(classifier, [query], Budget(seconds=options.seconds))[0]
        return f"{answer.verdict.value}, {answer.nodes} nodes, {answer.cpu_seconds:.1f} s"
    budget = Budget(seconds=options.radii)
    radius = engine.measure(classifier, [instance], Classification(), LINF, budget, tolerance=0.002)[0]
    return f"{radius.lower}, {radius.upper}, {radius.cost.nodes} nodes, {radius.cost.cpu_seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
