"""Is a network as robust on every class? Radii per class with tests (Bosman et al., per-class performance bias)."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report import figures
from radii.stats.classes import ks_matrix, robust_recall
from radii.stats.fairness import disparity, worst_class

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
test = radii.load_dataset("mnist5k", split="test")
some = [i for label in (1, 4, 8) for i in (test.y == label).nonzero()[0][:5]]

dist = radii.distribution("zoo:mnist5k-standard", test[some], seconds=0.3, store=folder / "classes.db")
for one in robust_recall(dist, 0.01):
    print(f"class {one.label}: {one.proven:.0%} to {one.not_broken:.0%} of {one.n} robust at 0.01,", end=" ")
    print(f"unseen inputs {one.low:.0%} to {one.high:.0%}")
worst, gap = worst_class(dist, 0.01), disparity(dist, 0.01)
print(f"worst class: {worst.proven[0]:.0%} to {worst.not_broken[0]:.0%}; largest difference of two classes:", end=" ")
print(f"{gap.lower:.0%} to {gap.upper:.0%}, unseen inputs {gap.low:.0%} to {gap.high:.0%}")

# The paper's test of two classes, and one that counts gaps, with Holm's correction.
parts = {str(label): part for label, part in dist.by_class().items()}
for kind in ("paper", "permutation"):
    pairs = ks_matrix(parts, parts, method=kind, permutations=999).significant()
    print(f"{kind}: {sum(bool(pairs[a][b]) for a in range(3) for b in range(a))} of 3 pairs of classes differ")
figures.save(figures.class_boxes(dist).figure, folder / "10_classes.png")
