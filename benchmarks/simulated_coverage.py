"""Simulated coverage: how often each 95 % interval or band holds the truth that the radii were drawn from.

Every case is a function (rng, n, k) -> {what: did it hold?}, like those of `simulations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy import stats
from simulations import (
    COARSE,
    EXACT,
    FINE,
    GAPS,
    LOG_MEAN,
    LOG_STD,
    TIED,
    TIMEOUTS,
    Case,
    Measuring,
    Rng,
    _twins,
    with_wrong,
)

from radii.stats import Distribution
from radii.stats._arrays import Ends
from radii.stats.classes import robust_recall
from radii.stats.confidence_intervals import mean_interval
from radii.stats.correlation import correlations
from radii.stats.fairness import disparity, gini, normalised_gini, worst_class
from radii.stats.guarantee import guarantee
from radii.stats.networks import ranking
from radii.stats.quantiles import quantile
from radii.stats.risk import cost_risk
from radii.stats.sequential import looks, running_lower

CAP, POINT, CLASSES = 0.2, 0.04, 4
KNOTS = np.arange(0, 61) * 0.005
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [8.0, 3.0, 0.0]])


def curve(eps: np.ndarray | float, wrong: float, location: float = LOG_MEAN, spread: float = LOG_STD) -> np.ndarray:
    """The true share of robust inputs at each ε."""
    logs = np.log(np.maximum(eps, 1e-300))
    return np.asarray((1 - wrong) * stats.norm.sf((logs - location) / spread))


def capped_mean(location: float, spread: float) -> float:
    """The true mean of a log-normal radius that counts up to CAP, as a share of CAP."""
    z = (np.log(CAP) - location) / spread
    below = np.exp(location + spread**2 / 2) * stats.norm.cdf(z - spread)
    return float(below / CAP + stats.norm.sf(z))


def one_network(how: Measuring) -> Case:
    """One network: the band, one ε, quantiles, means, and the same for a finite population."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        ends = how.ends(rng.lognormal(LOG_MEAN, LOG_STD, n), rng)
        promise = guarantee(ends)
        low, high = promise.at(KNOTS)
        truth = curve(KNOTS, how.wrong)
        held = {"band": bool(np.all((low <= truth) & (truth <= high)))}
        share = float(curve(POINT, how.wrong))
        for method in ("clopper-pearson", "chernoff", "hoeffding", "bernstein"):
            a, b = promise.at_one(POINT, method)
            held[f"one ε, {method}"] = a <= share <= b
        for q in (0.05, 0.5, 0.9):
            found = quantile(ends, q)
            place = (q - how.wrong) / (1 - how.wrong)
            radius = 0.0 if place <= 0 else float(np.exp(LOG_MEAN + LOG_STD * stats.norm.ppf(place)))
            held[f"quantile {q:g}"] = found.low <= radius and (found.high is None or radius <= found.high)
        values = [np.minimum(end, CAP) / CAP for end in ends.radii()]
        mean = (1 - how.wrong) * capped_mean(LOG_MEAN, LOG_STD)
        for method in ("betting", "hoeffding", "bernstein"):
            a, b = mean_interval(*values, method=method)
            held[f"mean, {method}"] = a <= mean <= b
        return held | _finite(how, rng, n)

    return case


def _finite(how: Measuring, rng: Rng, n: int) -> dict[str, bool]:
    size = 3 * n
    truth = rng.lognormal(LOG_MEAN, LOG_STD, size)
    wrong = rng.random(size) < how.wrong
    drawn = rng.permutation(size)[:n]
    plain = Measuring(how.name, how.step, how.gaps, how.informative).ends(truth[drawn], rng)
    ends = Ends(np.where(wrong[drawn], -np.inf, plain.low), np.where(wrong[drawn], 0.0, plain.high))
    promise = guarantee(ends, population=size)
    low, high = promise.at(KNOTS)
    shares = np.mean((truth[:, None] > KNOTS) & ~wrong[:, None], axis=0)
    a, b = promise.at_one(POINT)
    share = float(np.mean((truth > POINT) & ~wrong))
    slack = 1e-12
    return {
        "finite population, band": bool(np.all((low <= shares + slack) & (shares <= high + slack))),
        "finite population, one ε": a <= share + slack and share <= b + slack,
    }


