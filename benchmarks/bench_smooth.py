"""Networks with Sigmoid and Tanh: nodes per CPU second, closed share and mean gap within some CPU seconds an image.

    python benchmarks/bench_smooth.py --split training --images 4 --seconds 10

Tuning looks at training images alone; without --split the figures are of test images 100 to 119.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np
from bench_growth import trained
from common import DATA, keep, machine, markdown, mnist

from radii.decide import Budget
from radii.engine.native import Native
from radii.models import Classifier
from radii.problem import Classification, Instance, Norm, Status

NETWORKS = {
    f"{kind.lower()} {'x'.join(map(str, hidden))}": (hidden, kind)
    for kind in ("Tanh", "Sigmoid")
    for hidden in ((50, 50, 50), (100, 100))
}
TOLERANCE = 0.002
COLUMNS = ["network", "norm", "images", "closed", "mean gap", "mean lower", "nodes", "CPU s", "nodes per CPU s"]


def instances(data: Path, classifier: Classifier, split: str, first: int, count: int) -> list[Instance]:
    """So many images of a split from position `first` on, those left out that the network gets wrong."""
    images = mnist(data, "train" if split == "training" else "test")
    rows = np.flatnonzero((images.indices >= first) & (images.indices < first + count))
    part = images.x[rows].reshape(-1, 784)
    right = np.flatnonzero(classifier.predict(part) == images.y[rows])
    return [Instance(part[i], int(images.y[rows[i]]), int(images.indices[rows[i]])) for i in right]


def measured(classifier: Classifier, images: list[Instance], norm: Norm, seconds: float) -> dict[str, float]:
    """Closed share, mean gap, nodes and CPU seconds of the radii of some images."""
    radii = Native().measure(classifier, images, Classification(), norm, Budget(seconds=seconds), tolerance=TOLERANCE)
    ends = [(0.0 if r.lower is None else r.lower, 1.0 if r.upper is None else r.upper) for r in radii]
    spent, nodes = (sum(getattr(r.cost, name) for r in radii) for name in ("cpu_seconds", "nodes"))
    for image, r in zip(images, radii):
        print(image.index, r.lower, r.upper, r.cost.nodes, round(r.cost.cpu_seconds, 1), flush=True)
    return {
        "images": len(images),
        "closed": sum(r.status is Status.CLOSED for r in radii),
        "gap": statistics.fmean((high - low) / high for low, high in ends),
        "lower": statistics.fmean(low for low, _ in ends),
        "nodes": nodes,
        "seconds": spent,
    }


def main() -> None:
    """Measures the networks asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", nargs="*", choices=[*NETWORKS], default=[*NETWORKS])
    parser.add_argument("--split", choices=["training", "test"], default="test")
    parser.add_argument("--first", type=int, default=None, help="position of the first image")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--norm", choices=["linf", "l2", "l1"], default="linf")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    first = args.first if args.first is not None else 0 if args.split == "training" else 100
    rows = []
    for name in args.network:
        classifier = trained(mnist(args.data, "train"), *NETWORKS[name])
        images = instances(args.data, classifier, args.split, first, args.images)
        found = measured(classifier, images, Norm(args.norm), args.seconds)
        if args.json is not None:
            key = f"{name}, {args.norm}, {args.split} {first} to {first + args.images - 1}, {args.seconds:g} s"
            keep(args.json, key, {**found, "machine": machine()})
        share = f"{found['closed']} of {found['images']}"
        speed = f"{found['nodes'] / found['seconds']:.0f}"
        middle = [f"{found['gap']:.3f}", f"{found['lower']:.4f}", f"{found['nodes']}", f"{found['seconds']:.1f}"]
        rows.append([name, args.norm, str(found["images"]), share, *middle, speed])
    print(markdown(COLUMNS, rows))


if __name__ == "__main__":
    main()
