"""Measures of properties over the size of the ball: one panel per property, as Figures 2–5 of Casadio et al. (2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from radii.report.style import PALETTE, blank, legend, plain, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (("security", "--", "security"), ("accuracy", ":", "accuracy"))


def measure_curves(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Satisfaction as a band from proven to not refuted, security and accuracy as lines; a colour per network.

    A row has a classifier, a property, an epsilon and the fields of `Measured`.
    """
    panels = list(dict.fromkeys(str(row["property"]) for row in rows))
    networks = list(dict.fromkeys(str(row["classifier"]) for row in rows))
    figure = blank(4.6 * len(panels), 3.6)
    for axes, name in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for position, network in enumerate(networks):
            mine = [r for r in rows if r["property"] == name and r["classifier"] == network]
            mine.sort(key=lambda r: float(r["epsilon"]))
            color, x = PALETTE[position % len(PALETTE)], [r["epsilon"] for r in mine]
            low, high = [r["proven"] for r in mine], [r["not_refuted"] for r in mine]
            axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            axes.plot(x, low, color=color, marker="o", markersize=3, label=plain(network))
            for field, style, _ in LINES:
                axes.plot(x, [r[field] for r in mine], color=color, linestyle=style, linewidth=1)
        axes.set_ylim(-0.03, 1.03)
        axes.set_title(plain(name), fontsize=9)
        tidy(axes, "ε", "share: satisfied —, secure --, points ···")
        legend(axes)
    return figure
