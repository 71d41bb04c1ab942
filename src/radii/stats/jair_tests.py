"""The tests of the JAIR paper as it ran them, so that its tables can be reproduced; every result says so.

They are plain scipy tests on the lower ends of correctly classified inputs: they ignore gaps, ties, the fitted
parameters and the number of comparisons. `goodness_of_fit`, `ks` and `paired` hold the sound counterparts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from radii._check import number
from radii.stats._arrays import FloatArray, column

LABEL = "as in the paper"


@dataclass(frozen=True)
class PaperTest:
    """A plain test: its statistic and p-value, or None and the reason where it could not be run."""

    test: str
    statistic: float | None
    p_value: float | None
    n: tuple[int, ...]
    reason: str = ""
    label: str = LABEL

    __test__ = False  # not a test case of pytest

    def verdict(self, alpha: float = 0.05) -> str:
        """`passed` (not rejected), `rejected`, or `invalid` where the test's conditions do not hold."""
        if self.p_value is None:
            return "invalid"
        return "rejected" if self.p_value < number(alpha, "alpha", low=0.0, high=1.0) else "passed"


def lognormal_ks(radii: Any) -> PaperTest:
    """Plain KS against a log-normal fitted to the same radii; `invalid` when a radius is 0 (Tables 2 and 3)."""
    values, name = _present(radii), "Kolmogorov–Smirnov, fitted log-normal"
    if values.size < 2:
        return _invalid(name, values, reason="fewer than two radii")
    if np.any(values <= 0):
        return _invalid(name, values, reason="a radius is 0: a log-normal variable is positive")
    logs = np.log(values)
    if np.ptp(values) == 0:
        return _invalid(name, values, reason="all radii are equal")
    found = scipy.stats.kstest(logs, "norm", args=(logs.mean(), logs.std()))
    return PaperTest(name, float(found.statistic), float(found.pvalue), (values.size,))


def ks_two_sample(a: Any, b: Any) -> PaperTest:
    """The plain two-sample KS test (train against test, network against network, lower against upper)."""
    first, second, name = _present(a), _present(b), "two-sample Kolmogorov–Smirnov"
    if not first.size or not second.size:
        return _invalid(name, first, second, reason="an empty sample")
    found = scipy.stats.ks_2samp(first, second)
    return PaperTest(name, float(found.statistic), float(found.pvalue), (first.size, second.size))


def welch(a: Any, b: Any) -> PaperTest:
    """Welch's t-test of the two means (Tables 8–10 and 23)."""
    first, second, name = _present(a), _present(b), "Welch's t-test"
    if min(first.size, second.size) < 2:
        return _invalid(name, first, second, reason="fewer than two radii")
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        return _invalid(name, first, second, reason="both samples are constant")
    # written out because scipy warns where one sample is constant, which is no trouble here
    parts = first.var(ddof=1) / first.size, second.var(ddof=1) / second.size
    t = float((first.mean() - second.mean()) / np.sqrt(sum(parts)))
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (first.size - 1) + parts[1] ** 2 / (second.size - 1))
    return PaperTest(name, t, float(2 * scipy.stats.t.sf(abs(t), degrees)), (first.size, second.size))


def spearman(a: Any, b: Any) -> PaperTest:
    """Spearman's rank correlation over the inputs both networks classify correctly (NaN marks the others)."""
    first = column(a, "a")
    second = column(b, "b", first.size)
    both = ~np.isnan(first) & ~np.isnan(second)
    first, second, name = first[both], second[both], "Spearman's rank correlation"
    if first.size < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return _invalid(name, first, reason="fewer than three shared inputs, or constant radii")
    found = scipy.stats.spearmanr(first, second)
    return PaperTest(name, float(found.statistic), float(found.pvalue), (first.size,))


@dataclass(frozen=True)
class GapTest:
    """Table 23: do the lower and the upper ends look like two different distributions?"""

    t_test: PaperTest
    ks_test: PaperTest


def lower_against_upper(lower: Any, upper: Any) -> GapTest:
    """The paper's check of the quality of a distribution: lower against upper ends, as if they were independent."""
    return GapTest(welch(lower, upper), ks_two_sample(lower, upper))


@dataclass(frozen=True)
class SampleSize:
    """Table 6: one sample against a larger, disjoint one."""

    mean: tuple[float, float]
    std: tuple[float, float]
    ks_test: PaperTest


def sample_size_effect(small: Any, large: Any) -> SampleSize | None:
    """Means, standard deviations and the plain KS test of a small and a large sample; None if one is empty."""
    first, second = _present(small), _present(large)
    if not first.size or not second.size:
        return None
    means, stds = (float(first.mean()), float(second.mean())), (float(first.std()), float(second.std()))
    return SampleSize(means, stds, ks_two_sample(first, second))


def _present(values: Any) -> FloatArray:
    array = column(values, "radii")
    return array[np.isfinite(array)]


def _invalid(name: str, *samples: FloatArray, reason: str) -> PaperTest:
    return PaperTest(name, None, None, tuple(sample.size for sample in samples), reason)
