"""Many networks at once: pairwise tests with Holm, a ranking with its uncertainty, correlations, consistent inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from itertools import permutations as orders
from typing import TYPE_CHECKING

import numpy as np

from radii._check import choice, number
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, definition, largest_end, level
from radii.stats.betting import mean_above, mean_lower, mean_upper
from radii.stats.ks import TestResult, two_sample_pairs
from radii.stats.multiple_testing import holm
from radii.stats.paired import paired_pairs

if TYPE_CHECKING:
    from radii.stats.distribution import Distribution


@dataclass(frozen=True)
class PairTest:
    """One pair of networks: its test, and its p-values after Holm over all pairs."""

    a: str
    b: str
    test: TestResult
    holm_p_value: float
    holm_p_high: float


def pairwise_tests(
    dists: Mapping[str, Distribution], kind: str = "auto", permutations: int = 10_000, seed: int = 0, among: str = "all"
) -> tuple[PairTest, ...]:
    """All pairs of networks: sign-flip tests on the inputs all of them share, or two-sample tests.

    `kind` is "paired", "two-sample", or "auto" (paired where all distributions share inputs by their ids).
    """
    names = _names(dists)
    how = choice(kind, "kind", ("auto", "paired", "two-sample"))
    if how == "auto":
        how = "paired" if share_inputs(dists) else "two-sample"
    pairs = list(combinations(range(len(names)), 2))
    if how == "paired":
        results = paired_pairs(shared_ends(dists, among), pairs, None, permutations, seed)
    else:
        sets = [dist.ends(among) for dist in dists.values()]
        results = two_sample_pairs(sets, pairs, permutations, seed)
    plain, worst = holm([r.p_value for r in results]), holm([r.p_high for r in results])
    rows = zip(pairs, results, plain.tolist(), worst.tolist())
    return tuple(PairTest(names[i], names[j], result, p, q) for (i, j), result, p, q in rows)


@dataclass(frozen=True)
class Rank:
    """One network's place: the area under its curve as an interval, and the ranks it may have (1 is the best)."""

    name: str
    area: tuple[float, float]
    low: float
    high: float
    best_rank: int
    worst_rank: int


def ranking(
    dists: Mapping[str, Distribution], limit: float | None = None, confidence: float = 0.95
) -> tuple[Rank, ...]:
    """Networks by the area under their robust-accuracy curve up to `limit`, with the ranks that remain possible.

    A network is ahead of another if the interval of the difference of their areas lies above 0 wherever the radii are
    in their intervals (differences per input when all share inputs; Bonferroni over the pairs). Intervals are those of
    `radii.stats.betting`, valid for every number of inputs and every shape.
    """
    names = _names(dists)
    paired = share_inputs(dists)
    sets = shared_ends(dists) if paired else [dist.ends() for dist in dists.values()]
    cap = largest_end(*sets) if limit is None else number(limit, "limit", low=0.0, strict=True)
    low, high = ([np.minimum(ends.radii()[k], cap) / cap for ends in sets] for k in (0, 1))
    k = len(names)
    alpha = level(confidence) / (k * (k - 1) / 2)
    ahead = np.zeros((k, k), np.bool_)
    for i, j in orders(range(k), 2):
        ahead[i, j] = _surely_above(low[i], high[j], alpha / 2, paired)
    rows = []
    for i, name in enumerate(names):
        side = level(confidence) / 2
        limits = mean_lower(low[i], side), mean_upper(high[i], side)
        ranks = 1 + int(ahead[:, i].sum()), k - int(ahead[i].sum())
        rows.append(Rank(name, (float(low[i].mean()), float(high[i].mean())), *limits, *ranks))
    return tuple(sorted(rows, key=lambda row: -(row.area[0] + row.area[1])))


def _surely_above(first: FloatArray, second: FloatArray, alpha: float, paired: bool) -> bool:
    """Whether the mean of `first` exceeds that of `second` for unseen inputs too, at one-sided level α."""
    if first.mean() <= second.mean():
        return False
    if paired:
        return mean_above((first - second + 1) / 2, 0.5, alpha)
    return mean_lower(first, alpha / 2) > mean_upper(second, alpha / 2)


def share_inputs(dists: Mapping[str, Distribution]) -> bool:
    """Whether there are inputs, by their ids, that every distribution holds."""
    keys = [None if dist.ids is None else set(dist.ids.tolist()) for dist in dists.values()]
    known = [key for key in keys if key is not None]
    return len(known) == len(keys) and bool(set.intersection(*known))


def shared_ends(dists: Mapping[str, Distribution], among: str = "all") -> list[Ends]:
    """The ends of the inputs that all networks hold, in the same order."""
    from radii.stats.comparison import unique_ids

    keys = [unique_ids(dist, name) for name, dist in dists.items()]
    common = keys[0]
    for key in keys[1:]:
        common = np.intersect1d(common, key, assume_unique=True)
    rows = [np.argsort(key)[np.searchsorted(np.sort(key), common)] for key in keys]
    if definition(among) == "correct":
        right = np.logical_and.reduce([dist.correct[row] for dist, row in zip(dists.values(), rows)])
        rows = [row[right] for row in rows]
    if rows[0].size == 0:
        raise InputError("paired comparison: expected inputs that all networks share, got none in common")
    return [dist.ends().take(row) for dist, row in zip(dists.values(), rows)]


def _names(dists: Mapping[str, Distribution]) -> list[str]:
    if len(dists) < 2:
        raise InputError(f"comparison: expected at least two networks, got {len(dists)}")
    return [str(name) for name in dists]
