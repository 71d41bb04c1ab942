"""Train three small networks, plain, against attacks and with bounds: what does each way do to the radii?"""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
data = radii.load_dataset("mnist5k", split="test")[:12]

dists = []
for name in ("mnist5k-standard", "mnist5k-pgd", "mnist5k-ibp"):
    run = radii.train(name, epochs=8, data={"source": "mnist5k", "first": 2000})
    test = run.card["accuracies"]["test"]
    dist = radii.distribution(run.classifier, data, seconds=0.5)
    mean = dist.mean()
    print(f"{name}: test accuracy {test['clean']:.3f}, mean radius of {len(dist)} digits at least {mean.lower:.3f}")
    dists.append(dist)

plain, _, certified = dists
print(certified.compare(plain).statement())
axes = plain.plot()
for dist in dists[1:]:
    dist.plot(axes)
figures.save(axes.figure, folder / "09_training.png")
