"""Heat maps: KS matrices, rank correlations of networks, nearest targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.report.style import axes_or_new, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from radii.stats.classes import KsMatrix, NearestTargets
    from radii.stats.correlation import Correlation

Cells = npt.NDArray[np.float64]


def ks_heat_map(matrix: KsMatrix, ax: Axes | None = None, *, alpha: float = 0.05) -> Axes:
    """Axes with the KS statistics: train below the diagonal, test above, train against test on it; * is significant."""
    cells = np.array([[np.nan if v is None else v for v in row] for row in matrix.statistic], dtype=np.float64)
    marks = np.array(matrix.significant(alpha))
    texts = [
        [_text(v, mark) for v, mark in zip(row, line, strict=True)] for row, line in zip(cells, marks, strict=True)
    ]
    axes = _heat(cells, texts, (matrix.names, matrix.names), ax, scale=("cividis", 0.0, 1.0, "KS statistic"))
    axes.set_xlabel("above the diagonal: test", fontsize=8)
    axes.set_ylabel("below the diagonal: train", fontsize=8)
    adjusted = "as in the paper, not adjusted" if matrix.method == "paper" else "after Holm"
    axes.set_title(f"* differs at {alpha:g} ({adjusted}); diagonal: train against test", fontsize=8)
    return axes


def spearman_heat_map(found: Sequence[Correlation], ax: Axes | None = None) -> Axes:
    """Axes with Spearman's correlation of every pair of networks; cells without a value are left grey."""
    if not found:
        raise InputError("spearman_heat_map: expected correlations of at least two networks, got none")
    names = list(dict.fromkeys(name for one in found for name in (one.a, one.b)))
    place = {name: i for i, name in enumerate(names)}
    cells = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(cells, 1.0)
    for one in found:
        if one.value is not None:
            cells[place[one.a], place[one.b]] = cells[place[one.b], place[one.a]] = one.value
    texts = [[_text(v) for v in row] for row in cells]
    return _heat(cells, texts, (names, names), ax, scale=("PuOr_r", -1.0, 1.0, "Spearman's ρ"))


def target_heat_map(nearest: NearestTargets, ax: Axes | None = None, *, class_names: Sequence[str] = ()) -> Axes:
    """Axes with how often each target is surely the nearest, by class of the input; a range where gaps leave doubt."""
    sure, possible = nearest.sure, nearest.possible
    shares = np.where(nearest.inputs[:, None] > 0, sure / np.maximum(nearest.inputs[:, None], 1), np.nan)
    itself = np.equal.outer(nearest.labels, nearest.targets)
    shares = np.where(itself, np.nan, shares)
    texts = [
        ["" if same or b == 0 else str(a) if a == b else f"{a}–{b}" for a, b, same in zip(row, top, own, strict=True)]
        for row, top, own in zip(sure.tolist(), possible.tolist(), itself.tolist(), strict=True)
    ]
    names = [
        [class_names[key] if 0 <= key < len(class_names) else str(key) for key in keys]
        for keys in (nearest.labels, nearest.targets)
    ]
    axes = _heat(shares, texts, (names[0], names[1]), ax, scale=("cividis", 0.0, 1.0, "share of the class"))
    axes.set_xlabel("nearest target")
    axes.set_ylabel("class of the input")
    return axes


def _text(value: float, mark: bool = False) -> str:
    return "" if np.isnan(value) else f"{round(value, 2) + 0.0:.2f}{'*' if mark else ''}"


def _heat(
    cells: Cells,
    texts: Sequence[Sequence[str]],
    names: tuple[Sequence[str], Sequence[str]],
    ax: Axes | None,
    *,
    scale: tuple[str, float, float, str],
) -> Axes:
    import matplotlib

    colours, low, high, label = scale
    rows, columns = cells.shape
    cell = min(0.42, max(0.16, 7.2 / max(rows, columns)))  # inches; a page holds 43 classes
    axes = axes_or_new(ax, 2.4 + cell * columns, 1.6 + 0.95 * cell * rows)
    shades = matplotlib.colormaps[colours].with_extremes(bad="#bbbbbb")
    image = axes.imshow(np.ma.masked_invalid(cells), cmap=shades, vmin=low, vmax=high)
    size = 7 if cell > 0.34 else 5.5
    if cell <= 0.28:  # in smaller cells only the colour and the mark can be read
        texts = [["*" if text.endswith("*") else "" for text in row] for row in texts]
    _write(axes, cells, texts, shades(image.norm(cells)), size)
    for axis, labels in ((axes.set_xticks, names[1]), (axes.set_yticks, names[0])):
        axis(range(len(labels)), [plain(t if len(t) <= 22 else t[:20] + "…") for t in labels], fontsize=size + 0.5)
    if max(map(len, names[1])) > (3 if cell > 0.28 else 1):
        for tick in axes.get_xticklabels():
            tick.set(rotation=60, ha="right", rotation_mode="anchor")
    figure = axes.get_figure(root=True)
    if figure is not None:
        figure.colorbar(image, ax=axes, label=label, shrink=0.8)
    return axes


def _write(axes: Axes, cells: Cells, texts: Sequence[Sequence[str]], colours: Any, size: float) -> None:
    """The text of every cell, black or white by the colour below it."""
    dark = colours[..., :3] @ np.array([0.299, 0.587, 0.114]) < 0.5
    for i, j in np.ndindex(cells.shape):
        if texts[i][j]:
            colour = "w" if dark[i, j] else "k"
            axes.text(j, i, texts[i][j], ha="center", va="center", fontsize=size, color=colour)
