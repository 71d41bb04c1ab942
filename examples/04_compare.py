"""Two networks on the same images: which is the more robust one, and is that more than chance?"""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
data = radii.load_dataset("mnist5k", split="test")[:20]
plain, trained = (
    radii.distribution(radii.load_classifier(f"zoo:mnist5k-{name}"), data, seconds=0.5)
    for name in ("standard", "adversarial")
)

found = trained.compare(plain)
print(found.statement())
for dist in (plain, trained):
    print(f"{dist.name}: {dist.correct.mean():.0%} correct, median radius {dist.quantile(0.5).lower:.4f} or more")
figures.save(figures.paired_scatter(plain, trained).figure, folder / "04_compare.png")
