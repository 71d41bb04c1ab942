"""How wide intervals of rank correlations are, beside those that take the middle of every interval for the radius.

    python benchmarks/bench_stats_widths.py [--runs 500] [--inputs 100]

Prints, for every way of measuring, the mean ends of the range in the sample and of the 95 % interval, and how often
the interval and the one of the middles hold the coefficient of the true radii.
"""

from __future__ import annotations

import argparse

import numpy as np
from simulated_coverage import CORRELATED
from simulations import COARSE, EXACT, FINE, GAPS, TIED, TIMEOUTS, Measuring, _twins, as_distribution

from radii.stats import Distribution
from radii.stats.correlation import correlations, middle

FEW = Measuring("grid 0.002, 2 % with gaps", 0.002, 0.02)
SOME = Measuring("grid 0.002, 10 % with gaps", 0.002, 0.1)


def middles(dist: Distribution) -> Distribution:
    """The same network with the middle of every interval as an exact radius."""
    values = middle(dist.ends())
    return Distribution.from_arrays(lower=values, upper=values, ids=range(len(values)))


def measure(how: Measuring, n: int, runs: int) -> tuple[float, ...]:
    """Mean range, mean limits, their coverage, mean limits and coverage of the middles."""
    rng, rows, truth = np.random.default_rng(n), [], CORRELATED[_twins]
    for _ in range(runs):
        nets = {str(k): as_distribution(how.ends(radii, rng)) for k, radii in enumerate(_twins(rng, n))}
        (found,) = correlations(nets)
        (plain,) = correlations({name: middles(dist) for name, dist in nets.items()})
        limits = [found.lower, found.upper, found.low, found.high, plain.low, plain.high]
        ends = [float("nan") if end is None else end for end in limits]
        rows.append([*ends, ends[2] <= truth <= ends[3], ends[4] <= truth <= ends[5]])
    return tuple(np.mean(rows, axis=0).tolist())


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--inputs", type=int, default=100)
    args = parser.parse_args()
    print("| measured | wherever the radii lie | 95 % interval | holds | of the middles | holds |")
    print("|---|---|---|---|---|---|")
    for how in (EXACT, FINE, FEW, SOME, COARSE, TIED, GAPS, TIMEOUTS):
        a, b, low, high, under, over, held, plain = measure(how, args.inputs, args.runs)
        ends = f"{a:.2f} to {b:.2f} | {low:.2f} to {high:.2f} | {held:.1%} | {under:.2f} to {over:.2f} | {plain:.1%}"
        print(f"| {how.name} | {ends} |", flush=True)


if __name__ == "__main__":
    main()
