"""One class after the other as the target: in which direction is an image weakest?"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import radii
from radii.report import figures
from radii.stats.classes import nearest_targets

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
net = radii.load_classifier("zoo:mnist5k-standard")
data = radii.load_dataset("mnist5k", split="test")[:40]
data = data[np.flatnonzero(net.predict(data.x) == data.y)[:4]]

rows = []
for target in range(10):
    others = data[np.flatnonzero(data.y != target)]
    dist = radii.distribution(net, others, target=target, seconds=0.4)
    rows += zip(others.indices, dist.label, [target] * len(dist), dist.lower, dist.upper, strict=True)

ids, label, targets, lower, upper = zip(*rows, strict=True)
pairs = radii.Distribution.from_arrays(lower, upper, label, target=targets, ids=ids, name=net.name)
nearest = nearest_targets(pairs)
print(f"of {nearest.inputs.sum()} images, the nearest class is known for sure for {nearest.sure.sum()}")
figures.save(figures.target_heat_map(nearest).figure, folder / "05_targets.png")
