"""The curve of reaches: the share of inputs on the good side of γ, with its gap and the band for unseen inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.report.curves import draw_key, draw_limits, envelope
from radii.report.style import Looks, axes_or_new, legend, looks_of, plain, tidy
from radii.stats.reaches import ReachDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]


def reach_curve(
    distributions: ReachDistribution | Sequence[ReachDistribution],
    ax: Axes | None = None,
    *,
    confidence: float | None = None,
    among: str = "all",
    looks: Looks | None = None,
) -> Axes:
    """Axes with the share of inputs with reach ≤ γ (≥ γ for least values) against γ, the gap shaded.

    The solid line is proven, the dashed one not refuted; with `confidence` the band for unseen inputs is dotted.
    """
    dists = [distributions] if isinstance(distributions, ReachDistribution) else list(distributions)
    if not dists:
        raise InputError("reach_curve: expected at least one distribution, got none")
    axes = axes_or_new(ax)
    span = np.concatenate([_known(dist, among) for dist in dists])
    low, high = (float(span.min()), float(span.max())) if span.size else (0.0, 1.0)
    room = 0.05 * ((high - low) or abs(high) or 1.0)
    start, stop = (low - room if low < 0 or dists[0].least else min(0.0, low)), high + room
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        knots = _knots(dist, among, start, stop)
        shares = dist.share(knots, among)
        envelope(axes, knots, (shares.proven, shares.not_refuted), style, (plain(dist.name or "proven"), len(dists)))
        if confidence is not None:
            draw_limits(axes, knots, dist.guarantee(confidence, among).at(knots), style)
    draw_key(axes, "not refuted", confidence)
    axes.set_xlim(start, stop)
    axes.set_ylim(0, 1.02)
    titles = {dist.title for dist in dists}
    name = titles.pop() if len(titles) == 1 else "reach"
    tidy(axes, plain(f"γ: {name}"), f"share of inputs with reach {dists[0].good} γ")
    legend(axes, loc="lower left" if dists[0].least else "lower right")
    return axes


def class_reaches(dist: ReachDistribution, ax: Axes | None = None) -> Axes:
    """Axes with the median reach of every class as an interval: the proven end solid, the witnessed one hollow."""
    axes = axes_or_new(ax)
    parts = dist.by_class()
    names = dist.class_names
    for place, part in enumerate(parts.values()):
        low, high = part.quantile(0.5)
        ends = [end for end in (low, high) if end is not None]
        proven, shown = (low, high) if part.least else (high, low)
        if len(ends) == 2:
            axes.plot(ends, [place, place], color="C0", linewidth=2.0)
        if proven is not None:
            axes.plot(proven, place, "o", color="C0", label="proven" if place == 0 else None)
        if shown is not None:
            axes.plot(shown, place, "o", color="C0", markerfacecolor="white", label="witnessed" if place == 0 else None)
    labels = [plain(names[key]) if 0 <= key < len(names) else str(key) for key in parts]
    axes.set_yticks(range(len(parts)), [f"{name} ({len(part)})" for name, part in zip(labels, parts.values())])
    axes.invert_yaxis()
    tidy(axes, plain(f"median {dist.title}"), "class (inputs)", grid="x")
    legend(axes)
    return axes


def _known(dist: ReachDistribution, among: str) -> Values:
    rows = dist.correct if among == "correct" else np.ones(len(dist), np.bool_)
    ends = np.concatenate([dist.lower[rows], dist.upper[rows]])
    return np.asarray(ends[np.isfinite(ends)], dtype=np.float64)


def _knots(dist: ReachDistribution, among: str, start: float, stop: float) -> Values:
    """Where the curves step, on both sides of each step."""
    ends = _known(dist, among)
    sides = (ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf), np.array([start, stop]))
    found: Values = np.unique(np.clip(np.concatenate(sides), start, stop))
    return found if found.size <= 6000 else np.linspace(start, stop, 2001)
