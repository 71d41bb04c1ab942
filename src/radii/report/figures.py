"""Figures of distributions of radii; matplotlib is loaded on first use and no global setting is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class Fooled:
    """An input beside its witness, as pictures: (height, width) or (channels, height, width) in [0, 1]."""

    title: str
    original: Any
    witness: Any
    label: str
    prediction: str
    epsilon: float


def fooled_grid(examples: Sequence[Fooled]) -> Figure:
    """A figure with one row an example: the input, the witness that fools the network, and what was changed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not examples:
        raise InputError("fooled_grid: expected at least one example, got none")
    figure = Figure(figsize=(5.6, 1.95 * len(examples)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(examples), 3, squeeze=False)
    for row, example in zip(grid, examples, strict=True):
        original, witness = _picture(example.original), _picture(example.witness)
        titles = (f"is {example.label}", f"taken for {example.prediction}", f"change, at most {example.epsilon:.4f}")
        scale = max(float(np.abs(witness - original).max()), 1e-12)
        change = 0.5 + (witness - original) / (2 * scale)
        for axes, picture, title in zip(row, (original, witness, change), titles, strict=True):
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(title, fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_ylabel(example.title, fontsize=9)
    return figure


def _picture(values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.asarray(values, dtype=np.float64)
    return np.moveaxis(array, 0, -1).squeeze() if array.ndim == 3 else array
