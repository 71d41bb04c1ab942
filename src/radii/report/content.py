"""Content: everything a report says, gathered from one or more stores without changing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import StoreError
from radii.report.distribution import Distribution
from radii.stats import Guarantee
from radii.store import QUESTION, Selection, Store, open_store, radii_frame
from radii.store.facts import Facts, facts
from radii.store.frame import ends_in_order

if TYPE_CHECKING:
    import pandas as pd

    from radii.report.ensembles import GameSection
    from radii.report.reach_series import ReachSeries

JOINT = "joint"  # the property of joint radii: they are told of by their ensemble's own section


@dataclass(frozen=True)
class Part:
    """One study of a store, or the units with these keys, where only those are meant."""

    store: str | Path | Store
    study: str = ""
    keys: frozenset[str] = frozenset()

    def within(self, where: Selection | None) -> Selection:
        """The selection inside this study."""
        asked = where or Selection()
        return replace(asked, study=(self.study,)) if self.study else asked


@dataclass(frozen=True)
class Series:
    """The radii of one network for one question: `dist` has one row per input, `pairs` one per input and target.

    Where only single targets were asked, `dist` holds the nearest of the targets asked, and `nearest` says so.
    """

    name: str
    store: str
    question: dict[str, Any]
    rows: pd.DataFrame = field(repr=False)
    dist: Distribution
    source: str | Path | Store = field(repr=False, default="")  # what opens the store; `store` hides passwords
    pairs: Distribution | None = None
    nearest: bool = False
    study: str = ""

    def guarantee(self, confidence: float = 0.95, among: str = "all", population: int | None = None) -> Guarantee:
        """The band for unseen inputs, with the kind of evidence that these radii rest on."""
        known = [bool(np.isfinite(ends[self.dist.correct]).any()) for ends in (self.dist.lower, self.dist.upper)]
        kinds = {(True, False): "proof only", (False, True): "attack only"}
        evidence = kinds.get((known[0], known[1]), "proof and attack")
        return self.dist.guarantee(confidence, among, population=population, evidence=evidence)


@dataclass(frozen=True)
class Content:
    """What a report is made of."""

    series: tuple[Series, ...]
    facts: tuple[Facts, ...]
    class_names: tuple[str, ...] = ()
    title: str = "Robustness report"
    origin: str = ""  # what a reader must know of where the radii come from, where no store tells it
    reaches: tuple[ReachSeries, ...] = ()
    games: tuple[GameSection, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no radius is finished."""
        return not self.series

    @property
    def distributions(self) -> dict[str, Distribution]:
        """The distribution of every series by its name."""
        return {one.name: one.dist for one in self.series}

    @property
    def alarms(self) -> list[str]:
        """Every contradiction, as a line."""
        return [f"{a.classifier}, {a.dataset} input {a.index}: {a.message}" for f in self.facts for a in f.alarms]


def gather(
    stores: Iterable[str | Path | Store | Part],
    where: Selection | None = None,
    *,
    class_names: Sequence[str] = (),
    title: str = "Robustness report",
) -> Content:
    """The content of stores, and of CSV files, which must exist; `where` picks some of their radii."""
    from radii.report import sheets
    from radii.report.reach_series import stored_reaches

    known: list[Facts] = []
    found: list[Series] = []
    reaches: list[ReachSeries] = []
    parts = [address if isinstance(address, Part) else Part(address) for address in stores]
    for part in parts:
        asked = part.within(where)
        if sheets.is_sheet(part.store):
            found += sheets.sheet_series(str(part.store), asked)
            continue
        with opened(part.store) as store:
            known.append(facts(store, asked.study))
            series = _series(store, asked, part.keys, tuple(class_names))
            found += (replace(one, source=part.store, study=part.study) for one in series)
            reaches += stored_reaches(store, asked, part.store, part.keys, tuple(class_names))
    if not parts:
        raise StoreError("report: expected at least one store, got none")
    found.sort(key=lambda one: natural(one.name))
    origin = sheets.ORIGIN if any(sheets.is_sheet(part.store) for part in parts) else ""
    reaches.sort(key=lambda one: natural(one.name))
    return Content(tuple(_named(found)), tuple(known), tuple(class_names), title, origin=origin, reaches=tuple(reaches))


