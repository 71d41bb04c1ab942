"""The shape of a distribution: histogram with density, log-normal fit, quantiles against quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy

from radii.errors import InputError
from radii.report.box_plots import ENDS, radii
from radii.report.style import GREY, Looks, axes_or_new, legend, log_ticks, look, looks_of, many, plain, tidy
from radii.stats import Distribution
from radii.stats.fits import FAMILIES, fit, patterns, starting_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]


def histogram(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    end: str = "lower",
    looks: Looks | None = None,
) -> Axes:
    """Axes with the histogram of one end of the radii and a kernel density; correctly classified inputs only."""
    dists = many(distributions, "histogram")
    axes = axes_or_new(ax)
    found = [radii(dist, end) for dist in dists]
    pooled = np.concatenate(found)
    if pooled.size == 0:
        raise InputError(f"histogram: expected a radius with a {end} end, got none")
    edges = np.histogram_bin_edges(pooled, bins=min(60, max(8, int(2 * pooled.size ** (1 / 2)))))
    line = np.linspace(0, edges[-1] * 1.05, 400)
    for dist, style, values in zip(dists, looks_of(dists, looks), found, strict=True):
        if values.size == 0:
            continue
        shade = 0.35 if len(dists) == 1 else 0.18
        axes.hist(values, edges.tolist(), density=True, color=style.colour, alpha=shade, label=plain(dist.name or end))
        if values.size > 2 and np.ptp(values) > 0:
            axes.plot(
                line, scipy.stats.gaussian_kde(values)(line), color=style.colour, linestyle=style.line, linewidth=1.4
            )
    axes.set_xlim(left=0)
    tidy(axes, f"{ENDS[end]} (ε)", "density")
    legend(axes)
    return axes


def lognormal_fit(distribution: Distribution, ax: Axes | None = None) -> Axes:
    """Axes with the distribution function of the radii as a shaded envelope, and the log-normal fitted to it."""
    axes = axes_or_new(ax, 5.6, 3.8)
    mean, spread = _lognormal(distribution)
    ends = distribution.ends("correct")
    finite = np.concatenate([ends.low, ends.high])
    top = float(finite[np.isfinite(finite)].max()) * 1.05
    line = np.linspace(0, top, 600)
    style = look(0)
    low, high = 1 - ends.not_broken(line), 1 - ends.proven(line)
    axes.fill_between(line, low, high, step="post", color=style.colour, alpha=0.3, linewidth=0, label="radii")
    axes.step(line, high, where="post", color=style.colour, linewidth=1.2)
    with np.errstate(divide="ignore"):
        curve = scipy.special.ndtr((np.log(line) - mean) / spread)
    label = f"log-normal, median {np.exp(mean):.3g}"
    axes.plot(line, curve, color=look(1).colour, linewidth=1.6, label=label)
    axes.set_xlim(0, top)
    axes.set_ylim(0, 1.02)
    tidy(axes, "radius ε", "share of inputs with a smaller radius")
    legend(axes, loc="lower right", title=plain(distribution.name) if distribution.name else None)
    return axes


def qq_plot(distribution: Distribution, ax: Axes | None = None) -> Axes:
    """Axes with the quantiles of both ends against those of the fitted log-normal; on the line is a perfect fit."""
    axes = axes_or_new(ax, 4.6, 4.2)
    mean, spread = _lognormal(distribution)
    reach = [np.inf, 0.0]
    for position, end in enumerate(("lower", "upper")):
        values = np.sort(radii(distribution, end))
        values = values[values > 0]
        if values.size == 0:
            continue
        theory = np.exp(mean + spread * scipy.special.ndtri((np.arange(values.size) + 0.5) / values.size))
        style = look(position)
        marker = "os"[position]
        axes.plot(theory, values, marker, color=style.colour, markersize=3.5, fillstyle="none", label=f"{end} ends")
        reach = [min(reach[0], theory[0], values[0]), max(reach[1], theory[-1], values[-1])]
    axes.plot(reach, reach, color=GREY, linewidth=0.9, linestyle="--", label="perfect fit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    tidy(axes, "quantile of the fitted log-normal", "quantile of the radii")
    legend(axes, loc="upper left")
    if distribution.name:
        axes.set_title(plain(distribution.name), fontsize=10)
    return axes


def _lognormal(dist: Distribution) -> tuple[float, float]:
    """Log-mean and log-deviation of greatest likelihood on the intervals."""
    ends = dist.ends("correct")
    known = ends.take((ends.low > 0) | np.isfinite(ends.high))
    if len(known) < 3 or known.low.max() < known.high.min():
        raise InputError(f"log-normal fit: expected at least three radii that differ, got {len(known)} of no spread")
    family = FAMILIES["lognormal"]
    start = starting_point(family, known)
    theta = fit(family, patterns(known), np.atleast_2d(start)).reshape(-1)
    return float(theta[0]), float(np.exp(theta[1]))
