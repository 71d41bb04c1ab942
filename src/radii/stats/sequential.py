"""Anytime-valid guarantees: look after every input and stop as soon as the interval is narrow enough.

One ε: a confidence sequence from a Beta mixture of likelihood ratios (Robbins 1970; Howard et al. 2021), one-sided
on each envelope, so it holds at all times at once. Whole curve: DKW bands at a fixed schedule of looks that share
the error between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from radii._check import choice, number, whole
from radii.errors import InputError
from radii.stats._arrays import DEFINITIONS, FloatArray, column, eps_array, interval_columns, level
from radii.stats.dkw import dkw_half_width
from radii.stats.guarantee import EVIDENCE, claim


def running_lower(successes: Any, draws: Any, confidence: float = 0.95) -> FloatArray:
    """The lower limit of a share after each (successes, draws): all limits hold together, whenever one stops.

    For a share p, the ratio of a uniform mixture over shares above p to the likelihood of p is a supermartingale
    whenever the true share is at most p; by Ville's inequality it ever exceeds 1/α with probability at most α.
    """
    alpha = level(confidence)
    wins = np.asarray(successes, dtype=np.float64)
    total = np.asarray(draws, dtype=np.float64)
    if np.any(wins < 0) or np.any(wins > total):
        raise InputError("successes: expected at least 0 and at most the number of draws")
    low, high = np.zeros_like(wins), np.where(total > 0, wins / np.maximum(total, 1), 0.0)
    for _ in range(30):  # to 1e-9, and never above the limit
        middle = (low + high) / 2
        refuted = _log_mixture(middle, wins, total - wins) >= math.log(1 / alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def running_upper(successes: Any, draws: Any, confidence: float = 0.95) -> FloatArray:
    """The upper limit of a share after each (successes, draws), the mirror image of `running_lower`."""
    return 1.0 - running_lower(np.asarray(draws) - np.asarray(successes), draws, confidence)


def _log_mixture(p: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
    """log of the uniform mixture over shares in (p, 1) of the likelihood ratio against p."""
    above = scipy.special.betaincc(wins + 1, losses + 1, p)
    with np.errstate(divide="ignore"):
        mixture = np.log(above) + scipy.special.betaln(wins + 1, losses + 1) - np.log1p(-p)
        return np.asarray(mixture - scipy.special.xlogy(wins, p) - scipy.special.xlog1py(losses, -p))


@dataclass(frozen=True)
class Watch:
    """A running guarantee at one ε: give it radii as they come, stop when `done`.

    >>> watch = Watch(eps=0.02, width=0.2)
    >>> watch = watch.add(lower=[0.03] * 60, upper=[0.04] * 60)
    >>> watch.done, round(watch.low, 2)
    (True, 0.91)
    """

    eps: float
    width: float
    confidence: float = 0.95
    evidence: str = "proof and attack"
    about: str = ""
    draws: int = 0
    proven: int = 0
    not_broken: int = 0
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        eps_array(self.eps)
        number(self.width, "width", low=0.0, high=1.0, strict=True)
        level(self.confidence)
        choice(self.evidence, "evidence", EVIDENCE)

    @property
    def reached(self) -> float:
        """The width of the interval; with one-sided evidence twice the distance of the limit from the share seen."""
        draws = max(self.draws, 1)
        if self.evidence == "attack only":
            return 2 * (self.high - self.not_broken / draws)
        if self.evidence == "proof only":
            return 2 * (self.proven / draws - self.low)
        return self.high - self.low

    @property
    def done(self) -> bool:
        """Whether the interval is as narrow as asked."""
        return self.draws > 0 and self.reached <= self.width

    @property
    def hopeless(self) -> bool:
        """Whether the share of open answers alone is wider than asked: more inputs will hardly help."""
        both = self.evidence == "proof and attack"
        return both and self.draws > 0 and (self.not_broken - self.proven) / self.draws > self.width

    def add(self, lower: Any, upper: Any, correct: Any = None) -> Watch:
        """The guarantee after more inputs, in the order in which they were drawn."""
        low, high = interval_columns(lower, upper)
        right = np.ones(low.size) if correct is None else column(correct, "correct", low.size)
        proven = (right == 1) & (np.where(np.isnan(low), 0.0, low) >= self.eps)
        alive = (right == 1) & (proven | np.isnan(high) | (high > self.eps))
        return self.count(proven, alive)

    def count(self, proven: Any, not_broken: Any) -> Watch:
        """The guarantee after more answers: for each input, was robustness proven, and was no witness found?"""
        wins, alive = (column(values, "answers") for values in (proven, not_broken))
        if wins.size != alive.size or np.any(wins > alive):
            raise InputError("answers: expected one pair per input, and nothing both proven and broken")
        draws = self.draws + np.arange(1, wins.size + 1)
        wins, alive = self.proven + np.cumsum(wins), self.not_broken + np.cumsum(alive)
        side = 1.0 - level(self.confidence) / 2
        low = running_lower(wins, draws, side).max(initial=self.low)
        high = running_upper(alive, draws, side).min(initial=self.high)
        return replace(
            self,
            draws=self.draws + wins.size,
            proven=int(wins[-1]) if wins.size else self.proven,
            not_broken=int(alive[-1]) if alive.size else self.not_broken,
            low=float(low),
            high=float(high),
        )

    def sentence(self) -> str:
        """The sentence that may be quoted, whenever one stops."""
        said = claim(self.low, self.high, self.evidence)
        who = f"unseen inputs {self.about}".rstrip()
        return (
            f"With {self.confidence:.6g} confidence, valid at any stopping time, {said} of {who} are robust to "
            f"perturbations of size {self.eps:g}; n = {self.draws}. Assumes: the inputs are independent draws from the "
            "distribution the statement is about, used in the order drawn; budget, method and ε were fixed before the "
            f"radii were seen; {EVIDENCE[self.evidence]}; {DEFINITIONS['all']}."
        )


@dataclass(frozen=True)
class Look:
    """One planned look at the whole curve: after n inputs the band has this half-width."""

    n: int
    half_width: float


def looks(half_width: Any, confidence: float = 0.95, start: int = 50) -> tuple[Look, ...]:
    """A schedule of looks at the whole curve that hold together; the last one has at most the asked half-width.

    The k-th look gets the share 6/(π²k²) of the error, and each looks at twice as many inputs as the one before.
    Stop at any look whose band is narrow enough where it matters.
    """
    goal = number(half_width, "half_width", low=0.0, high=0.5, strict=True)
    n, alpha, plan = whole(start, "start", low=1), level(confidence), []
    for k in range(1, 60):
        share = 6 / (math.pi * k) ** 2 * alpha
        width = dkw_half_width(n, 1.0 - share)
        plan.append(Look(n, width))
        if width <= goal:
            return tuple(plan)
        needed = math.ceil(math.log(2 / (6 / (math.pi * (k + 1)) ** 2 * alpha)) / (2 * goal**2))
        n = min(2 * n, max(needed, n + 1))
    raise InputError(f"half_width: expected a half-width that can be reached, got {half_width!r}")
