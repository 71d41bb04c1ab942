"""Limits of the mean of a bounded quantity by betting: valid for every sample size and every shape.

For a candidate mean m a gambler bets on values above m; if the true mean is at most m the capital is not expected to
grow, so it exceeds 1/α with probability at most α (Markov). Bets adapt to the spread seen so far. Waudby-Smith and
Ramdas (2024), "Estimating means of bounded random variables by betting".
"""

from __future__ import annotations

import numpy as np

from radii.stats._arrays import FloatArray

_BOLD = 0.75  # the largest share of the capital that one bet may lose


def mean_lower(values: FloatArray, alpha: float) -> float:
    """A lower limit for the mean of independent values in [0, 1] that is too high with probability at most α."""
    rows, bets = _game(values, alpha)
    low, high = 0.0, float(values.mean())
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _won(rows, bets, middle, alpha) else (low, middle)
    return low


def mean_upper(values: FloatArray, alpha: float) -> float:
    """The upper limit, the mirror image of `mean_lower`."""
    return 1.0 - mean_lower(1.0 - values, alpha)


def mean_above(values: FloatArray, mean: float, alpha: float) -> bool:
    """Whether the mean of independent values in [0, 1] is shown to be above `mean`, at level α."""
    return _won(*_game(values, alpha), mean, alpha)


def _game(values: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """The values in a few orders, on which the result should not hang, and the bets before each is seen."""
    n = values.size
    orders = max(2, min(8, 20_000 // n))
    rows = np.random.default_rng(0).permuted(np.tile(values, (orders, 1)), axis=1)
    count = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(rows, axis=1)) / (count + 1)
    variance = (0.25 + np.cumsum((rows - mean) ** 2, axis=1)) / (count + 1)
    before = np.concatenate([np.full((orders, 1), 0.25), variance[:, :-1]], axis=1)
    return rows, np.sqrt(2 * np.log(1 / alpha) / (n * before))


def _won(rows: FloatArray, bets: FloatArray, mean: float, alpha: float) -> bool:
    """Whether the capital of the bets against this mean reaches 1/α, on average over the orders."""
    if mean <= 0.0:
        return False
    stakes = np.minimum(bets, _BOLD / mean)
    capital = np.log1p(stakes * (rows - mean)).sum(axis=1)
    top = float(capital.max())
    return bool(top + np.log(np.mean(np.exp(capital - top))) >= np.log(1 / alpha))
