"""KS: the two-sample Kolmogorov–Smirnov test by permutation, on interval data, many pairs at once.

One run of shuffled labels serves every pair of the same sizes: a pair only says after which positions of its
pooled order the walk S_A − S_B may be read (inside a tie it may not), so ties and grids are handled exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii._check import number, whole
from radii.errors import InputError
from radii.stats._arrays import BoolArray, Ends, FloatArray

Walk = npt.NDArray[np.signedinteger[Any]]
_CELLS = 8_000_000  # numbers held at once while shuffling


@dataclass(frozen=True)
class TestResult:
    """A test on intervals: one p-value if both sides were measured alike, and its range if they were not.

    `p_value` is exact under "radii and gaps come from the same process". `p_low` and `p_high` enclose the p-value
    of the true radii wherever they lie in their intervals, so `p_high` needs no assumption about the gaps.
    """

    test: str
    statistic: float
    p_value: float
    p_low: float
    p_high: float
    permutations: int

    __test__ = False  # not a test case of pytest

    def decision(self, alpha: float = 0.05) -> str:
        """`different`, `no difference shown`, or `undecided` where the gaps make a decision impossible."""
        limit = number(alpha, "alpha", low=0.0, high=1.0)
        if self.p_high <= limit:
            return "different"
        return "no difference shown" if self.p_low > limit else "undecided"

    def statement(self, alpha: float = 0.05) -> str:
        """The decision as a sentence."""
        words = {
            "different": f"the radii differ, wherever they lie in their intervals (p at most {self.p_high:.2g})",
            "no difference shown": f"no difference is shown, whatever the gaps hide (p at least {self.p_low:.2g})",
            "undecided": f"the gaps make a decision impossible: p is between {self.p_low:.2g} and {self.p_high:.2g}; "
            "close more radii or use more inputs",
        }
        return f"{self.test}: {words[self.decision(alpha)]}"


def two_sample(a: Ends, b: Ends, permutations: int = 10_000, seed: int = 0) -> TestResult:
    """The permutation Kolmogorov–Smirnov test of two independent sets of inputs."""
    return two_sample_pairs([a, b], [(0, 1)], permutations, seed)[0]


def two_sample_pairs(
    sets: Sequence[Ends], pairs: Sequence[tuple[int, int]], permutations: int = 10_000, seed: int = 0
) -> list[TestResult]:
    """The permutation Kolmogorov–Smirnov test of many pairs; pairs of equal sizes share their shuffles."""
    runs = whole(permutations, "permutations", low=99)
    results: dict[int, TestResult] = {}
    sizes: dict[tuple[int, int], list[int]] = {}
    for k, (i, j) in enumerate(pairs):
        sizes.setdefault((len(sets[i]), len(sets[j])), []).append(k)
    for (n, m), members in sizes.items():
        plans = [_Plan(sets[pairs[k][0]], sets[pairs[k][1]]) for k in members]
        rng = np.random.default_rng(seed)
        tails = [np.zeros(5, np.int64) for _ in plans]
        for walk in _walks(n, m, runs, rng):
            blocks = _Blocks(walk)
            for plan, tail in zip(plans, tails):
                tail += plan.exceed(blocks)
        for k, plan, tail in zip(members, plans, tails):
            results[k] = plan.result([(count + 1) / (runs + 1) for count in tail.tolist()], runs)
    return [results[k] for k in range(len(pairs))]


class _Blocks:
    """A chunk of walks with the extremes of every block of positions, so that a pair reads few numbers."""

    SIZE = 64

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        starts = np.arange(0, walk.shape[0], self.SIZE)
        self.high, self.low = np.maximum.reduceat(walk, starts), -np.minimum.reduceat(walk, starts)
        self.top, self.bottom = self.high.max(axis=0), self.low.max(axis=0)

    def spread(self, rows: npt.NDArray[np.int64], whole_blocks: npt.NDArray[np.int64]) -> Walk:
        """The largest absolute value of every walk over single rows and whole blocks of rows."""
        parts = []
        if whole_blocks.size == self.high.shape[0]:
            return np.asarray(np.maximum(self.top, self.bottom))
        if whole_blocks.size:
            parts += [self.high[whole_blocks].max(axis=0), self.low[whole_blocks].max(axis=0)]
        if rows.size:
            read = self.walk[rows]
            parts += [read.max(axis=0), -read.min(axis=0)]
        return np.asarray(np.maximum.reduce(parts))


class _Plan:
    """What one pair reads off every walk: its observed statistics and the positions at which a tie ends."""

    def __init__(self, a: Ends, b: Ends) -> None:
        self.n, self.m = len(a), len(b)
        (a_low, a_high), (b_low, b_high) = a.radii(), b.radii()
        # the same function of every interval, symmetric in the two sets: its order is exchangeable under the null
        score = _order(np.concatenate([a_low, b_low]), np.concatenate([a_high, b_high]))
        walk, last = _observed(score[: self.n], score[self.n :])
        self.both = int(np.abs(walk[last]).max())
        starts = np.arange(0, last.size, _Blocks.SIZE)
        self.blocks = np.flatnonzero(np.logical_and.reduceat(last, starts))
        self.rows = np.flatnonzero(last & ~np.isin(np.arange(last.size) // _Blocks.SIZE, self.blocks))
        # sup(S_A − S_B) rises with every radius of A and falls with every radius of B, and the null law read at all
        # positions is the same for all data: so these four values bound the p-value of any radii in the intervals
        a_worst, a_best = _read(a_low, b_high), _read(a_high, b_low)
        self.a_up = max(int(a_worst.max()), 0), max(int(a_best.max()), 0)  # A above B: least, greatest
        self.b_up = max(-int(a_best.min()), 0), max(-int(a_worst.min()), 0)

    def exceed(self, walks: _Blocks) -> npt.NDArray[np.int64]:
        """How many of these shuffles reach each observed statistic."""
        counts = [np.sum(walks.spread(self.rows, self.blocks) >= self.both)]
        counts += [np.sum(walks.top >= value) for value in self.a_up]
        counts += [np.sum(walks.bottom >= value) for value in self.b_up]
        return np.array(counts, np.int64)

    def result(self, p: list[float], runs: int) -> TestResult:
        """The two-sided test: twice the better of the two one-sided p-values, at their ends.

        The p-value lies between them but for the noise of the shuffles, which must not make the range the narrower one.
        """
        worst, best = max(p[0], min(1.0, 2 * min(p[1], p[3]))), min(p[0], 2 * min(p[2], p[4]))
        statistic = self.both * math.gcd(self.n, self.m) / (self.n * self.m)
        return TestResult("two-sample Kolmogorov–Smirnov (permutation)", statistic, p[0], best, worst, runs)


def _moves(n: int, m: int) -> tuple[int, int, type[np.signedinteger[Any]]]:
    """The steps of the walk for a member of A and of B, as the smallest exact integers, and a type that holds it."""
    shared = math.gcd(n, m)
    reach = n * m // shared
    if reach >= 2**31:
        raise InputError(f"two-sample test: expected sets of at most 46,340 inputs each, got {n} and {m}")
    return m // shared, -n // shared, np.int16 if reach < 2**15 else np.int32


def _walks(n: int, m: int, runs: int, rng: np.random.Generator) -> Iterator[Walk]:
    """Chunks of walks (position × run) of n members of A and m of B in random order."""
    up, down, kind = _moves(n, m)
    chunk = max(1, _CELLS // (n + m))
    steps = np.concatenate([np.ones(n, np.bool_), np.zeros(m, np.bool_)])
    for start in range(0, runs, chunk):
        labels = np.tile(steps, (min(chunk, runs - start), 1))
        rng.permuted(labels, axis=1, out=labels)
        yield np.cumsum(np.where(labels.T, kind(up), kind(down)), axis=0, dtype=kind)


def _observed(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> tuple[Walk, BoolArray]:
    """The walk over the pooled values from the largest down, and where a tie ends."""
    values = np.concatenate([a, b])
    order = np.argsort(-values, kind="stable")
    values = values[order]
    up, down, kind = _moves(a.size, b.size)
    walk = np.cumsum(np.where(order < a.size, up, down)).astype(kind)
    return walk, np.append(values[1:] != values[:-1], True)


def _read(a: FloatArray, b: FloatArray) -> Walk:
    """The values of S_A − S_B between different radii, never inside a tie."""
    walk, last = _observed(a, b)
    return walk[last]


def _order(low: FloatArray, high: FloatArray) -> npt.NDArray[Any]:
    """A number per interval that grows with both ends; equal for equal intervals only."""
    below, above = (np.unique(values, return_inverse=True)[1] for values in (low, high))
    return np.asarray((below + above) * np.int64(low.size + 1) + below)
