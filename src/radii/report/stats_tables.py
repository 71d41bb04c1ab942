"""The tables of `radii stats` beyond those of every report: comparisons, families, costs, and the views by name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from radii._check import choice
from radii.errors import InputError
from radii.report import tables
from radii.report.class_tables import classes
from radii.report.content import Content
from radii.report.tables import Table
from radii.stats.comparison import unique_ids
from radii.stats.correlation import consistency, correlations
from radii.stats.cost import cactus, contributions, par
from radii.stats.curves import crossings, stretches
from radii.stats.goodness_of_fit import goodness
from radii.stats.jair_tests import lognormal_ks
from radii.stats.networks import pairwise_tests, ranking
from radii.store import ASKED

VIEWS = {
    "summary": "shares, quality, outcomes, classes and comparisons",
    "compare": "ranks, tests, crossings, correlations, consistent inputs",
    "classes": "recall, fairness, one-to-one radii, KS matrices, risk",
    "fit": "which family the radii follow",
    "cost": "time, PAR scores, what each verifier adds",
}
EXTRA = tuple(name for name in VIEWS if name != "summary")  # what a report has only when it is asked for


def view(
    name: str,
    content: Content,
    eps: float,
    confidence: float,
    *,
    costs: Path | None = None,
    timeout: float | None = None,
) -> list[Table]:
    """The tables of one view; `costs` is for classes (a matrix in a file), `timeout` for cost (in seconds)."""
    if choice(name, "view", VIEWS) == "classes":
        return list(classes(content, eps, confidence, costs))
    if name == "cost":
        return list(cost(content, timeout))
    if name == "fit":
        return list(fit(content))
    return list({"summary": summary, "compare": compare}[name](content, eps, confidence))


def summary(content: Content, eps: float, confidence: float) -> Iterator[Table]:
    """Shares, the paper's quality measures, outcomes, classes and comparisons."""
    yield tables.shares(content, eps, confidence)
    yield tables.quality(content)
    if content.facts:
        yield tables.outcomes(content)
    yield tables.fairness(content, eps, confidence)
    yield tables.comparisons(content)


def compare(content: Content, eps: float, confidence: float) -> Iterator[Table]:
    """Ranks with their uncertainty, tests, crossings, correlations, and the inputs networks agree on."""
    dists = content.distributions
    if len(dists) < 2:
        raise InputError(f"radii stats compare: expected at least two networks, got {len(dists)}")
    yield Table(
        "Ranking by the area under the robust-accuracy curve",
        ("network", "area from", "to", "unseen from", "to (unseen)", "best rank", "worst rank"),
        tuple((r.name, *r.area, r.low, r.high, r.best_rank, r.worst_rank) for r in ranking(dists, None, confidence)),
        "Areas are shares of the largest known end. Ranks are those that remain possible for unseen inputs.",
    )
    tests = pairwise_tests(dists)
    yield Table(
        "Tests of every pair",
        ("network", "against", "decision", "p", "p at least", "p at most", "p after Holm", "p at most after Holm"),
        tuple(
            (t.a, t.b, t.test.decision(), t.test.p_value, t.test.p_low, t.test.p_high, t.holm_p_value, t.holm_p_high)
            for t in tests
        ),
        f"{tests[0].test.test}; decisions at 0.05, before Holm, hold wherever the radii lie in their intervals.",
    )
    crossed = [
        (a, b, a if cross.leader_before == "a" else b, cross.before, a if cross.leader_after == "a" else b, cross.after)
        for a, b in combinations(dists, 2)
        for cross in crossings(stretches(dists[a].ends(), dists[b].ends()))
    ]
    yield Table(
        "Crossings of curves",
        ("network", "against", "ahead up to", "ε", "ahead from", "ε (from)"),
        tuple(crossed),
        "In this sample, whatever the gaps hide." if crossed else "No two curves cross for sure in this sample.",
    )
    yield from _agreement(content, confidence)


def _agreement(content: Content, confidence: float) -> Iterator[Table]:
    """Correlations and consistent inputs; a note where the networks share no inputs."""
    dists = content.distributions
    ends = ("at least", "at most", "low", "high")
    heads = ("network", "against", "inputs", "correlation", *ends, "of lower ends", "remark")
    title = "Spearman's correlation of radii"
    try:
        found = correlations(dists, confidence)
        alike, unlike = consistency(dists, 5)
    except InputError as error:
        yield Table(title, heads, (), f"Not to be had: {error}.")
        return
    rows = tuple((c.a, c.b, c.n, c.value, c.lower, c.upper, c.low, c.high, c.lower_ends, c.reason) for c in found)
    note = (
        "Of the middles of the intervals, inputs both classify correctly; at least and at most: wherever the radii lie"
    )
    yield Table(title, heads, rows, f"{note}; low and high: the {confidence:g} interval for unseen inputs.")
    named = {"Inputs that networks rank most alike": alike, "Inputs that networks rank least alike": unlike}
    for name, some in named.items():
        ranks = tuple((one.id, one.mean_rank, one.spread) for one in some)
        note = "Rank 0 is the most fragile input, 1 the most robust."
        yield Table(name, ("input", "mean rank", "spread"), ranks, note)


