"""Level and power of the tests on gridded radii with gaps: the table in docs/statistics.md.

    python benchmarks/bench_stats_power.py [--runs 400]

Radii are log-normal with log-standard deviation 0.5 on a grid of 0.002; a tenth of the inputs is misclassified and a
twentieth has no upper end. The second network's radii are larger by the given factor (1 = the null hypothesis).
"""

from __future__ import annotations

import argparse

import numpy as np

from radii.stats._arrays import Ends
from radii.stats.paired import paired
from radii.stats.permutation import two_sample


def measured(radius: np.ndarray, rng: np.random.Generator) -> Ends:
    """What a search on a grid would report of these radii."""
    low = np.floor(radius / 0.002) * 0.002
    high = np.where(rng.random(radius.size) < 0.05, np.inf, low + 0.002)
    wrong = rng.random(radius.size) < 0.1
    return Ends(np.where(wrong, -np.inf, low), np.where(wrong, 0.0, high))


def main() -> None:
    """Print rejection rates at 5 %: if measured alike (p_value), and whatever the gaps hide (decision)."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print("| n | factor | two-sample, alike | two-sample, sound | paired, alike | paired, sound |")
    print("|---|---|---|---|---|---|")
    for n in (20, 50, 100, 200):
        for factor in (1.0, 1.1, 1.25, 1.5):
            rng = np.random.default_rng(n)
            hits = np.zeros(4)
            for k in range(runs):
                base = rng.lognormal(-3, 0.4, n)
                a = measured(base * rng.lognormal(0, 0.3, n), rng)
                b = measured(base * rng.lognormal(0, 0.3, n) * factor, rng)
                other = measured(rng.lognormal(-3, 0.4, n) * rng.lognormal(0, 0.3, n) * factor, rng)
                free, pair = two_sample(a, other, 199, k), paired(a, b, permutations=199, seed=k)
                hits += [r <= 0.05 for r in (free.p_value, free.p_high, pair.p_value, pair.p_high)]
            print(f"| {n} | {factor:g} | " + " | ".join(f"{share:.2f}" for share in hits / runs) + " |")


if __name__ == "__main__":
    main()
