"""How many inputs a guarantee needs, planned before any radius is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import choice, number, whole
from radii.errors import InputError
from radii.stats._arrays import level
from radii.stats.confidence_intervals import share_interval, share_lower
from radii.stats.dkw import dkw_half_width

PLANS = {
    "hoeffding": "Theorem 1 of the statistical-guarantees paper (Chernoff/Hoeffding), for any share, one ε",
    "dkw": "the whole curve at once, for any share",
    "clopper-pearson": "exact binomial limits, one ε, at the share where they are widest or at `share`",
    "chernoff": "the Kullback–Leibler form of Chernoff's bound, one ε, at the worst share or at `share`",
    "bernstein": "empirical Bernstein, one ε, worthwhile when the share is near 0 or 1",
}


@dataclass(frozen=True)
class Plan:
    """The number of inputs after which the error is at most `error` with the asked confidence."""

    n: int
    error: float
    confidence: float
    method: str
    meaning: str


def sample_size(
    error: Any,
    confidence: float = 0.95,
    method: str = "hoeffding",
    *,
    share: float | None = None,
    span: float = 1.0,
    population: int | None = None,
) -> Plan:
    """The smallest sample whose estimate is within `error` of the truth (half the width of the interval).

    `span` is B − A for a bounded quantity in [A, B] (Theorem 2). `share` is a guess of the robust share for the
    methods that profit from it; the worst case is used without one. With `population` the inputs are drawn without
    replacement from that many and the plan is never larger.
    """
    width = number(error, "error", low=0.0, strict=True) / number(span, "span", low=0.0, strict=True)
    name = choice(method, "method", PLANS)
    if width >= 0.5:
        raise InputError(f"error: expected less than half of the possible range, got {error!r}")
    guess = None if share is None else number(share, "share", low=0.0, high=1.0)
    simple = math.ceil(math.log(2 / level(confidence)) / (2 * width**2))
    if population is None and name in ("hoeffding", "dkw"):
        n = simple
    else:
        top = simple if population is None else min(simple, whole(population, "population", low=1))
        n = _search(lambda size: _half_width(size, confidence, name, guess, population) <= width, top)
    return Plan(n, float(error), 1.0 - level(confidence), name, PLANS[name])


def zero_failure_size(share: Any, confidence: float = 0.95) -> int:
    """The smallest n such that n robust inputs out of n show a share of at least `share` (exact, one-sided)."""
    goal = number(share, "share", low=0.0, high=1.0, strict=True)
    if goal >= 1:
        raise InputError("share: expected less than 1, got 1: no finite sample shows that every input is robust")
    return math.ceil(math.log(level(confidence)) / math.log(goal) - 1e-9)


def expected_lower(n: int, share: float, confidence: float = 0.95) -> float:
    """The lower limit to expect from n inputs if the true share is `share` (one-sided Clopper–Pearson)."""
    count = math.floor(whole(n, "n", low=1) * number(share, "share", low=0.0, high=1.0))
    return float(share_lower(count, n, confidence))


def _half_width(n: int, confidence: float, name: str, guess: float | None, population: int | None) -> float:
    if name == "dkw":
        return dkw_half_width(n, confidence, population)
    shares = np.linspace(0, 1, 41) if guess is None else np.array([guess])
    counts = np.unique(np.rint(np.append(shares, 0.5 if guess is None else guess) * n))
    exact = "clopper-pearson" if population is not None else name
    low, high = share_interval(counts, n, confidence, exact, population)
    return float(np.max(high - low) / 2)


def _search(enough: Any, top: int) -> int:
    """The smallest n up to a doubling of `top` that is enough, by bisection."""
    high = max(top, 2)
    while not enough(high):
        if high > 10**9:
            raise InputError("sample_size: expected a reachable error, got one that needs more than 10^9 inputs")
        high *= 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
