"""What figures share: colours that colour-blind readers can tell apart, one look per network, saving."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from radii.errors import InputError
from radii.stats import Distribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's palette without yellow: distinct for colour-blind readers on white paper.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FORMATS = ("png", "svg", "pdf")
GREY = "#666666"


class Look(NamedTuple):
    """How one network is drawn in every figure; line and marker repeat what the colour says."""

    colour: str
    line: str
    marker: str


Looks = Mapping[str, Look]


def look(position: int) -> Look:
    """The look of the network at a position: 28 differ in colour or line."""
    turn = position // len(PALETTE)
    return Look(PALETTE[position % len(PALETTE)], LINES[turn % len(LINES)], MARKERS[turn % len(MARKERS)])


def looks(names: Iterable[str]) -> dict[str, Look]:
    """One look per name, by position: make it once and give it to every figure of a report.

    >>> looks(["a", "b"])["b"].colour
    '#D55E00'
    """
    return {name: look(position) for position, name in enumerate(dict.fromkeys(names))}


def many(distributions: Distribution | Sequence[Distribution], figure: str) -> list[Distribution]:
    """The distributions as a list of at least one."""
    found = [distributions] if isinstance(distributions, Distribution) else list(distributions)
    if not found:
        raise InputError(f"{figure}: expected at least one distribution, got none")
    return found


class Named(Protocol):
    """Anything with a name of its own."""

    @property
    def name(self) -> str:
        """What legends call it."""
        ...


def looks_of(dists: Sequence[Named], given: Looks | None) -> list[Look]:
    """The look of each distribution: the given one by name, else by position."""
    return [given[d.name] if given and d.name in given else look(i) for i, d in enumerate(dists)]


def new_figure(width: float = 7.0, height: float = 4.2) -> tuple[Figure, Axes]:
    """A figure and its axes, without touching pyplot's state or needing a display."""
    figure = blank(width, height)
    return figure, figure.add_subplot()


def blank(width: float, height: float) -> Figure:
    """A figure of that many inches, without axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes_or_new(ax: Axes | None, width: float = 7.0, height: float = 4.2) -> Axes:
    """The axes given, or those of a new figure."""
    return ax if ax is not None else new_figure(width, height)[1]


def tidy(axes: Axes, x: str, y: str, grid: Literal["both", "x", "y"] | None = "both") -> Axes:
    """The axes with labels, a light grid and no box around them."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if grid:
        axes.grid(True, axis=grid, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def legend(axes: Axes, **options: Any) -> None:
    """A legend inside the axes, or beside them when it has too many entries to fit."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    short = [label if len(label) <= 28 else label[:25] + "…" for label in labels]
    if len(handles) <= 7:
        looks = {"framealpha": 0.85, "edgecolor": "none", "fontsize": 8, "title_fontsize": 8}
        axes.legend(handles, short, **{"loc": "best", **looks, **options})
        return
    columns = 1 + len(handles) // 22
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": columns}
    axes.legend(handles, short, frameon=False, fontsize=7, **place)


def log_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis, also where it spans less than one power of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    narrow = low > 0 and high / low < 30
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """Text that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure; the format follows the file's ending."""
    target = Path(path)
    if target.suffix.lstrip(".") not in FORMATS:
        raise InputError(f"figure file: expected one of {', '.join('.' + f for f in FORMATS)}, got {target.name!r}")
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(target, dpi=160)
    return target
