"""The pages of a PDF: one of facts, then one per figure that the data allow."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import InputError
from radii.report import figures, tables
from radii.report.content import Content, Series, opened
from radii.report.page import Options, banner
from radii.report.payload import fragile_first
from radii.report.png import Originals
from radii.report.reach_curves import class_reaches, reach_curve
from radii.report.reach_series import sections
from radii.report.style import blank, plain
from radii.stats import Distribution
from radii.stats.classes import nearest_targets
from radii.stats.correlation import correlations
from radii.store import RadiusRecord, Selection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[], Any]
MOST = 21  # networks in one figure: more lines cannot be told apart
EACH = 4  # networks that get pages of their own
_COLOURS = {"bad": "#b3140c", "warn": "#7a4a00", "good": "#0b5d2a"}
_LINES = 84  # lines of facts on a page


def plates(content: Content, options: Options) -> Iterator[Figure]:
    """Every page; a figure that the data do not allow is left out."""
    yield from _facts(content, options)
    yield from (figure for game in content.games for _, figure in game.figures)
    for draw in _figures(content, options):
        try:
            drawn = draw()
        except InputError:  # too few radii for this figure; the tables say what there is
            continue
        yield drawn if hasattr(drawn, "savefig") else drawn.get_figure(root=True)


def _facts(content: Content, options: Options) -> Iterator[Figure]:
    """The first pages: alarms, what was measured, where."""
    warning = banner(content)
    head = _wrapped([warning.headline, *(f"- {line}" for line in warning.lines)], 90)
    told = [f"{what}: {value}" for what, value in tables.provenance(content).rows]
    if not content.empty:
        eps = tables.default_eps(content) if options.eps is None else options.eps
        told += ["", f"Robust accuracy at ε = {eps:g} (proven to not broken), inputs, accuracy"]
        for one in content.series:
            share = tables.span(*one.dist.robust_accuracy(eps), "{:.1%}")
            told.append(f"{one.name}: {share}, {len(one.dist)}, {one.dist.correct.mean():.1%}")
    lines = [*(("head", line) for line in head), ("", ""), *(("", line) for line in _wrapped(told, 112))]
    for start in range(0, len(lines), _LINES):
        part = lines[start : start + _LINES]
        height = 1.1 + 0.126 * len(part)  # inches
        figure = blank(8.27, height)
        figure.text(0.08, 1 - 0.5 / height, plain(content.title), fontsize=16, weight="bold")
        for place, (kind, line) in enumerate(part):
            style: dict[str, Any] = {"color": _COLOURS[warning.level], "weight": "bold"} if kind else {}
            figure.text(0.08, 1 - (0.75 + 0.126 * place) / height, plain(line), fontsize=7.5, va="top", **style)
        yield figure


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [piece for line in lines for piece in textwrap.wrap(line, width) or [""]]


def _figures(content: Content, options: Options) -> Iterator[Draw]:
    """What to draw, in the order of the report."""
    for together in sections(content.reaches).values():
        reached = [one.dist for one in together[:MOST]]
        yield partial(reach_curve, reached, confidence=options.confidence)
        yield from (partial(class_reaches, dist) for dist in reached[:EACH])
    dists = [one.dist for one in content.series]
    if not dists:
        return
    style = figures.looks(dist.name for dist in dists)
    eps = tables.default_eps(content) if options.eps is None else options.eps
    some = dists[:MOST]
    yield lambda: figures.robust_accuracy_curve(some, reference=[eps], looks=style)
    for start in range(0, min(len(some), 12), EACH):
        part = some[start : start + EACH]
        yield partial(figures.ecdf, part, confidence=options.confidence, looks=style)
    yield lambda: _boxes(content.series[:MOST], style)
    yield lambda: figures.network_boxes(some, end="gap", looks=style)
    yield lambda: figures.instance_scatter(some[:3], looks=style)
    yield lambda: figures.time_cdf(some, looks=style)
    yield lambda: figures.histogram(some[:EACH], looks=style)
    if len({float(dist.correct.mean()) for dist in some}) > 1:
        yield lambda: figures.trade_off(some, eps, looks=style)
    yield lambda: figures.guarantee_convergence(some[0], eps, confidence=options.confidence)
    if len(some) > 1:
        yield lambda: figures.spearman_heat_map(correlations({dist.name: dist for dist in some}))
        yield lambda: figures.paired_scatter(some[0], some[1])
    for one in content.series[:EACH]:
        yield from _pages(one)
    yield lambda: figures.fooled_grid(_fooled(content, Originals(options.data)))


def _pages(one: Series) -> Iterator[Draw]:
    """The figures of one network alone."""
    dist, pairs = one.dist, one.pairs
    yield lambda: figures.class_boxes(dist)
    if pairs is not None:
        yield lambda: figures.target_boxes(pairs)
        yield lambda: figures.target_heat_map(nearest_targets(pairs), class_names=pairs.class_names)
    yield lambda: figures.lognormal_fit(dist)
    yield lambda: figures.qq_plot(dist)


def _boxes(series: Sequence[Series], style: figures.Looks) -> Any:
    """Boxes of train and test beside each other where the data have both, else one box per network."""
    sides: dict[str, dict[str, Distribution]] = {}
    for one in series:
        sides.setdefault(str(one.question["split"]), {})[str(one.question["classifier"])] = one.dist
    if {"train", "test"} == set(sides) and sum(map(len, sides.values())) == len(series):
        return figures.split_boxes(sides["train"], sides["test"])
    return figures.network_boxes([one.dist for one in series], looks=style)


def _fooled(content: Content, originals: Originals, count: int = 5) -> list[figures.Fooled]:
    """The most fragile inputs whose originals are at hand, each network's in turn."""
    found: list[tuple[float, figures.Fooled]] = []
    for one in content.series:
        if one.source == "":
            continue
        places = fragile_first(one.dist)[:count]
        keys = tuple(str(key) for key in one.rows["key"].to_numpy()[places])
        with opened(one.source) as store:
            items = store.examine(Selection(key=keys), evidence=False)
            for record in (item.record for item in items if isinstance(item.record, RadiusRecord)):
                witness, original = record.radius.witness, originals.get(record.unit.instance)
                if witness is None or original is None or record.radius.misclassified:
                    continue
                if witness.x.size != original.size:
                    continue
                label, taken = (tables.class_name(content, k) for k in (record.unit.instance.label, witness.prediction))
                seen = np.asarray(witness.x).reshape(original.shape)
                name = one.name if len(one.name) <= 20 else one.name[:18] + "…"
                shown = figures.Fooled(name, original, seen, label, taken, witness.distance)
                found.append((witness.distance, shown))
    return [shown for _, shown in sorted(found, key=lambda pair: pair[0])[:count]]