def several_classes(how: Measuring, spread: float = LOG_STD, step: float = 0.25) -> Case:
    """Four classes with n inputs each: everything per class, and the fairness measures."""
    places = LOG_MEAN + step * np.arange(CLASSES)
    areas = [(1 - how.wrong) * capped_mean(place, spread) for place in places]
    means = [capped_mean(place, spread) for place in places]
    shares = np.array([curve(KNOTS, how.wrong, place, spread) for place in places])
    at_point = np.array([float(curve(POINT, how.wrong, place, spread)) for place in places])

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        label = np.repeat(np.arange(CLASSES), n)
        ends = how.ends(rng.lognormal(places[label], spread), rng)
        dist = labelled(ends, label)
        bands = [band.at(KNOTS) for band in dist.class_guarantees().values()]
        recall = robust_recall(dist, POINT)
        worst = worst_class(dist, KNOTS)
        least = shares.min(axis=0)
        gap = disparity(dist, POINT)
        held = {
            "bands of all classes": all(np.all((a <= s) & (s <= b)) for (a, b), s in zip(bands, shares)),
            "recall of all classes": all(row.low <= s <= row.high for row, s in zip(recall, at_point)),
            "worst-class curve": bool(np.all((worst.low <= least) & (least <= worst.high))),
            "disparity index": gap.low <= np.ptp(at_point) <= gap.high,
        }
        for of, truth in (("area", areas), ("mean radius", means)):
            for method in ("t", "betting"):
                found = gini(dist, of, CAP, method=method)
                held[f"Gini of {of}, {method}"] = found.low <= normalised_gini(truth) <= found.high
        return held

    return case


def labelled(ends: Ends, label: np.ndarray, **more: object) -> Distribution:
    """The distribution of simulated ends with their labels."""
    right = np.isfinite(ends.low)
    low, high = np.where(right, ends.low, np.nan), np.where(right & np.isfinite(ends.high), ends.high, np.nan)
    return Distribution.from_arrays(lower=low, upper=high, label=label, correct=right, **more)  # type: ignore[arg-type]


