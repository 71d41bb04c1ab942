"""Curves over ε and over time: robust accuracy, distribution functions, how a guarantee narrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii._check import choice
from radii.errors import InputError
from radii.report.style import GREY, Look, Looks, axes_or_new, legend, log_ticks, look, looks_of, many, plain, tidy
from radii.stats import Distribution
from radii.stats.confidence_intervals import share_interval
from radii.stats.cost import cactus
from radii.stats.dkw import dkw_half_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]


def robust_accuracy_curve(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    confidence: float | None = None,
    among: str = "all",
    reference: Sequence[float] = (),
    looks: Looks | None = None,
) -> Axes:
    """Axes with robust accuracy against ε: the proven curve, the not-broken curve, and the gap between them shaded.

    With `confidence`, the guarantee band for unseen inputs is drawn around both; `reference` marks values of ε.
    """
    dists = many(distributions, "robust_accuracy_curve")
    axes = axes_or_new(ax)
    reach = max([_reach(dist, among) for dist in dists] + [1.05 * max(reference, default=0.0)])
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        knots = _knots(dist, among, reach)
        envelope(axes, knots, dist.robust_accuracy(knots, among), style, (_label(dist, "proven"), len(dists)))
        if confidence is not None:
            draw_limits(axes, knots, dist.guarantee(confidence, among).at(knots), style)
    draw_key(axes, "not broken", confidence)
    _mark(axes, reference, reach)
    axes.set_xlim(0, reach)
    axes.set_ylim(0, 1.02)
    tidy(axes, "perturbation size ε", "robust accuracy" if among == "all" else "robust share of correct inputs")
    legend(axes, loc="upper right")
    return axes


def ecdf(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    confidence: float | None = 0.95,
    among: str = "correct",
    looks: Looks | None = None,
) -> Axes:
    """Axes with the distribution function of the radii: the verification gap shaded, the guarantee band dotted.

    The solid line counts what is not proven robust, the dashed one what is broken; the truth lies between.
    """
    dists = many(distributions, "ecdf")
    axes = axes_or_new(ax)
    reach = max(_reach(dist, among) for dist in dists)
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        knots = _knots(dist, among, reach)
        proven, alive = dist.robust_accuracy(knots, among)
        envelope(axes, knots, (1 - proven, 1 - alive), style, (_label(dist, "not proven"), len(dists)))
        if confidence is not None:
            low, high = dist.guarantee(confidence, among).at(knots)
            draw_limits(axes, knots, (1 - high, 1 - low), style)
    draw_key(axes, "broken", confidence)
    axes.set_xlim(0, reach)
    axes.set_ylim(0, 1.02)
    tidy(axes, "radius ε", "share of inputs with a smaller radius")
    legend(axes, loc="lower right")
    return axes


def time_cdf(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    clock: str = "cpu",
    looks: Looks | None = None,
) -> Axes:
    """Axes with the share of inputs whose radius was closed within a number of seconds (logarithmic).

    `clock` is "cpu" or "wall".
    """
    column = f"{choice(clock, 'clock', ('cpu', 'wall'))}_seconds"
    dists = [d for d in many(distributions, "time_cdf") if getattr(d, column) is not None]
    if not dists:
        raise InputError(f"time_cdf: expected {clock} times, got none; give {column}=... to from_arrays")
    axes = axes_or_new(ax)
    for dist, style in zip(dists, looks_of(dists, looks), strict=True):
        done = np.isin(dist.status, ("closed", "robust", "misclassified"))
        found = cactus(getattr(dist, column), done)
        seconds = np.maximum(found.seconds, 1e-3)
        label = plain(dist.name or "solved")
        axes.step(seconds, found.solved / found.n, where="post", color=style.colour, linestyle=style.line, label=label)
    axes.set_xscale("log")
    axes.set_ylim(0, 1.02)
    log_ticks(axes.xaxis)
    tidy(axes, f"{'CPU' if clock == 'cpu' else 'wall-clock'} seconds for one input", "share of inputs closed")
    legend(axes, loc="lower right")
    return axes


def guarantee_convergence(
    distribution: Distribution, eps: float, ax: Axes | None = None, *, confidence: float = 0.95
) -> Axes:
    """Axes with the guarantee at ε after the first 1, 2, … inputs: for this ε alone, and for the whole curve at once.

    The inputs are taken in their order; each width holds for a sample size fixed beforehand.
    """
    axes = axes_or_new(ax)
    ends = distribution.ends("all")
    sizes = np.unique(np.geomspace(1, len(ends), num=min(len(ends), 120)).astype(int))
    proven, alive = np.cumsum(ends.low >= eps), np.cumsum(ends.high > eps)
    low, high = proven[sizes - 1], alive[sizes - 1]
    one = [
        (share_interval(a, n, confidence)[0], share_interval(b, n, confidence)[1]) for a, b, n in zip(low, high, sizes)
    ]
    width = np.array([dkw_half_width(int(n), confidence) for n in sizes])
    style = look(0)
    axes.fill_between(sizes, low / sizes, high / sizes, color=style.colour, alpha=0.3, linewidth=0, label="sample")
    axes.plot(sizes, low / sizes, color=style.colour, linewidth=1.2)
    axes.plot(sizes, high / sizes, color=style.colour, linewidth=0.8, linestyle="--")
    for position, (bottom, top, label) in enumerate(
        (
            (np.array([float(a) for a, _ in one]), np.array([float(b) for _, b in one]), "this ε alone"),
            (np.clip(low / sizes - width, 0, 1), np.clip(high / sizes + width, 0, 1), "all ε at once"),
        ),
        start=1,
    ):
        style = look(position)
        axes.plot(sizes, bottom, color=style.colour, linewidth=1.2, label=f"{confidence:.0%}, {label}")
        axes.plot(sizes, top, color=style.colour, linewidth=1.2)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(1, max(2, len(ends)))
    tidy(axes, "inputs measured", f"share robust at ε = {eps:g}")
    legend(axes)
    return axes


def envelope(axes: Axes, knots: Values, ends: tuple[Any, Any], style: Look, told: tuple[str, int]) -> None:
    """Both curves and the gap between them; `told` is the label and how many networks share the axes."""
    first, second = ends
    label, count = told
    shade = 0.22 if count <= 4 else 0.05  # many shades on top of each other would hide the lines
    axes.fill_between(knots, first, second, step="post", color=style.colour, alpha=shade, linewidth=0)
    axes.step(knots, first, where="post", color=style.colour, linewidth=1.6, linestyle=style.line, label=label)
    thin = 0.8 if count <= 4 else 0.5
    axes.step(knots, second, where="post", color=style.colour, linewidth=thin, linestyle="--")


def _label(dist: Distribution, otherwise: str) -> str:
    return plain(dist.name or otherwise)


def draw_key(axes: Axes, thin: str, confidence: float | None) -> None:
    """What the lines besides the networks' own mean, for the legend."""
    axes.plot([], [], color=GREY, linewidth=0.8, linestyle="--", label=thin)
    if confidence is not None:
        axes.plot([], [], color=GREY, linewidth=0.8, linestyle=":", label=f"{confidence:.3g} guarantee")


