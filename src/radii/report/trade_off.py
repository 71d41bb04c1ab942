"""Accuracy against global robustness of many networks: one dot per network, boxes per hyper-parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.report.style import PALETTE, blank, plain, tidy
from radii.stats.correlation import rank_correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {
    "robust": ("R(g): share of inputs that keep their probabilities", "robust_low", "robust_high"),
    "change": ("D(ḡ): mean largest change of a probability", "change_low", "change_high"),
}


def trade_off(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], confidence: float = 0.95) -> Figure:
    """A figure with accuracy against R(g) and D(ḡ) and, below, boxes of both for every value of each key.

    A row is a network: its values at the keys, and the fields of `GlobalRobustness`. Bars are the guarantees.
    """
    columns = max(2, len(keys))
    figure = blank(5.2 * columns, 11.5)
    grid = figure.subplots(3, columns, squeeze=False)
    for spare in grid.flat:
        spare.set_axis_off()
    for place, (name, (label, low, high)) in enumerate(MEASURES.items()):
        axes, x, y = grid[0][place], _column(rows, "accuracy"), middles(rows, name)
        axes.set_axis_on()
        bars = np.abs(np.stack([_column(rows, low), _column(rows, high)]) - y)
        axes.errorbar(x, y, yerr=bars, fmt="o", color=PALETTE[place], ecolor=PALETTE[place] + "55", markersize=4)
        tidy(axes, "accuracy on the test set", label)
        axes.set_title(sentence(x, y, confidence), fontsize=9)
        for axes, key in zip(grid[1 + place], keys):
            axes.set_axis_on()
            values = list(dict.fromkeys(str(row[key]) for row in rows))
            groups = [[one for one in rows if str(one[key]) == value] for value in values]
            axes.boxplot([middles(group, name) for group in groups], tick_labels=[plain(value) for value in values])
            axes.tick_params(axis="x", labelrotation=30 if max(map(len, values)) > 8 else 0)
            tidy(axes, key, label.split(":")[0], grid="y")
    return figure


def middles(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """The middle of what is proven and what is not broken, of R(g) or D(ḡ), per network."""
    low, high = ("proven", "not_broken") if name == "robust" else ("witnessed", "bound")
    return (_column(rows, low) + _column(rows, high)) / 2


def sentence(x: Any, y: Any, confidence: float = 0.95) -> str:
    """Spearman's correlation with its interval, in words."""
    found = rank_correlation(x, y, confidence)
    if found is None:
        return "no correlation: fewer than four networks, or all alike"
    value, low, high = found
    return f"Spearman {value:+.2f} [{low:+.2f}, {high:+.2f}], {len(x)} networks, {100 * confidence:g} % interval"


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return np.array([row[name] for row in rows], dtype=np.float64)
