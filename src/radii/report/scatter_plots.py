"""One dot per input, or one dot per network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.report.style import GREY, Look, Looks, axes_or_new, legend, look, looks_of, many, plain, tidy
from radii.stats import Distribution
from radii.stats.comparison import shared_rows
from radii.stats.correlation import middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def instance_scatter(
    distributions: Distribution | Sequence[Distribution], ax: Axes | None = None, *, looks: Looks | None = None
) -> Axes:
    """Axes with the interval of every input, ordered by the first network's radii; misclassified inputs are crosses.

    A triangle points up where the upper end is absent, down where the lower one is. Inputs are matched by ids
    where all networks have them.
    """
    dists = many(distributions, "instance_scatter")
    axes = axes_or_new(ax)
    order = np.argsort(middle(dists[0].ends()), kind="stable")
    first = dists[0].ids
    places = {} if first is None else {str(first[row]): place for place, row in enumerate(order)}
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        x = np.array([places.get(str(key), np.nan) for key in (() if dist.ids is None else dist.ids)])
        if not np.isfinite(x).any():  # no input in common: in the order of its own radii
            x = np.empty(len(dist))
            x[np.argsort(middle(dist.ends()), kind="stable")] = np.arange(len(dist))
        _dots(axes, x, dist, style)
    for marker, label, rows in (
        ("x", "misclassified", [~d.correct for d in dists]),
        ("^", "no upper end", [d.correct & np.isnan(d.upper) & np.isfinite(d.lower) for d in dists]),
        ("v", "no lower end", [d.correct & np.isnan(d.lower) & np.isfinite(d.upper) for d in dists]),
    ):
        if any(mask.any() for mask in rows):
            axes.plot([], [], marker, color=GREY, linestyle="", markersize=5, fillstyle="none", label=label)
    axes.set_ylim(bottom=0)
    tidy(axes, "inputs, by radius" + (" on the first network" if len(dists) > 1 else ""), "radius ε")
    legend(axes)
    return axes


def _dots(axes: Axes, x: npt.NDArray[np.float64], dist: Distribution, style: Look) -> None:
    """One network's inputs: a dot at the proven radius with its gap above; absent ends are shown as absent."""
    low, high = np.isfinite(dist.lower), np.isfinite(dist.upper)
    both = dist.correct & low & high
    axes.vlines(x[both], dist.lower[both], dist.upper[both], color=style.colour, linewidth=1, alpha=0.6)
    label = plain(dist.name or "proven")
    axes.plot(x[both], dist.lower[both], style.marker, color=style.colour, markersize=3, label=label)
    hollow: dict[str, Any] = {"linestyle": "", "color": style.colour, "markersize": 5, "fillstyle": "none"}
    for marker, rows, ends in (("^", low & ~high, dist.lower), ("v", high & ~low, dist.upper)):
        rows = rows & dist.correct
        axes.plot(x[rows], ends[rows], marker=marker, **hollow)
    wrong = ~dist.correct
    axes.plot(x[wrong], np.zeros(int(wrong.sum())), "x", color=style.colour, markersize=5, clip_on=False)


def paired_scatter(a: Distribution, b: Distribution, ax: Axes | None = None) -> Axes:
    """Axes with one dot per input that both networks hold: its proven radius on each, with the gaps as bars."""
    axes = axes_or_new(ax, 4.6, 4.4)
    rows_a, rows_b = shared_rows(a, b)
    x, y = np.nan_to_num(a.lower[rows_a]), np.nan_to_num(b.lower[rows_b])
    right = a.correct[rows_a] & b.correct[rows_b]
    gaps = [np.nan_to_num(d.upper[rows] - v) for d, rows, v in ((a, rows_a, x), (b, rows_b, y))]
    none = np.zeros_like(x)
    bars: dict[str, Any] = {"xerr": [none[right], gaps[0][right]], "yerr": [none[right], gaps[1][right]]}
    style = look(0)
    axes.errorbar(
        x[right], y[right], fmt="o", markersize=3, elinewidth=0.6, alpha=0.7, color=style.colour, label="inputs", **bars
    )
    if (~right).any():
        axes.plot(x[~right], y[~right], "x", color=look(1).colour, markersize=5, label="misclassified by one or both")
    top = max(float(np.max(x + gaps[0])), float(np.max(y + gaps[1])), 1e-9) * 1.05
    axes.plot([0, top], [0, top], color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xlim(-0.02 * top, top)
    axes.set_ylim(-0.02 * top, top)
    tidy(axes, f"radius on {plain(a.name or 'A')}", f"radius on {plain(b.name or 'B')}")
    # On the emptier side of the diagonal: "best" does not see the bars.
    legend(axes, loc="lower right" if (y > x).sum() >= (x > y).sum() else "upper left")
    return axes


def trade_off(
    distributions: Sequence[Distribution], eps: float, ax: Axes | None = None, *, looks: Looks | None = None
) -> Axes:
    """Axes with accuracy against robust accuracy at ε, one bar from proven to not broken a network."""
    dists = many(distributions, "trade_off")
    if eps < 0:
        raise InputError(f"trade_off: expected an ε of at least 0, got {eps!r}")
    axes = axes_or_new(ax, 6.0, 4.2)
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        accuracy = float(dist.correct.mean())
        low, high = dist.robust_accuracy(eps)
        axes.plot([accuracy, accuracy], [low, high], color=style.colour, linewidth=2, alpha=0.5)
        label = plain(dist.name or "network")
        axes.plot(accuracy, low, style.marker, color=style.colour, markersize=7, label=label)
        axes.plot(accuracy, high, "_", color=style.colour, markersize=9)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(right=min(axes.get_xlim()[1], 1.01))
    tidy(axes, "accuracy", f"robust accuracy at ε = {eps:g}")
    legend(axes)
    return axes
