"""Box plots of radii: train against test, per class, per target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.report.style import PALETTE, Look, axes_or_new, plain, tidy
from radii.stats import Distribution
from radii.stats._arrays import ANY_TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]
_ENDS = {"lower": "proven radius", "upper": "smallest broken ε"}


def split_boxes(
    train: Mapping[str, Distribution], test: Mapping[str, Distribution], ax: Axes | None = None, *, end: str = "lower"
) -> Axes:
    """Axes with two boxes a network: the radii of its train and of its test inputs (correctly classified ones)."""
    names = list(dict.fromkeys([*train, *test]))
    if not names:
        raise InputError("split_boxes: expected at least one network, got none")
    axes = axes_or_new(ax, min(11.0, max(4.5, 1.2 + 0.62 * len(names))))
    for offset, (label, side) in zip((-0.19, 0.19), {"train": train, "test": test}.items(), strict=True):
        found = {position: radii(side[name], end) for position, name in enumerate(names) if name in side}
        style = Look(PALETTE[0] if label == "train" else PALETTE[1], "-", "o")
        _boxes(axes, {place + offset: values for place, values in found.items()}, style, 0.34, label)
    _name_axis(axes, names)
    tidy(axes, "", f"{_ENDS[end]} (ε)", grid="y")
    axes.legend(frameon=False, fontsize=8, loc="best")
    return axes


def class_boxes(distribution: Distribution, ax: Axes | None = None, *, end: str = "lower") -> Axes:
    """Axes with one box a class of the inputs; the number of inputs stands below each name."""
    return _grouped(distribution, distribution.by_class(), "class of the input", (ax, end))


def target_boxes(distribution: Distribution, ax: Axes | None = None, *, end: str = "lower") -> Axes:
    """Axes with one box a target class; the rows must be one-to-one (measured with `target: all`)."""
    parts = {key: part for key, part in distribution.by_target().items() if key != ANY_TARGET}
    if not parts:
        raise InputError("target_boxes: expected rows with a target class, got none; measure with target: all")
    return _grouped(distribution, parts, "target class", (ax, end))


def radii(dist: Distribution, end: str) -> Values:
    """The known ends of correctly classified inputs."""
    if end not in _ENDS:
        raise InputError(f"end: expected lower or upper, got {end!r}")
    values: Values = (dist.lower if end == "lower" else dist.upper)[dist.correct]
    return values[np.isfinite(values)]


def _grouped(
    whole: Distribution, parts: Mapping[int, Distribution], what: str, options: tuple[Axes | None, str]
) -> Axes:
    ax, end = options
    axes = axes_or_new(ax, min(11.0, max(5.0, 1.2 + 0.34 * len(parts))), 3.8)
    found = {float(place): radii(part, end) for place, part in enumerate(parts.values())}
    _boxes(axes, found, Look(PALETTE[0], "-", "o"), 0.62, "")
    names = [_class_name(whole, key) for key in parts]
    counts = [values.size for values in found.values()]
    crowded = len(names) > 14 or max(map(len, names)) > 8
    labels = [f"{name} ({n})" if crowded else f"{name}\n({n})" for name, n in zip(names, counts, strict=True)]
    _name_axis(axes, labels, turn=crowded)
    tidy(axes, f"{what} (inputs)", f"{_ENDS[end]} (ε)", grid="y")
    if whole.name:
        axes.set_title(plain(whole.name), fontsize=10)
    return axes


def _class_name(dist: Distribution, key: int) -> str:
    name = dist.class_names[key] if 0 <= key < len(dist.class_names) else str(key)
    return name if len(name) <= 18 else name[:16] + "…"


def _boxes(axes: Axes, groups: Mapping[float, Values], style: Look, width: float, label: str) -> None:
    """Boxes at places; a group without values leaves its place empty, one with few shows every value."""
    full = {place: values for place, values in groups.items() if values.size}
    if label:
        axes.plot([], [], color=style.colour, linewidth=6, alpha=0.5, label=label)
    if not full:
        return
    axes.boxplot(
        list(full.values()),
        positions=list(full),
        widths=width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": style.colour + "40", "edgecolor": style.colour},
        medianprops={"color": style.colour, "linewidth": 2},
        whiskerprops={"color": style.colour},
        capprops={"color": style.colour},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": style.colour},
    )
    for place, values in full.items():
        if values.size < 5:
            axes.plot(np.full(values.size, place), values, ".", color=style.colour, markersize=4)


def _name_axis(axes: Axes, names: Sequence[str], turn: bool | None = None) -> None:
    long = turn if turn is not None else len(names) > 4 or max(map(len, names)) > 14
    labels = [plain(name if len(name) <= 26 else name[:23] + "…") for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=60 if long else 0, fontsize=8, ha="right" if long else "center")
    if long:
        for tick in axes.get_xticklabels():
            tick.set_rotation_mode("anchor")
    axes.set_xlim(-0.7, len(names) - 0.3)
