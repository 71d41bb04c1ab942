"""Levels and coverage by simulation, the lean part: benchmarks/bench_stats_levels.py runs all cases, with many runs."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from simulated_coverage import coverage
from simulations import Case, levels


def counts(case: Case, n: int, runs: int) -> dict[str, float]:
    """The share of data sets in which each statement of a case was true."""
    rng, found = np.random.default_rng(n + runs), Counter[str]()
    for k in range(runs):
        found.update({name: int(hit) for name, hit in case(rng, n, k).items()})
    return {name: found[name] / runs for name in found}


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("networks | grid 0.03 (3 to 5 values)", 200),
        ("classes | grid 0.01, 20 % with gaps", 150),
        ("bands | grid 0.01", 300),
        ("pairs | grid 0.03 (3 to 5 values)", 600),
        ("pairs | grid 0.01, time-outs of large radii", 600),
        ("two samples | grid 0.03 (3 to 5 values)", 600),
        ("two samples | grid 0.01, time-outs of large radii", 600),
        ("goodness of fit, gamma | grid 0.01", 200),
        ("goodness of fit, normal | grid 0.03 (3 to 5 values)", 150),
        ("goodness of fit, lognormal | grid 0.01, time-outs of large radii", 200),
    ],
)
def test_a_true_null_hypothesis_is_rarely_rejected(name: str, runs: int) -> None:
    allowed = 0.06 + 2 * np.sqrt(0.05 * 0.95 / runs)  # 1 % above nominal, and two standard errors of this simulation
    found = counts(levels()[name], 20, runs)
    assert found
    assert all(share <= allowed for share in found.values()), found


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("one network | grid 0.01, time-outs of large radii", 150),
        ("classes | grid 0.002, skewed radii, 30 % misclassified", 100),
        ("risk | grid 0.01, 20 % with gaps", 200),
        ("two networks | grid 0.01, 20 % with gaps", 200),
        ("two networks | exact, alike on half of the inputs", 200),
        ("sequence | grid 0.002", 100),
    ],
)
def test_intervals_hold_what_they_promise(name: str, runs: int) -> None:
    needed = 0.945 - 2 * np.sqrt(0.05 * 0.95 / runs)  # as above
    found = counts(coverage()[name], 20, runs)
    assert found
    assert all(share >= needed for share in found.values()), found


def test_the_simulation_sees_a_test_that_does_not_hold() -> None:
    """Gaps on one side only break the p-value that assumes equal measuring, and not the decision."""
    found = counts(levels()["two samples | one side without gaps, the other with 60 %"], 60, 200)
    assert found["p_value"] > 0.2
    assert found["decision"] <= 0.06