def draw_limits(axes: Axes, knots: Values, limits: tuple[Any, Any], style: Look) -> None:
    for limit in limits:
        axes.step(knots, limit, where="post", color=style.colour, linewidth=0.8, linestyle=":")


def _mark(axes: Axes, reference: Sequence[float], reach: float) -> None:
    """Lines at reference ε with their values above; a value too close to the last one goes one line up."""
    last, level = -np.inf, 0
    where = axes.get_xaxis_transform()
    for eps in sorted(reference):
        level = level + 1 if eps - last < 0.07 * reach else 0
        axes.axvline(eps, color=GREY, linewidth=0.8, linestyle=(0, (4, 2)))
        height = 1.01 + 0.04 * level
        axes.text(eps, height, f"{eps:.3g}", color=GREY, fontsize=7, va="bottom", ha="center", transform=where)
        last = eps


def _reach(dist: Distribution, among: str) -> float:
    """The ε up to which the curves are worth drawing."""
    ends = dist.ends(among)
    known = np.concatenate([ends.low, ends.high])
    known = known[np.isfinite(known) & (known > 0)]
    return float(known.max()) * 1.05 if known.size else 1.0


def _knots(dist: Distribution, among: str, reach: float) -> Values:
    """Where the curves step; for very many inputs an even grid, finer than any printer."""
    ends = dist.ends(among)
    values = np.concatenate([ends.low, np.nextafter(ends.low, np.inf), ends.high, [0.0, reach]])
    found = np.unique(values[np.isfinite(values) & (values >= 0) & (values <= reach)])
    return found if found.size <= 4000 else np.linspace(0.0, reach, 2001)
