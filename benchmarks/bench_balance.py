"""Class-balanced robust training: the weakest class and the disparity, before and after, adversarial and certified.

    python benchmarks/bench_balance.py [--seeds 0,1,2] [--epochs N]

For each loss two networks per seed, alike but for the balance. Robust recall of a class is the share of its test inputs
that PGD-40 does not change (adversarial), or that interval bounds prove (certified), as a mean over seeds. Worst-class
recall and disparity (best minus worst class) come with 95 % intervals for unseen inputs: Clopper–Pearson of each class
with Bonferroni over classes. All seeds see the same test inputs, so that more seeds do not narrow them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from common import markdown

import radii
from radii.problem import Domain
from radii.stats.confidence_intervals import share_interval
from radii.train.evaluate import accuracies
from radii.train.run import Run

EPSILON = 0.1
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "adversarial (pgd)": ("mnist5k-pgd", {"name": "kl", "temperature": 0.5, "after": 3}),
    "certified (ibp)": ("mnist5k-ibp", {"name": "kl", "temperature": 0.5, "after": 6}),
}


def main() -> None:
    """Trains the pairs and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    test = radii.load_dataset("mnist5k", split="test")
    lines = []
    for kind, (recipe, balance) in KINDS.items():
        for title, changes in (("plain", {}), ("balanced", {"balance": balance})):
            counts = np.zeros((10, 3))
            for seed in map(int, options.seeds.split(",")):
                run = radii.train(recipe, seed=seed, epochs=options.epochs, keep="last", **changes)
                counts += np.array(list(recalls(run, test, kind.startswith("certified"))))
            lines.append(row(kind, title, counts / len(options.seeds.split(","))))
    heads = ["loss", "training", "accuracy %", "robust accuracy %", "worst class %", "disparity (points)"]
    print(markdown(heads, lines))


def recalls(run: Run, test: Any, certified: bool) -> Iterator[tuple[int, int, int]]:
    """Inputs, right ones and robust ones of every class."""
    module = run.classifier.torch_module()
    if certified:
        from radii.train.from_graph import trainable

        module = trainable(run.classifier)
    for label in range(10):
        part = test[np.flatnonzero(test.y == label)]
        x, y = torch.from_numpy(part.x.copy()), torch.from_numpy(part.y.copy())
        found = accuracies(module, x, y, EPSILON, Domain(), steps=40)
        kept = found.certified if certified else found.attacked
        assert kept is not None
        yield len(part), round(found.clean * len(part)), round(kept * len(part))


def row(kind: str, title: str, counts: Any) -> list[str]:
    """A line of the table."""
    total, right, robust = counts.T
    ends = [share_interval(round(k), round(n), 1 - 0.05 / len(total)) for k, n in zip(robust, total)]
    shares = 100 * robust / total
    worst, best = int(shares.argmin()), int(shares.argmax())
    low, high = min(one[0] for one in ends), min(one[1] for one in ends)
    least = max(0.0, max(one[0] for one in ends) - min(one[1] for one in ends))
    most = max(one[1] for one in ends) - min(one[0] for one in ends)
    return [
        kind,
        title,
        f"{100 * right.sum() / total.sum():.1f}",
        f"{100 * robust.sum() / total.sum():.1f}",
        f"{shares[worst]:.1f} [{100 * low:.1f}, {100 * high:.1f}] (class {worst})",
        f"{shares[best] - shares[worst]:.1f} [{100 * least:.1f}, {100 * most:.1f}]",
    ]


if __name__ == "__main__":
    main()
