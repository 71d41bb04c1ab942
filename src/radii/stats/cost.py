"""What the answers cost: cactus data, penalised averages (PAR), and what each verifier adds (Shapley 1953)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import number
from radii.errors import InputError
from radii.stats._arrays import BoolArray, FloatArray, booleans, column


@dataclass(frozen=True)
class Cactus:
    """Solved instances by time: after `seconds[k]` each, `solved[k]` of `n` were solved (and `total[k]` spent)."""

    seconds: FloatArray
    solved: FloatArray
    total: FloatArray
    n: int

    def share(self, budget: Any) -> float:
        """The share of instances solved within a budget of seconds each."""
        return float(np.searchsorted(self.seconds, number(budget, "budget", low=0.0), side="right") / self.n)


def cactus(seconds: Any, solved: Any = None) -> Cactus:
    """The cactus (and cumulative-distribution) data of one verifier; unsolved instances count in n only."""
    times, done = _runs(seconds, solved)
    ordered = np.sort(times[done])
    return Cactus(ordered, np.arange(1.0, ordered.size + 1), np.cumsum(ordered), times.size)


def par(seconds: Any, solved: Any = None, *, timeout: Any, factor: float = 2.0) -> float:
    """The penalised average running time: an instance not solved within `timeout` costs `factor` × `timeout`."""
    limit = number(timeout, "timeout", low=0.0, strict=True)
    penalty = limit * number(factor, "factor", low=1.0)
    times, done = _runs(seconds, solved)
    return float(np.where(done & (times <= limit), times, penalty).mean())


@dataclass(frozen=True)
class Contribution:
    """One verifier in a portfolio that runs all of them side by side and takes the first answer.

    `marginal` is how many instances only it solves, `par_loss` how much the portfolio's PAR score worsens without it,
    `shapley` its average marginal number of solved instances over all orders.
    """

    name: str
    solved: int
    par: float
    marginal: int
    par_loss: float
    shapley: float


def contributions(
    seconds: Mapping[str, Any], solved: Mapping[str, Any] | None = None, *, timeout: Any, factor: float = 2.0
) -> tuple[Contribution, ...]:
    """What each verifier adds, from the same instances in the same order; best marginal contribution first."""
    limit = number(timeout, "timeout", low=0.0, strict=True)
    penalty = limit * number(factor, "factor", low=1.0)
    names = list(seconds)
    if not names:
        raise InputError("contributions: expected at least one verifier, got none")
    rows = []
    for name in names:
        times, done = _runs(seconds[name], None if solved is None else solved[name])
        rows.append(np.where(done & (times <= limit), times, penalty))
    if len({row.size for row in rows}) != 1:
        raise InputError("contributions: expected the same instances for every verifier, got different numbers")
    scores = np.array(rows)
    within = scores <= limit
    whole_par = scores.min(axis=0).mean()
    result = []
    for k, name in enumerate(names):
        rest = np.delete(scores, k, axis=0)
        without = rest.min(axis=0) if len(names) > 1 else np.full(scores.shape[1], penalty)
        helpers = within.sum(axis=0)
        result.append(
            Contribution(
                str(name),
                int(within[k].sum()),
                float(scores[k].mean()),
                int(np.sum(within[k] & (helpers == 1))),
                float(without.mean() - whole_par),
                float(np.sum(within[k] / np.maximum(helpers, 1))),
            )
        )
    return tuple(sorted(result, key=lambda one: (-one.marginal, -one.par_loss)))


def _runs(seconds: Any, solved: Any) -> tuple[FloatArray, BoolArray]:
    """Times and whether each instance was solved; a missing or infinite time means that it was not."""
    times = column(seconds, "seconds")
    if times.size == 0 or np.any(times < 0):
        raise InputError("seconds: expected at least one time, none below 0")
    finite = np.isfinite(times)
    done = finite if solved is None else booleans(solved, "solved", times.size) & finite
    return np.where(finite, times, np.inf), done
