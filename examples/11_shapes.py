"""What shape have radii, and do networks find the same images hard? (Bosman et al., robustness distributions)"""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures
from radii.stats.correlation import correlations
from radii.stats.goodness_of_fit import goodness

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
data = radii.load_dataset("mnist5k", split="test")[:16]
found = {
    name: radii.distribution(f"zoo:mnist5k-{name}", data, seconds=0.3, store=folder / "shapes.db")
    for name in ("standard", "adversarial")
}

# A test that knows of the fit and of the gaps; "not rejected" does not show that a family is right.
for name, dist in found.items():
    for fit in goodness(dist.ends("correct"), replicates=49).fits:
        print(f"{name}: {fit.family}, AIC {fit.aic:.1f}, p {fit.p_value:.2f}")
(pair,) = correlations(found)
print(f"Spearman {pair.value:.2f}, {pair.low:.2f} to {pair.high:.2f} for unseen inputs ({pair.n} images)")
figures.save(figures.ecdf(list(found.values())).figure, folder / "11_shapes.png")
