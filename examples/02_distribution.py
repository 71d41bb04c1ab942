"""A distribution of radii: robust accuracy as an interval, a guarantee, and a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
net = radii.load_classifier("zoo:mnist5k-standard")
data = radii.load_dataset("mnist5k", split="test")[:20]

dist = radii.distribution(net, data, seconds=1, store=folder / "radii.db")
for epsilon in (0.01, 0.02, 0.03):
    share = dist.robust_accuracy(epsilon)
    print(f"robust at {epsilon}: between {share.proven:.0%} and {share.not_broken:.0%} of these images")
print(dist.guarantee(confidence=0.95).sentence(0.01))
axes = dist.plot(confidence=0.95, reference=[0.01, 8 / 255])
figures.save(axes.figure, folder / "02_distribution.png")