def fit(content: Content) -> Iterator[Table]:
    """Which family the radii follow: sound tests on the intervals, and the paper's plain one."""
    rows: list[tuple[Any, ...]] = []
    plain: list[tuple[Any, ...]] = []
    for one in content.series:
        dist = one.dist
        if not dist.correct.any():
            rows.append((one.name, None, None, None, None, None, "no correctly classified input"))
            continue
        found = goodness(dist.ends("correct"))
        rows += [(one.name, f.family, f.aic, f.bic, f.distance, f.p_value, f.verdict()) for f in found.fits]
        rows += [(one.name, None, None, None, None, None, found.reason)] if not found.fits else []
        test = lognormal_ks(dist.lower[dist.correct])
        plain.append((one.name, test.statistic, test.p_value, test.verdict(), test.reason))
    yield Table(
        "Families, likelihood on the intervals",
        ("network", "family", "AIC", "BIC", "distance", "p", "verdict"),
        tuple(rows),
        "Parametric bootstrap of the fitted family; best AIC first. Not rejected does not mean that it is so.",
    )
    yield Table(
        "Log-normality as in the paper",
        ("network", "KS statistic", "p", "verdict", "reason"),
        tuple(plain),
        "Plain KS on lower ends: ignores gaps, ties and that the parameters were fitted.",
    )


def cost(content: Content, timeout: float | None = None) -> Iterator[Table]:
    """Time, PAR scores, and what each verifier adds to the others."""
    rows = []
    for one in content.series:
        dist = one.dist.select(one.dist.correct) if one.dist.correct.any() else one.dist
        done = np.isin(dist.status, ("closed", "robust"))
        for kind, seconds in (("CPU", dist.cpu_seconds), ("wall", dist.wall_seconds)):
            if seconds is None or not np.isfinite(seconds).any():
                continue
            limit = timeout or float(np.nanmax(seconds)) or 1.0
            plot = cactus(seconds, done)
            half = float(np.median(plot.seconds)) if plot.seconds.size else None
            numbers = (len(dist), int(done.sum()), half, float(np.nansum(seconds)), limit)
            rows.append((one.name, kind, *numbers, par(seconds, done, timeout=limit)))
    yield Table(
        "Cost of closed radii",
        ("network", "time", "inputs", "closed", "median s", "total s", "time-out s", "PAR2"),
        tuple(rows),
        "Correctly classified inputs. PAR2 counts what was not closed within the time-out twice the time-out.",
    )
    yield _portfolio(content, timeout)


def _portfolio(content: Content, timeout: float | None) -> Table:
    """What each verifier adds on networks and inputs that several were asked about."""
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in content.series:
        key = tuple(str(one.question.get(name)) for name in ASKED)
        name = " ".join(str(one.question.get(part, "")) for part in ("search", "verifier")).strip()
        if one.dist.cpu_seconds is not None and one.dist.ids is not None:
            groups.setdefault(key, {}).setdefault(name, one.dist)
    rows = []
    for key, dists in groups.items():
        if len(dists) < 2:
            continue
        ids = [set(unique_ids(dist, name).tolist()) for name, dist in dists.items()]
        common = sorted(set.intersection(*ids))
        if not common:
            continue
        seconds, solved = {}, {}
        for name, dist in dists.items():
            place = {one: k for k, one in enumerate(np.asarray(dist.ids).tolist())}
            part = dist.select([place[one] for one in common])
            seconds[name], solved[name] = part.cpu_seconds, np.isin(part.status, ("closed", "robust"))
        limit = timeout or float(max(np.nanmax(times) for times in seconds.values())) or 1.0
        found = contributions(seconds, solved, timeout=limit)
        rows += [(key[0], c.name, c.solved, c.marginal, c.shapley, c.par, c.par_loss) for c in found]
    heads = ("network", "verifier", "solved", "only it", "Shapley", "PAR2", "PAR2 lost without it")
    note = "Of verifiers run side by side, CPU time." if rows else "Needs a network measured by two verifiers or more."
    return Table("What each verifier adds", heads, tuple(rows), note)
