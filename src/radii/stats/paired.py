"""Tests for the same inputs on two networks: sign flips of the difference (Fisher 1935), McNemar (1947) at one ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy

from radii._check import number, whole
from radii.errors import InputError
from radii.stats._arrays import Ends, FloatArray, eps_array, largest_end
from radii.stats.ks import TestResult

_CELLS = 4_000_000


def paired(a: Ends, b: Ends, limit: float | None = None, permutations: int = 10_000, seed: int = 0) -> TestResult:
    """The sign-flip test of the mean difference of two networks' radii on the same inputs, in the same order."""
    return paired_pairs([a, b], [(0, 1)], limit, permutations, seed)[0]


def paired_pairs(
    sets: Sequence[Ends],
    pairs: Sequence[tuple[int, int]],
    limit: float | None = None,
    permutations: int = 10_000,
    seed: int = 0,
) -> list[TestResult]:
    """The sign-flip test of many pairs of networks on the same inputs.

    Radii are capped at `limit` (default: the 90 % quantile of all known upper ends), so an absent upper end costs
    precision and not validity; the mean difference is that of the areas under the two curves up to `limit`.
    A flipped sum reaches the observed one exactly when the flipped differences sum to at most 0, which is monotone
    in every difference: the two ends of the p-value are attained at the two ends of the intervals.
    """
    n = _same_size(sets)
    runs = whole(permutations, "permutations", low=99)
    cap = number(limit, "limit", low=0.0, strict=True) if limit is not None else _default_limit(sets)
    low = np.stack([np.minimum(ends.radii()[0], cap) for ends in sets])
    high = np.stack([np.minimum(ends.radii()[1], cap) for ends in sets])
    first, second = (np.array(side) for side in zip(*pairs))
    least, most = low[first] - high[second], high[first] - low[second]
    middle = (least + most) / 2
    columns = np.stack([middle, least, most]).reshape(-1, n)
    slack = 1e-12 * np.abs(columns).sum(axis=1)
    up, down = np.zeros(len(columns)), np.zeros(len(columns))
    for flips in _coins(n, runs, np.random.default_rng(seed)):
        sums = flips @ columns.T
        up += np.sum(sums <= slack, axis=0)
        down += np.sum(sums >= -slack, axis=0)
    above = ((1 + up) / (1 + runs)).reshape(3, -1)
    below = ((1 + down) / (1 + runs)).reshape(3, -1)
    two_sided = np.minimum(1.0, 2 * np.minimum(above[0], below[0]))
    worst = np.minimum(1.0, 2 * np.minimum(above[1], below[2]))
    best = np.minimum(1.0, 2 * np.minimum(above[2], below[1]))
    name = "paired sign-flip test of the mean radius"
    rows = np.stack([middle.mean(axis=1), two_sided, best, worst], axis=1).tolist()
    return [TestResult(name, mean, p, low, high, runs) for mean, p, low, high in rows]


def mcnemar(a: Ends, b: Ends, eps: float) -> TestResult:
    """McNemar's exact test: at one ε, is one network robust on more of the inputs on which the two differ?

    The worst case counts every undecided input for the other side, the best case for the leading one.
    """
    _same_size([a, b])
    point = float(eps_array(eps).reshape(()))
    a_sure, a_may = a.low >= point, a.high > point
    b_sure, b_may = b.low >= point, b.high > point
    a_wins = int(np.sum(a_sure & ~b_may)), int(np.sum(a_may & ~b_sure))  # at least, at most
    b_wins = int(np.sum(b_sure & ~a_may)), int(np.sum(b_may & ~a_sure))
    worst = 2 * min(_tail(a_wins[0], b_wins[1]), _tail(b_wins[0], a_wins[1]))
    best = 2 * min(_tail(a_wins[1], b_wins[0]), _tail(b_wins[1], a_wins[0]))
    sure = 2 * min(_tail(a_wins[0], b_wins[0]), _tail(b_wins[0], a_wins[0]))
    statistic = (a_wins[0] - b_wins[0]) / len(a)
    return TestResult(f"McNemar's test at ε = {point:g}", statistic, min(1.0, sure), min(1.0, best), min(1.0, worst), 0)


def _tail(wins: int, losses: int) -> float:
    """P(at least `wins` of the differing inputs) when both sides are equally likely."""
    return float(scipy.stats.binom.sf(wins - 1, wins + losses, 0.5))


def _coins(n: int, runs: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    chunk = max(1, _CELLS // n)
    width = (n + 7) // 8
    for start in range(0, runs, chunk):
        rows = min(chunk, runs - start)
        bits = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
        yield np.unpackbits(bits, axis=1, count=n).astype(np.float64)


def _same_size(sets: Sequence[Ends]) -> int:
    sizes = sorted({len(ends) for ends in sets})
    if len(sizes) != 1:
        raise InputError(
            f"paired test: expected the same inputs on every network, got sets of {sizes} inputs; "
            "give ids to both, or use the two-sample test"
        )
    return sizes[0]


def _default_limit(sets: Sequence[Ends]) -> float:
    """Where most witnesses are known: beyond it absent upper ends would drown the difference."""
    upper = np.concatenate([ends.radii()[1] for ends in sets])
    known = upper[np.isfinite(upper) & (upper > 0)]
    return float(np.quantile(known, 0.9, method="lower")) if known.size else largest_end(*sets)
