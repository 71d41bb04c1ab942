"""The part of a report that speaks of reaches: curves with their band, classes, and the most-moved inputs."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import InputError
from radii.report.content import Content, Part, gather, opened
from radii.report.png import Originals, Shown, shown
from radii.report.reach_curves import class_reaches, reach_curve
from radii.report.reach_distribution import ReachDistribution
from radii.report.reach_series import ReachSeries, reach_tables, sections
from radii.report.style import new_figure
from radii.report.tables import Table
from radii.store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from radii.data import Dataset

MOVED = 6  # most-moved inputs that each network shows


@dataclass(frozen=True)
class Moved:
    """One of the most-moved inputs, with what its witness shows."""

    caption: str
    picture: Shown


@dataclass(frozen=True)
class ReachSection:
    """One quantity at one ε: its curve and its classes as PNG texts, tables, and the most-moved inputs."""

    title: str
    note: str
    curve: str
    classes: str
    tables: tuple[Table, ...]
    moved: tuple[Moved, ...]


def reach_sections(content: Content, confidence: float, originals: Originals | None = None) -> list[ReachSection]:
    """The sections of a content's reaches."""
    found = []
    for title, part in sections(content.reaches).items():
        dists = [one.dist for one in part]
        figure, axes = new_figure(7.0, 3.9)
        reach_curve(dists, axes, confidence=confidence)
        labelled = len(part) == 1 and np.unique(dists[0].label[dists[0].label >= 0]).size > 1
        classes = ""
        if labelled:
            other, axes = new_figure(7.0, 1.2 + 0.28 * np.unique(dists[0].label).size)
            class_reaches(dists[0], axes)
            classes = _png(other)
        side = "at least" if dists[0].least else "at most"
        note = (
            f"Share of inputs whose {dists[0].title} is {side} γ. Solid: proven. Dashed: not refuted by a witness. The "
            "truth lies in the shaded gap. Dotted: the limits for unseen inputs, for every γ at once."
        )
        moved = tuple(one for series in part for one in _moved(series, originals or Originals()))
        tables = tuple(reach_tables(title, part, confidence))
        found.append(ReachSection(title[:1].upper() + title[1:], note, _png(figure), classes, tables, moved))
    return found


def section_tables(content: Content, confidence: float) -> list[Table]:
    """The tables of all sections, for formats without figures."""
    return [one for title, part in sections(content.reaches).items() for one in reach_tables(title, part, confidence)]


def write_report(
    path: str | Path,
    dists: Sequence[ReachDistribution],
    *,
    confidence: float = 0.95,
    title: str = "Robustness report",
    data: Dataset | Sequence[Dataset] = (),
) -> Path:
    """Write the report in the format of the file's ending and give its path back."""
    from radii.report.documents import write_checked

    return write_checked(path, lambda: content_of(dists, title), confidence=confidence, data=data)


def content_of(dists: Sequence[ReachDistribution], title: str = "Robustness report") -> Content:
    """The content of distributions: what their stores say of those that have one, rows alone of the others."""
    from radii.report.arrays import ORIGIN

    if not dists or any(len(dist) == 0 for dist in dists):
        raise InputError("report: expected distributions with at least one input each, got an empty one")
    parts: dict[int | str, Part] = {}
    bare = []
    for dist in dists:
        if dist.source is None or dist.keys is None:
            bare.append(ReachSeries(dist.name or "reaches", "", {"dataset": "", "split": ""}, dist))
            continue
        name = id(dist.source) if isinstance(dist.source, Store) else str(dist.source)
        known = parts[name].keys if name in parts else frozenset()
        parts[name] = Part(dist.source, keys=known | frozenset(dist.keys.tolist()))
    names = max((dist.class_names for dist in dists), key=len)
    if not parts:
        return Content((), (), names, title, ORIGIN, tuple(bare))
    found = gather(parts.values(), title=title, class_names=names)
    return Content((), found.facts, names, title, ORIGIN if bare else "", (*found.reaches, *bare))


def _moved(series: ReachSeries, originals: Originals) -> list[Moved]:
    """The inputs whose witnesses go furthest, as pictures where they have the shape of one."""
    dist, rows = series.dist, series.rows
    if rows is None or series.source is None:
        return []
    ends = dist.witnessed if dist.least else -dist.witnessed
    places = np.argsort(np.where(np.isnan(ends), np.inf, ends), kind="stable")[:MOVED]
    keys = [str(rows["key"].iloc[place]) for place in places if np.isfinite(dist.witnessed[place])]
    with opened(series.source) as store:
        pictures = {one.key: one for one in shown(store, keys, originals)}
    found = []
    for place in places:
        key = str(rows["key"].iloc[place])
        if key not in pictures:
            continue
        label = int(dist.label[place])
        name = dist.class_names[label] if 0 <= label < len(dist.class_names) else str(label)
        value = f"{dist.quantity} {float(dist.witnessed[place]):.4g}"
        caption = f"{series.name}, input {rows['index'].iloc[place]}, class {name}: {value}"
        found.append(Moved(caption, pictures[key]))
    return found


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    metadata: dict[str, Any] = {"Software": None}
    figure.savefig(buffer, format="png", dpi=110, metadata=metadata)
    return base64.b64encode(buffer.getvalue()).decode()
