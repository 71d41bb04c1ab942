"""Reaches of stores for reports and tables: one series per network, question and ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.report.reach_distribution import ReachDistribution
from radii.report.rounding import down, up
from radii.report.tables import Table
from radii.store import Selection, Store, reaches_frame
from radii.store.frame import ends_in_order
from radii.store.reach_rows import reach_columns, reach_groups

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ReachSeries:
    """The reaches of one network for one question; `source` opens the store that they are from."""

    name: str
    store: str  # its address without passwords
    question: dict[str, Any]
    dist: ReachDistribution
    rows: pd.DataFrame | None = field(repr=False, default=None)
    source: str | Path | Store | None = field(repr=False, default=None)


def stored_reaches(
    store: Store,
    where: Selection | None = None,
    source: str | Path | Store | None = None,
    keys: frozenset[str] = frozenset(),
    class_names: Sequence[str] = (),
) -> Iterator[ReachSeries]:
    """The series of a store's finished reaches, or of those with these keys."""
    frame = ends_in_order(reaches_frame(store, where), store.where)
    if keys:
        frame = frame[frame["key"].isin(keys)].reset_index(drop=True)
    for question, rows in reach_groups(frame):
        name = str(question["classifier"])
        dist = ReachDistribution.from_arrays(
            **reach_columns(question, rows), name=name, class_names=class_names, source=source
        )
        yield ReachSeries(name, store.where, question, dist, rows, source)


def sections(found: Sequence[ReachSeries]) -> dict[str, list[ReachSeries]]:
    """The series that belong on one pair of axes, by their title: one quantity in balls of one size."""
    parts: dict[str, list[ReachSeries]] = {}
    for one in found:
        where = f"{one.dist.title}, {one.question['dataset']} {one.question['split']}".rstrip(", ")
        parts.setdefault(where, []).append(one)
    return {title: list(_named(part)) for title, part in parts.items()}


def _named(part: Sequence[ReachSeries]) -> Iterator[ReachSeries]:
    """The series under names that differ: namesakes are numbered."""
    taken: dict[str, int] = {}
    for one in part:
        taken[one.name] = taken.get(one.name, 0) + 1
        name = one.name if taken[one.name] == 1 else f"{one.name} ({taken[one.name]})"
        yield replace(one, name=name, dist=replace(one.dist, name=name))


def reach_tables(title: str, part: Sequence[ReachSeries], confidence: float) -> list[Table]:
    """What the reaches of one section say: of these inputs, of unseen ones, and of every class."""
    return [summary_table(title, part, confidence), class_table(title, part)]


def summary_table(title: str, part: Sequence[ReachSeries], confidence: float) -> Table:
    """Outcomes, mean and quantiles of every network, and the mean for unseen inputs where it has limits."""
    rows = []
    for one in part:
        dist, told = one.dist, one.dist.summary()
        unseen = "–"
        if dist.bounds is not None and len(dist) > 1:
            low, high = dist.guarantee(confidence).mean()
            unseen = f"{down(low, 4)} to {up(high, 4)}"
        counts = (told["closed"], told["open"], told["unsolved"])
        middle, far = _span(dist.quantile(0.5)), _span(dist.quantile(0.05 if dist.least else 0.95))
        mean = dist.mean()
        rows.append((one.name, len(dist), *counts, _span((mean.lower, mean.upper)), middle, far, unseen))
    tail = "5 % quantile" if part[0].dist.least else "95 % quantile"
    headers = ("network", "inputs", "closed", "open", "unsolved", "mean", "median", tail, "mean, unseen inputs")
    proven = (
        "lower ends are proven, upper ends witnessed"
        if part[0].dist.least
        else ("upper ends are proven, lower ends witnessed")
    )
    note = (
        f"Intervals hold the true value: {proven}. “Unseen inputs” is D(ḡ) with Hoeffding's limits at {confidence:g} "
        "confidence, if the inputs are independent draws; it needs a quantity with limits, such as a probability."
    )
    return Table(f"Reach: {title}", headers, tuple(rows), note)


def class_table(title: str, part: Sequence[ReachSeries]) -> Table:
    """The median reach of every class and network."""
    rows: list[tuple[Any, ...]] = []
    for one in part:
        if (one.dist.label < 0).all():
            continue
        for label, of_class in one.dist.by_class().items():
            names = one.dist.class_names
            name = names[label] if 0 <= label < len(names) else str(label)
            worst = of_class.summary()["worst_witnessed"]
            shown = None if worst is None else float(f"{worst:.4g}")
            rows.append((one.name, name, len(of_class), _span(of_class.quantile(0.5)), "–" if shown is None else shown))
    worst = "least witnessed" if part[0].dist.least else "largest witnessed"
    note = "" if rows else "No network has labelled inputs."
    return Table(f"Reach by class: {title}", ("network", "class", "inputs", "median", worst), tuple(rows), note)


def _span(ends: tuple[float | None, float | None]) -> str:
    """An interval as people read it, rounded outwards."""
    low, high = ("–" if end is None else str(turn(end, 4)) for end, turn in zip(ends, (down, up), strict=True))
    return low if low == high else f"{low} to {high}"
