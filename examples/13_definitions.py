"""Four definitions of robustness on one network, over ε: satisfied, secure, accurate (Casadio et al., CAV 2022)."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report.measure_curves import measure_curves
from radii.report.style import save

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
net = radii.load_classifier("zoo:mnist5k-adversarial")
data = radii.load_dataset("mnist5k", split="test")[:3]

definitions = [
    radii.Classification(),
    radii.StrongClassification(0.52, on="probability"),
    radii.Standard(2),
    radii.Lipschitz(60),
]
rows = []
for size in (0.005, 0.03):
    found = radii.measures(net, data, epsilon=size, properties=definitions, seconds=0.5, samples=20, restarts=1)
    rows += [{"classifier": net.name, "epsilon": size, **row} for row in found.to_frame().to_dict("records")]
    for row in found.rows:
        print(f"ε = {size}, {row.property}: proven {row.proven:.0%}, not refuted {row.not_refuted:.0%},", end=" ")
        print(f"secure against PGD {row.security:.0%}, of random points {row.accuracy:.0%}")

# A threshold that all inputs fail says little: the critical constant of each input says how far off it is.
slopes = radii.distribution(net, data, property="lipschitz", reach=0.01, seconds=0.5, store=folder / "slopes.db")
mean = slopes.mean()
print(f"critical L: mean between {mean.lower:.1f} and {mean.upper:.1f}")
save(measure_curves(rows), folder / "13_definitions.png")
