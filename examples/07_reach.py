"""How far do the outputs move? The largest change of a probability in balls of one ε, over a data set."""

from __future__ import annotations

import sys
from pathlib import Path

import radii
from radii.report.figures import new_figure, save
from radii.report.reach_curves import reach_curve

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
folder.mkdir(parents=True, exist_ok=True)
data = radii.load_dataset("mnist5k", split="test")[:20]

# One interval per input: the lower end has a witness, the upper end is proven.
found = {
    name: radii.distribution(
        f"zoo:mnist5k-{name}", data, property="probability", reach=0.01, seconds=1, store=folder / "reach.db"
    )
    for name in ("standard", "adversarial")
}
for name, dist in found.items():
    mean, share = dist.mean(), dist.share(0.1)
    print(f"{name}: mean {dist.quantity} between {mean.lower:.4f} and {mean.upper:.4f}")
    print(f"  at most 0.1: proven for {share.proven:.0%} of the inputs, not refuted for {share.not_refuted:.0%}")

# What that says of unseen inputs: of the mean (Hoeffding), and of every γ at once (DKW).
promise = found["adversarial"].guarantee(confidence=0.95)
print(promise.mean_sentence())
print(promise.sentence(0.1))
print(found["standard"].compare(found["adversarial"]).statement())

figure, axes = new_figure()
reach_curve(list(found.values()), axes, confidence=0.95)
save(figure, folder / "07_reach.png")
found["adversarial"].report(folder / "reach.html", found["standard"], data=data, title="Twenty digits, ε = 0.01")