def _targets(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and the radius towards every class (none towards its own)."""
    label = rng.integers(0, len(COSTS), n)
    radius = rng.lognormal(LOG_MEAN + 0.2 * np.arange(len(COSTS)), LOG_STD, (n, len(COSTS)))
    radius[np.arange(n), label] = np.inf
    return label, radius


@lru_cache
def _true_risk() -> float:
    label, radius = _targets(np.random.default_rng(0), 2_000_000)
    return float(np.where(radius <= POINT, COSTS[label], 0.0).max(axis=1).mean())


def risk(how: Measuring) -> Case:
    """Cost-weighted risk from radii towards every target, and from untargeted radii only."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        label, radius = _targets(rng, n)
        rows, targets = np.nonzero(np.isfinite(radius))
        pairs = how.ends(radius[rows, targets], rng)
        every = labelled(pairs, label[rows], target=targets, ids=rows)
        any_class = labelled(how.ends(radius.min(axis=1), rng), label)
        truth = _true_risk()
        found = {
            "risk, every target": cost_risk(every, COSTS, POINT),
            "risk, untargeted": cost_risk(any_class, COSTS, POINT),
        }
        return {name: one.low <= truth <= one.high for name, one in found.items()}

    return case


def _half_alike(rng: Rng, n: int) -> list[np.ndarray]:
    """Radii of the same inputs on networks that agree on half of them and on the others not at all."""
    first, second = rng.lognormal(LOG_MEAN, LOG_STD, (2, n))
    return [first, np.where(rng.random(n) < 0.5, first, second)]


# Spearman's coefficient of the true radii; those of `_twins` are log-normal with a shared part, and it is 0.622
CORRELATED = {_twins: 6 / np.pi * np.arcsin(0.4**2 / (0.4**2 + 0.3**2) / 2), _half_alike: 0.5}


def two_networks(how: Measuring, draw: Callable[[Rng, int], list[np.ndarray]] = _twins) -> Case:
    """Two networks on the same inputs: Spearman's correlation of the true radii, areas of the ranking."""

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        nets = {str(i): labelled(how.ends(t, rng), np.zeros(n), ids=range(n)) for i, t in enumerate(draw(rng, n))}
        (found,) = correlations(nets)
        area = (1 - how.wrong) * capped_mean(LOG_MEAN, 0.5)
        first = next(row for row in ranking(nets, limit=CAP) if row.name == "0")
        held = found.low is None or (found.low <= CORRELATED[draw] <= found.high)  # type: ignore[operator]
        return {"correlation": held, "area of the ranking": first.low <= area <= first.high}

    return case


@lru_cache
def _limits(longest: int) -> np.ndarray:
    """The lower limit of a running guarantee after `draws` inputs, `wins` of them proven: a table of all of them."""
    draws, wins = np.tril_indices(longest + 1)
    table = np.zeros((longest + 1, longest + 1))
    table[draws, wins] = running_lower(wins, draws, 0.975)
    return table


def sequences(how: Measuring) -> Case:
    """Inputs one after the other: the limits at every time at once, at the stop, and a schedule of looks."""
    plan = looks(0.15, start=20)
    total = plan[-1].n
    draws = np.arange(1, total + 1)

    def case(rng: Rng, n: int, k: int) -> dict[str, bool]:
        ends = how.ends(rng.lognormal(LOG_MEAN, LOG_STD, total), rng)
        share, truth = float(curve(POINT, how.wrong)), curve(KNOTS, how.wrong)
        proven, alive = np.cumsum(ends.low >= POINT), np.cumsum(ends.high > POINT)
        low = np.maximum.accumulate(_limits(total)[draws, proven])
        high = np.minimum.accumulate(1 - _limits(total)[draws, draws - alive])
        stop = int(np.argmax(np.append((high - low <= 0.35)[:-1], True)))
        seen = [ends.take(np.arange(look.n)) for look in plan]
        bands = [
            (part.proven(KNOTS) - look.half_width, part.not_broken(KNOTS) + look.half_width)
            for part, look in zip(seen, plan)
        ]
        return {
            "every time at once": low[-1] <= share <= high[-1],
            "when narrow enough": low[stop] <= share <= high[stop],
            "looks at the curve": all(np.all((a <= truth) & (truth <= b)) for a, b in bands),
        }

    return case


def coverage() -> dict[str, Case]:
    """Every case by its name."""
    found: dict[str, Case] = {}
    for how in map(partial(with_wrong, share=0.1), (FINE, COARSE, TIED, GAPS, TIMEOUTS)):
        found[f"one network | {how.name}"] = one_network(how)
        found[f"classes | {how.name}"] = several_classes(how)
        found[f"two networks | {how.name}"] = two_networks(how)
        found[f"risk | {how.name}"] = risk(with_wrong(how, 0.0))
        found[f"sequence | {how.name}"] = sequences(how)
    for how in map(partial(with_wrong, share=0.1), (EXACT, FINE)):
        found[f"two networks | {how.name}, alike on half of the inputs"] = two_networks(how, _half_alike)
    found["two networks | exact"] = two_networks(with_wrong(EXACT, 0.1))
    skewed = Measuring("grid 0.002, skewed radii, 30 % misclassified", 0.002, wrong=0.3)
    found[f"classes | {skewed.name}"] = several_classes(skewed, spread=1.3, step=0.4)
    return found
