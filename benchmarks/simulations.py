"""Simulated radii with known truth: how often a test rejects a true null hypothesis, how often an interval covers.

Every case is a function of a generator and a size that returns one or several True/False per simulated data set. The
tests run some of them with few data sets, `bench_stats_levels.py` all of them with many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from radii.stats import Distribution
from radii.stats._arrays import Ends
from radii.stats.classes import ks_matrix
from radii.stats.curves import dominance, stretches, unseen_margin
from radii.stats.goodness_of_fit import goodness
from radii.stats.guarantee import class_claims
from radii.stats.jair_tests import ks_two_sample, lognormal_ks, welch
from radii.stats.ks import two_sample
from radii.stats.networks import pairwise_tests, ranking
from radii.stats.paired import mcnemar, paired

Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, ...]], np.ndarray]
LOG_MEAN, LOG_STD = -3.0, 0.5


@dataclass(frozen=True)
class Measuring:
    """How true radii become intervals: a grid (0: exact), and the share of inputs that lose one or both ends.

    With `informative` the larger radii lose their ends more often, as time-outs do.
    """

    name: str
    step: float
    gaps: float = 0.0
    informative: bool = False
    wrong: float = 0.0

    def ends(self, truth: np.ndarray, rng: Rng) -> Ends:
        """What a search would report of these radii."""
        low = np.floor(truth / self.step) * self.step if self.step else truth
        high = low + self.step if self.step else np.nextafter(truth, np.inf)
        chance = self.gaps * (2 * stats.norm.cdf((np.log(truth) - LOG_MEAN) / LOG_STD) if self.informative else 1.0)
        lost = rng.random(truth.shape) < chance
        half = rng.random(truth.shape) < 0.5
        coarse = np.floor(truth / 2 / self.step) * self.step if self.step else truth / 2
        low, high = np.where(lost, coarse, low), np.where(lost & half, np.inf, high)
        wrong = rng.random(truth.shape) < self.wrong
        return Ends(np.where(wrong, -np.inf, low), np.where(wrong, 0.0, high))


EXACT = Measuring("exact", 0.0)
FINE = Measuring("grid 0.002", 0.002)
COARSE = Measuring("grid 0.01", 0.01)
TIED = Measuring("grid 0.03 (3 to 5 values)", 0.03)
GAPS = Measuring("grid 0.01, 20 % with gaps", 0.01, 0.2)
TIMEOUTS = Measuring("grid 0.01, time-outs of large radii", 0.01, 0.3, True)
LOOSE = Measuring("exact, 20 % with gaps", 0.0, 0.2)
MEASURINGS = (EXACT, FINE, COARSE, TIED, GAPS, TIMEOUTS, LOOSE)

FAMILIES: dict[str, Draw] = {
    "lognormal": lambda rng, shape: rng.lognormal(LOG_MEAN, LOG_STD, shape),
    "normal": lambda rng, shape: np.abs(rng.normal(0.06, 0.015, shape)),
    "weibull": lambda rng, shape: 0.06 * rng.weibull(2.0, shape),
    "gamma": lambda rng, shape: rng.gamma(4.0, 0.0145, shape),
}


def with_wrong(how: Measuring, share: float = 0.1) -> Measuring:
    """The same with a share of misclassified inputs."""
    return Measuring(how.name, how.step, how.gaps, how.informative, share)


# Levels: each case is a function (rng, n, k) -> {what: was the true null hypothesis rejected at 5 %?}

Case = Callable[[Rng, int, int], dict[str, bool]]
PERMUTATIONS = 199
WRONG = 0.1


def goodness_case(family: str, how: Measuring) -> Case:
    """Radii of a family, tested for that family."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        found = goodness(how.ends(FAMILIES[family](rng, (n,)), rng), [family], 99, k)
        return {"rejected": any(one.p_value <= 0.05 for one in found.fits)}

    return case


def two_sample_case(how: Measuring, other: Measuring | None = None) -> Case:
    """Two independent sets of the same radii, measured alike or (`other`) not; every other second set is larger."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        sizes = n, n if k % 2 else n + n // 2
        a, b = (m.ends(rng.lognormal(LOG_MEAN, LOG_STD, size), rng) for m, size in zip((how, other or how), sizes))
        found = two_sample(a, b, PERMUTATIONS, k)
        return {"p_value": found.p_value <= 0.05, "decision": found.decision() == "different"}

    return case


def _twins(rng: Rng, n: int, count: int = 2) -> list[np.ndarray]:
    """Radii of the same inputs on networks that are alike: a shared difficulty and noise of their own."""
    shared = rng.normal(0, 0.4, n)
    return [np.exp(LOG_MEAN + shared + rng.normal(0, 0.3, n)) for _ in range(count)]


def paired_case(how: Measuring, other: Measuring | None = None) -> Case:
    """The same inputs on two networks that are alike: sign flips, and McNemar's test at the median."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        a, b = (m.ends(truth, rng) for m, truth in zip((how, other or how), _twins(rng, n)))
        found, at_one = paired(a, b, permutations=PERMUTATIONS, seed=k), mcnemar(a, b, 0.05)
        return {
            "p_value": found.p_value <= 0.05,
            "decision": found.decision() == "different",
            "McNemar p_value": at_one.p_value <= 0.05,
            "McNemar decision": at_one.decision() == "different",
        }

    return case


