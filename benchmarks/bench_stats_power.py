"""Power of the tests on gridded radii with gaps: the tables and the picture in docs/statistics.md.

    python benchmarks/bench_stats_power.py [--runs 400] [--picture docs/pictures/power.png]

Two networks: radii are log-normal with log-standard deviation 0.5 on a grid of 0.002; a tenth of the inputs is
misclassified and a twentieth has no upper end. The second network's radii are larger by the given factor (1 = the null
hypothesis). Families: radii of another family on a grid of 0.002 are tested for log-normality.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from simulations import FAMILIES, FINE

from radii.stats._arrays import Ends
from radii.stats.goodness_of_fit import goodness
from radii.stats.ks import two_sample
from radii.stats.paired import paired

SIZES, FACTORS = (20, 50, 100, 200), (1.0, 1.1, 1.25, 1.5)
TESTS = ("two-sample, alike", "two-sample, sound", "paired, alike", "paired, sound")
Table = dict[tuple[int, str], list[float]]


def measured(radius: np.ndarray, rng: np.random.Generator) -> Ends:
    """What a search on a grid would report of these radii."""
    low = np.floor(radius / 0.002) * 0.002
    high = np.where(rng.random(radius.size) < 0.05, np.inf, low + 0.002)
    wrong = rng.random(radius.size) < 0.1
    return Ends(np.where(wrong, -np.inf, low), np.where(wrong, 0.0, high))


def networks(runs: int) -> Table:
    """Rejection rates at 5 %: if measured alike (p_value), and whatever the gaps hide (decision)."""
    found: Table = {}
    for n in SIZES:
        for factor in FACTORS:
            rng = np.random.default_rng(n)
            hits = np.zeros(4)
            for k in range(runs):
                base = rng.lognormal(-3, 0.4, n)
                a = measured(base * rng.lognormal(0, 0.3, n), rng)
                b = measured(base * rng.lognormal(0, 0.3, n) * factor, rng)
                other = measured(rng.lognormal(-3, 0.4, n) * rng.lognormal(0, 0.3, n) * factor, rng)
                free, pair = two_sample(a, other, 199, k), paired(a, b, permutations=199, seed=k)
                hits += [r <= 0.05 for r in (free.p_value, free.p_high, pair.p_value, pair.p_high)]
            found[n, f"{factor:g}"] = (hits / runs).tolist()
    return found


def families(runs: int) -> Table:
    """How often radii of a family are found not to be log-normal, at 5 %."""
    found: Table = {}
    for n in SIZES:
        for family, draw in FAMILIES.items():
            rng = np.random.default_rng(n)
            tests = (goodness(FINE.ends(draw(rng, (n,)), rng), ["lognormal"], 99, k) for k in range(runs))
            found[n, family] = [sum(test.fits[0].p_value <= 0.05 for test in tests) / runs]
    return found


def show(title: tuple[str, ...], rows: Table) -> None:
    """Print a table."""
    print("| n | " + " | ".join(title) + " |")
    print("|---|" + "---|" * len(title))
    for (n, name), shares in rows.items():
        print(f"| {n} | {name} | " + " | ".join(f"{share:.2f}" for share in shares) + " |")
    print()


def draw(pairs: Table, fits: Table, path: Path) -> None:
    """Power against the number of inputs: two samples, pairs, families."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for ax, first, title in zip(axes[:2], (0, 2), ("two independent samples", "the same inputs")):
        for factor in FACTORS:
            label = "no difference" if factor == 1 else f"radii × {factor:g}"
            rows = [pairs[n, f"{factor:g}"] for n in SIZES]
            (line,) = ax.plot(SIZES, [row[first] for row in rows], marker="o", label=label)
            ax.plot(SIZES, [row[first + 1] for row in rows], "--", color=line.get_color())
        ax.set_title(title)
    for family in FAMILIES:
        rows = [fits[n, family][0] for n in SIZES]
        axes[2].plot(SIZES, rows, marker="o", label="log-normal (true)" if family == "lognormal" else family)
    axes[2].set_title("tested for log-normality")
    for ax in axes:
        ax.axhline(0.05, color="0.6", linewidth=0.8)
        ax.set(xlabel="inputs", ylim=(0, 1.02))
        ax.legend(fontsize=8)
    axes[0].set_ylabel("rejected at 5 %")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Simulate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--picture", type=Path, default=None)
    args = parser.parse_args()
    pairs = networks(args.runs)
    show(("factor", *TESTS), pairs)
    fits = families(args.runs)
    show(("true family", "found not to be log-normal"), fits)
    if args.picture is not None:
        draw(pairs, fits, args.picture)


if __name__ == "__main__":
    main()
