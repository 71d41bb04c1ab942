"""How many inputs does a guarantee need? Limits of R(g) over growing samples, as in the paper on global guarantees."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures
from radii.stats.sample_sizes import PLANS, sample_size

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
for method in PLANS:
    print(f"{method}: {sample_size(0.05, method=method).n} inputs for ± 0.05 at 95 %")

# g of an input is decided by a proof or by a witness, never by an attack that found nothing.
data = radii.load_dataset("mnist5k", split="test")[:24]
dist = radii.distribution("zoo:mnist5k-adversarial", data, seconds=0.3, store=folder / "convergence.db")
for n in (6, 12, 24):
    part = dist.select(range(n))
    low, high = part.guarantee(confidence=0.95).at_one(0.02)
    print(f"{n} inputs: R(g) at 0.02 between {low:.3f} and {high:.3f}")
figures.save(figures.guarantee_convergence(dist, 0.02).figure, folder / "12_convergence.png")
