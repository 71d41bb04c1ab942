"""Box plots of radii and of verification gaps: by network, train against test, per class, per target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from radii._check import choice
from radii.errors import InputError
from radii.report.style import PALETTE, Looks, axes_or_new, looks_of, many, plain, tidy
from radii.stats import Distribution
from radii.stats._arrays import ANY_TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Values = npt.NDArray[np.float64]
ENDS = {"lower": "proven radius", "upper": "smallest broken ε", "gap": "verification gap"}


@dataclass(frozen=True)
class _Side:
    """One colour of boxes: where each stands, how wide it is, what the legend calls it."""

    groups: Mapping[float, Values]
    colour: str
    width: float = 0.62
    label: str = ""


def network_boxes(
    distributions: Distribution | Sequence[Distribution],
    ax: Axes | None = None,
    *,
    end: str = "lower",
    looks: Looks | None = None,
) -> Axes:
    """Axes with one box per network, of correctly classified inputs; `end="gap"` shows the verification gaps."""
    dists = many(distributions, "network_boxes")
    axes = axes_or_new(ax, _width(len(dists), 0.5))
    for place, (dist, style) in enumerate(zip(dists, looks_of(dists, looks), strict=True)):
        _boxes(axes, _Side({float(place): radii(dist, end)}, style.colour))
    _name_axis(axes, [dist.name or str(place + 1) for place, dist in enumerate(dists)])
    return tidy(axes, "", f"{ENDS[end]} (ε)", grid="y")


def split_boxes(
    train: Mapping[str, Distribution], test: Mapping[str, Distribution], ax: Axes | None = None, *, end: str = "lower"
) -> Axes:
    """Axes with two boxes per network: the radii of its train and of its test inputs (correctly classified ones)."""
    names = list(dict.fromkeys([*train, *test]))
    if not names:
        raise InputError("split_boxes: expected at least one network, got none")
    axes = axes_or_new(ax, _width(len(names), 0.62))
    _two_sides(axes, [{at: radii(side[n], end) for at, n in enumerate(names) if n in side} for side in (train, test)])
    _name_axis(axes, names)
    return tidy(axes, "", f"{ENDS[end]} (ε)", grid="y")


def class_boxes(
    distribution: Distribution, ax: Axes | None = None, *, end: str = "lower", test: Distribution | None = None
) -> Axes:
    """Axes with one box per class of the inputs, and one more for `test` if given; numbers of inputs stand below."""
    others = None if test is None else test.by_class()
    return _grouped(distribution, (distribution.by_class(), others), "class of the input", (ax, end))


def target_boxes(
    distribution: Distribution, ax: Axes | None = None, *, end: str = "lower", test: Distribution | None = None
) -> Axes:
    """Axes with one box per target class, and one more for `test` if given; the rows must be one-to-one."""
    parts, others = _by_target(distribution), None if test is None else _by_target(test)
    return _grouped(distribution, (parts, others), "target class", (ax, end))


def radii(dist: Distribution, end: str) -> Values:
    """The known ends of correctly classified inputs, or their gaps where both ends are known."""
    choice(end, "end", ENDS)
    values: Values = {"lower": dist.lower, "upper": dist.upper}.get(end, dist.upper - dist.lower)[dist.correct]
    return values[np.isfinite(values)]


def _by_target(dist: Distribution) -> dict[int, Distribution]:
    parts = {key: part for key, part in dist.by_target().items() if key != ANY_TARGET}
    if not parts:
        raise InputError("target_boxes: expected rows with a target class, got none; measure with target: all")
    return parts


def _grouped(
    whole: Distribution,
    sides: tuple[Mapping[int, Distribution], Mapping[int, Distribution] | None],
    what: str,
    options: tuple[Axes | None, str],
) -> Axes:
    (ax, end), (first, second) = options, sides
    keys = sorted({*first, *(second or {})})
    axes = axes_or_new(ax, min(11.0, max(5.0, 1.2 + (0.34 if second is None else 0.5) * len(keys))), 3.8)
    found = [{at: radii(s[key], end) for at, key in enumerate(keys) if key in s} for s in (first, second) if s]
    if second is None:
        _boxes(axes, _Side({float(at): values for at, values in found[0].items()}, PALETTE[0]))
    else:
        _two_sides(axes, found)
    names = [_class_name(whole, key) for key in keys]
    counts = ["+".join(str(side[at].size if at in side else 0) for side in found) for at in range(len(keys))]
    crowded = len(names) > 14 or max(map(len, names)) > 8
    labels = [f"{name} ({n})" if crowded else f"{name}\n({n})" for name, n in zip(names, counts, strict=True)]
    _name_axis(axes, labels, turn=crowded)
    tidy(axes, f"{what} (inputs)", f"{ENDS[end]} (ε)", grid="y")
    if whole.name:
        axes.set_title(plain(whole.name), fontsize=10)
    return axes


def _class_name(dist: Distribution, key: int) -> str:
    name = dist.class_names[key] if 0 <= key < len(dist.class_names) else str(key)
    return name if len(name) <= 22 else name[:20] + "…"


def _two_sides(axes: Axes, sides: Sequence[Mapping[int, Values]]) -> None:
    """Train and test beside each other, with a legend."""
    for offset, label, colour, found in zip((-0.19, 0.19), ("train", "test"), PALETTE, sides, strict=False):
        _boxes(axes, _Side({place + offset: values for place, values in found.items()}, colour, 0.34, label))
    axes.legend(frameon=False, fontsize=8, loc="best")


def _boxes(axes: Axes, side: _Side) -> None:
    """Boxes at places; a group without values leaves its place empty, one with few shows every value."""
    full = {place: values for place, values in side.groups.items() if values.size}
    if side.label:
        axes.plot([], [], color=side.colour, linewidth=6, alpha=0.5, label=side.label)
    if not full:
        return
    axes.boxplot(
        list(full.values()),
        positions=list(full),
        widths=side.width,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": side.colour + "40", "edgecolor": side.colour},
        medianprops={"color": side.colour, "linewidth": 2},
        whiskerprops={"color": side.colour},
        capprops={"color": side.colour},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": side.colour},
    )
    for place, values in full.items():
        if values.size < 5:
            axes.plot(np.full(values.size, place), values, ".", color=side.colour, markersize=4)


def _width(boxes: int, each: float) -> float:
    return min(11.0, max(4.5, 1.2 + each * boxes))


def _name_axis(axes: Axes, names: Sequence[str], turn: bool | None = None) -> None:
    long = turn if turn is not None else len(names) > 4 or max(map(len, names)) > 14
    labels = [plain(name if len(name) <= 30 else name[:27] + "…") for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=60 if long else 0, fontsize=8, ha="right" if long else "center")
    if long:
        for tick in axes.get_xticklabels():
            tick.set_rotation_mode("anchor")
    axes.set_xlim(-0.7, len(names) - 0.3)
