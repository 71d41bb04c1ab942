"""How long the statistics take: 12 networks with 10,000 radii each, every summary, every pairwise test.

    python benchmarks/bench_stats.py [--inputs 10000] [--networks 12] [--permutations 10000] [--grid 0.002]

Prints one line per step and the total; the promise is under 60 seconds on two cores that are free.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from radii.stats import Distribution
from radii.stats.correlation import correlations
from radii.stats.fairness import disparity, gini, worst_class
from radii.stats.goodness_of_fit import goodness
from radii.stats.networks import pairwise_tests, ranking


def networks(count: int, inputs: int, grid: float, seed: int) -> dict[str, Distribution]:
    """Log-normal radii with shared difficulty, a few wide gaps and absent ends; continuous when grid is 0."""
    rng = np.random.default_rng(seed)
    base, label = rng.normal(0, 0.3, inputs), rng.integers(0, 10, inputs)
    result = {}
    for k in range(count):
        radius = np.exp(-3 + 0.02 * k + base + rng.normal(0, 0.4, inputs))
        low = np.floor(radius / grid) * grid if grid else radius - 0.002 * rng.random(inputs)
        high = low + (grid or 0.002)
        wide = rng.random(inputs) < 0.05
        low, high = np.where(wide, low / 2, low), np.where(wide & (rng.random(inputs) < 0.5), np.nan, high)
        result[f"net{k}"] = Distribution.from_arrays(
            lower=np.maximum(low, 0), upper=high, label=label, correct=rng.random(inputs) < 0.97, ids=np.arange(inputs)
        )
    return result


def summarise(nets: dict[str, Distribution]) -> None:
    """Everything a report shows of each network."""
    eps = np.linspace(0, 0.3, 301)
    for net in nets.values():
        net.summary()
        net.robust_accuracy(eps)
        net.guarantee().at(eps)
        net.quantile(0.5)
        net.mean()
        net.turnbull()
        worst_class(net, eps)
        disparity(net, 0.02)
        gini(net)
        goodness(net.ends("correct"), replicates=99)


def main() -> None:
    """Time every step."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--networks", type=int, default=12)
    parser.add_argument("--permutations", type=int, default=10_000)
    parser.add_argument("--grid", type=float, default=0.002, help="step of the grid of radii, 0 for none")
    args = parser.parse_args()
    nets = networks(args.networks, args.inputs, args.grid, seed=0)
    steps = {
        "summaries, curves, bands, fairness, fits": lambda: summarise(nets),
        "pairwise two-sample permutation tests": lambda: pairwise_tests(nets, "two-sample", args.permutations),
        "pairwise paired permutation tests": lambda: pairwise_tests(nets, "paired", args.permutations),
        "correlations": lambda: correlations(nets),
        "ranking": lambda: ranking(nets),
    }
    total, cpu_total = 0.0, 0.0
    for name, step in steps.items():
        start, cpu_start = time.perf_counter(), time.process_time()
        step()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        total, cpu_total = total + seconds, cpu_total + cpu
        print(f"{seconds:8.2f} s wall {cpu:8.2f} s CPU  {name}")
    print(f"{total:8.2f} s wall {cpu_total:8.2f} s CPU  total")


if __name__ == "__main__":
    main()