def natural(name: str) -> list[tuple[int, str]]:
    """A key that puts net-2 before net-10."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def named(content: Content, class_names: Sequence[str]) -> Content:
    """The same content with names for its classes."""
    names = tuple(class_names)
    series = tuple(
        replace(
            one,
            dist=replace(one.dist, class_names=names),
            pairs=None if one.pairs is None else replace(one.pairs, class_names=names),
        )
        for one in content.series
    )
    reaches = tuple(replace(one, dist=replace(one.dist, class_names=names)) for one in content.reaches)
    return replace(content, series=series, class_names=names, reaches=reaches)


def opened(address: str | Path | Store) -> AbstractContextManager[Store]:
    """The store at an address, which must exist; one that was given open stays open."""
    return nullcontext(address) if isinstance(address, Store) else open_store(address, create=False)


def _series(
    store: Store, where: Selection | None, keys: frozenset[str], class_names: tuple[str, ...]
) -> Iterator[Series]:
    frame = ends_in_order(radii_frame(store, where), store.where)
    if keys:
        frame = frame[frame["key"].isin(keys)].reset_index(drop=True)
    if not frame.empty:
        yield from grouped(frame, store.where, class_names)


def grouped(frame: pd.DataFrame, where: str, class_names: tuple[str, ...]) -> Iterator[Series]:
    """One series per network and question in rows of `radii_frame` from one place; joint radii belong to no network."""
    frame = frame[frame["property"] != JOINT].reset_index(drop=True)
    # Equal questions that differ in search parameters or versions only become runs of their own.
    run = frame.groupby([*QUESTION, "index", "target"], dropna=False, sort=False).cumcount()
    for key, rows in frame.groupby([*QUESTION, run], dropna=False, sort=False):
        question = {name: _plain(value) for name, value in zip((*QUESTION, "run"), key, strict=True)}
        question["run"] += 1
        yield _one(where, question, rows.reset_index(drop=True), class_names)


def _one(store: str, question: dict[str, Any], rows: pd.DataFrame, class_names: tuple[str, ...]) -> Series:
    name = str(question["classifier"])
    any_target = rows["target"].isna().to_numpy()
    targeted, plain = rows[~any_target], rows[any_target].reset_index(drop=True)
    nearest = plain.empty
    base = _nearest(targeted) if nearest else plain
    pairs = None if targeted.empty else distribution(targeted, name, class_names)
    dist = distribution(base, name, class_names)
    return Series(name, store, question, base, dist, pairs=pairs, nearest=nearest)


def distribution(rows: pd.DataFrame, name: str, class_names: Sequence[str] = ()) -> Distribution:
    """The distribution of rows of `radii_frame`."""
    where = rows["dataset"] + "/" + rows["split"] + "/" + rows["index"].astype(str)
    status = rows["status"].to_numpy(dtype=str)
    return Distribution.from_arrays(
        lower=rows["lower"].to_numpy(),
        upper=rows["upper"].to_numpy(),
        label=rows["label"].to_numpy(),
        correct=status != "misclassified",
        target=rows["target"].astype("Float64").to_numpy(dtype=float, na_value=np.nan),
        status=status,
        ids=where.to_numpy(),
        contents=rows["content"].to_numpy(dtype=str),
        cpu_seconds=rows["cpu_seconds"].to_numpy(),
        wall_seconds=rows["wall_seconds"].to_numpy(),
        name=name,
        class_names=class_names,
    )


def _nearest(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per input from one row per input and target: the nearest target; a lower end needs all of them."""
    import pandas as pd

    groups = rows.groupby("index", sort=False)
    best = groups[["upper"]].idxmin(skipna=True) if rows["upper"].notna().any() else None
    first = groups.head(1).set_index("index", drop=False)
    first = first.assign(
        lower=groups["lower"].apply(lambda ends: ends.min(skipna=False)),
        upper=groups["upper"].min(),
        target=pd.array([pd.NA] * len(first), dtype="Int64"),
        **{name: groups[name].sum() for name in ("queries", "timeouts", "memory_errors", "cancelled")},
        **{name: groups[name].sum() for name in ("cpu_seconds", "wall_seconds")},
    )
    if best is not None:
        keys = best["upper"].map(lambda place: rows["key"].get(place) if place == place else None)
        first = first.assign(key=keys.reindex(first.index).fillna(first["key"]))
    low, high, wide = (first[name].to_numpy(float) for name in ("lower", "upper", "tolerance"))
    wide = np.fmax(wide, first["tolerance_percent"].to_numpy(float) / 100 * high)  # NaN where it is absolute
    state = np.where(high - np.where(np.isnan(low), 0.0, low) <= wide * (1 + 1e-9), "closed", "open")
    state = np.where(np.isnan(low) & np.isnan(high), "unsolved", state)
    robust = groups["status"].apply(lambda all_of: bool((all_of == "robust").all())).to_numpy()
    wrong = groups["status"].apply(lambda all_of: bool((all_of == "misclassified").any())).to_numpy()
    state = np.where(wrong, "misclassified", np.where(robust, "robust", state))
    return first.assign(status=state).reset_index(drop=True)


def _named(found: Sequence[Series]) -> Iterator[Series]:
    """The series under names that differ: the network's, with whatever sets it apart from its namesakes."""
    varied = [k for k in (*QUESTION, "run") if k != "classifier" and len({str(s.question[k]) for s in found}) > 1]
    places = _places({one.store for one in found})
    studies = len({(one.store, one.study) for one in found}) > len(places)
    taken: dict[str, int] = {}
    for one in found:
        parts = [one.name, *(_part(key, one.question[key]) for key in varied)]
        if len(places) > 1:
            parts.append(places[one.store])
        if studies:
            parts.append(one.study)
        name = " · ".join(part for part in parts if part)
        taken[name] = taken.get(name, 0) + 1
        name = name if taken[name] == 1 else f"{name} ({taken[name]})"
        pairs = None if one.pairs is None else replace(one.pairs, name=name)
        yield replace(one, name=name, dist=replace(one.dist, name=name), pairs=pairs)


def _places(stores: set[str]) -> dict[str, str]:
    """A short name for every store: its file's, with the folder where that is not enough."""
    stems = {where: Path(where).stem for where in stores}
    twice = {stem for stem in stems.values() if list(stems.values()).count(stem) > 1}
    return {where: f"{Path(where).parent.name}/{stem}" if stem in twice else stem for where, stem in stems.items()}


def _part(key: str, value: Any) -> str:
    if key in ("seed", "run"):
        return "" if value is None else f"{key} {value}"
    return "" if value in (None, "{}") else str(value)


def _plain(value: Any) -> Any:
    """A cell as one of Python's own values, None for what is absent."""
    if value is None or value != value or str(value) == "<NA>":
        return None
    return value.item() if hasattr(value, "item") else value
