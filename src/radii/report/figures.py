"""Figures of distributions of radii; matplotlib is loaded on first use and no global setting is changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radii.errors import InputError
from radii.stats import Distribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without yellow: distinct for colour-blind readers on white paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
FORMATS = ("png", "svg", "pdf")


def new_figure(width: float = 7.0, height: float = 4.2) -> tuple[Figure, Axes]:
    """A figure and its axes, without touching pyplot's state or needing a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def robust_accuracy_curve(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    confidence: float | None = None,
    among: str = "all",
) -> Axes:
    """Axes with robust accuracy against ε: the proven curve, the not-broken curve, and the gap between them shaded.

    With `confidence`, the guarantee band for unseen inputs is drawn around both.
    """
    many = [distributions] if isinstance(distributions, Distribution) else list(distributions)
    if not many:
        raise InputError("robust_accuracy_curve: expected at least one distribution, got none")
    axes = ax if ax is not None else new_figure()[1]
    reach = max(_reach(dist, among) for dist in many)
    for position, dist in enumerate(many):
        _draw(axes, dist, PALETTE[position % len(PALETTE)], reach, among)
        if confidence is not None:
            _band(axes, dist, PALETTE[position % len(PALETTE)], reach, (confidence, among))
    axes.set_xlim(0, reach)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("perturbation size ε")
    axes.set_ylabel("robust accuracy" if among == "all" else "robust accuracy (correctly classified inputs)")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper right")
    return axes


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure; the format follows the file's ending."""
    target = Path(path)
    if target.suffix.lstrip(".") not in FORMATS:
        raise InputError(f"figure file: expected one of {', '.join('.' + f for f in FORMATS)}, got {target.name!r}")
    figure.savefig(target, dpi=160)
    return target


def _reach(dist: Distribution, among: str) -> float:
    """The ε up to which the curves are worth drawing."""
    ends = dist.ends(among)
    known = np.concatenate([ends.low, ends.high])
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.max()) * 1.05 if known.size else 1.0


def _draw(axes: Axes, dist: Distribution, colour: str, reach: float, among: str) -> None:
    knots = _knots(dist, among, reach)
    low, high = dist.robust_accuracy(knots, among)
    axes.fill_between(knots, low, high, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.step(knots, low, where="post", color=colour, linewidth=1.6, label=dist.name or "proven")
    axes.step(knots, high, where="post", color=colour, linewidth=0.8, linestyle="--")


def _band(axes: Axes, dist: Distribution, colour: str, reach: float, options: tuple[float, str]) -> None:
    confidence, among = options
    knots = _knots(dist, among, reach)
    low, high = dist.guarantee(confidence, among).at(knots)
    for limit in (low, high):
        axes.step(knots, limit, where="post", color=colour, linewidth=0.7, linestyle=":")


def _knots(dist: Distribution, among: str, reach: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    ends = dist.ends(among)
    values = np.concatenate([ends.low, np.nextafter(ends.low, np.inf), ends.high, [0.0, reach]])
    return np.unique(values[np.isfinite(values) & (values >= 0) & (values <= reach)])
