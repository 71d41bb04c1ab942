"""Radii from any tool: analysis needs arrays only, and loads neither torch nor a solver."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import radii
from radii.report import figures

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
true = rng.lognormal(-3.5, 0.4, size=200)
lower, upper = true * rng.uniform(0.8, 1.0, 200), true * rng.uniform(1.0, 1.2, 200)
upper[:5] = np.nan  # never broken: the end is absent

dist = radii.Distribution.from_arrays(lower=lower, upper=upper, label=np.arange(200) % 5, name="simulated")
print(dist.robust_accuracy(0.03))
print(dist.quantile(0.5))
low, high = dist.guarantee(confidence=0.95).at([0.02, 0.03])
print(low.round(3), high.round(3))
dist.report(folder / "simulated.html", eps=0.03)
figures.save(figures.ecdf(dist).figure, folder / "03_own_arrays.png")