def networks_case(how: Measuring) -> Case:
    """Three networks that are alike: any pair rejected after Holm, any network ranked behind another."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        nets = {str(i): as_distribution(how.ends(truth, rng)) for i, truth in enumerate(_twins(rng, n, 3))}
        result = {}
        for kind in ("paired", "two-sample"):
            pairs = pairwise_tests(nets, kind, PERMUTATIONS, k)
            result[f"Holm over pairs, {kind}"] = any(row.holm_p_value <= 0.05 for row in pairs)
        ranks = ranking(nets, limit=0.2)
        result["ranking"] = any((row.best_rank, row.worst_rank) != (1, 3) for row in ranks)
        return result

    return case


def classes_case(how: Measuring) -> Case:
    """Three classes that are alike, train and test: any cell of the KS matrix; claims about classes with Holm."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        sides = []
        for _ in range(2):
            parts = [how.ends(rng.lognormal(LOG_MEAN, LOG_STD, n), rng) for _ in range(3)]
            sides.append({str(i): as_distribution(part) for i, part in enumerate(parts)})
        matrix = ks_matrix(*sides, permutations=PERMUTATIONS)
        share = (1 - how.wrong) * float(stats.norm.sf((np.log(0.04) - LOG_MEAN) / LOG_STD))
        claims = class_claims({i: part.ends() for i, part in enumerate(sides[0].values())}, 0.04, share)
        return {
            "KS matrix": any(any(row) for row in matrix.significant()),
            "claims about classes": any(one.shown for one in claims.values()),
        }

    return case


def bands_case(how: Measuring) -> Case:
    """Two sets of the same radii: does a band say that one is ahead at some ε?"""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        a, b = (how.ends(rng.lognormal(LOG_MEAN, LOG_STD, n), rng) for _ in range(2))
        leads = stretches(a, b, unseen_margin(a, b))
        return {"lead": any(part.leader for part in leads), "dominance": dominance(a, b).unseen == "refuted"}

    return case


def paper_case(how: Measuring) -> Case:
    """The paper's plain tests on lower ends: two alike samples, and log-normal radii tested for log-normality."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        a, b = (how.ends(rng.lognormal(LOG_MEAN, LOG_STD, n), rng).low for _ in range(2))
        tests = {"log-normality": lognormal_ks(a), "two samples": ks_two_sample(a, b), "means": welch(a, b)}
        return {name: test.verdict() == "rejected" for name, test in tests.items()}

    return case


def as_distribution(ends: Ends) -> Distribution:
    """The distribution of simulated ends, with the positions as ids."""
    right = np.isfinite(ends.low)
    low, high = np.where(right, ends.low, np.nan), np.where(right & np.isfinite(ends.high), ends.high, np.nan)
    return Distribution.from_arrays(lower=low, upper=high, correct=right, ids=range(len(ends)))


def levels() -> dict[str, Case]:
    """Every case of a true null hypothesis by its name."""
    found: dict[str, Case] = {}
    for how in MEASURINGS:
        wrong = with_wrong(how, WRONG)
        found[f"two samples | {how.name}"] = two_sample_case(wrong)
        found[f"pairs | {how.name}"] = paired_case(wrong)
    different = "one side without gaps, the other with 60 %"
    half = Measuring(different, 0.01, 0.6, wrong=WRONG)
    found[f"two samples | {different}"] = two_sample_case(with_wrong(COARSE, WRONG), half)
    found[f"pairs | {different}"] = paired_case(with_wrong(COARSE, WRONG), half)
    for how in (FINE, COARSE, TIED, GAPS):
        found[f"networks | {how.name}"] = networks_case(with_wrong(how, WRONG))
        found[f"classes | {how.name}"] = classes_case(with_wrong(how, WRONG))
        found[f"bands | {how.name}"] = bands_case(with_wrong(how, WRONG))
        found[f"as in the paper | {how.name}"] = paper_case(how)
    for family in FAMILIES:
        for how in MEASURINGS:
            if how.step or family != "gamma":  # 256 incomplete gamma functions a sample take too long
                found[f"goodness of fit, {family} | {how.name}"] = goodness_case(family, how)
    return found
