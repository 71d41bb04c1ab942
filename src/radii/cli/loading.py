"""What `radii stats` and `radii guarantee` read: stores, published tables, and a part of them by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii._check import choice
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.report.content import Content, Series
    from radii.stats import Distribution


@dataclass(frozen=True)
class Part:
    """A part of stored results by name; an empty list asks nothing."""

    study: Sequence[str] = ()
    classifier: Sequence[str] = ()
    label: Sequence[str] = ()
    target: str | None = None


@dataclass(frozen=True)
class Wanted:
    """Classes and a target that were measured."""

    labels: tuple[int, ...] = ()
    target: int | None = None


def loaded(addresses: Sequence[str], part: Part, purpose: str) -> Content:
    """The content of stores and of published tables (.csv); an unknown name is refused with the nearest."""
    from radii.report.content import Content, gather
    from radii.store import Selection

    tables = [one for one in addresses if one.lower().endswith(".csv")]
    stores = [one for one in addresses if one not in tables]
    _known_names(stores, tables, part)
    where = Selection(study=tuple(part.study), classifier=tuple(part.classifier))
    content = gather(stores, where) if stores else Content((), ())
    series = [*content.series, *_published(tables, part.classifier)]
    if not series:
        raise InputError(
            f"radii {purpose}: expected finished radii, got none in {', '.join(addresses)}; run the study first"
        )
    content = replace(content, series=tuple(series))
    if not part.label and part.target is None:
        return content
    return _narrowed(content, stores, where, check_names(series, part.label, part.target))


def labels_of(series: Iterable[Series]) -> list[int]:
    """Every class of the inputs."""
    return sorted({int(label) for one in series for label in set(one.dist.label.tolist()) if label >= 0})


def targets_of(series: Iterable[Series]) -> list[int]:
    """Every target class that was asked for."""
    return sorted({int(t) for one in series if one.pairs is not None for t in set(one.pairs.target.tolist())})


def _known_names(stores: Sequence[str], tables: Sequence[str], part: Part) -> None:
    from radii.stats.published import read_published
    from radii.store import open_store

    studies: list[str] = []
    names: list[str] = []
    for address in stores:
        with open_store(address, create=False) as store:
            studies += store.studies()
            names += [one.name for one in store.classifiers()]
    if part.classifier:
        names += [name for path in tables for name in read_published(path).distributions]
    for name in part.study:
        choice(name, "--study", dict.fromkeys(studies))
    for name in part.classifier:
        choice(name, "--classifier", dict.fromkeys(names))


def _published(paths: Sequence[str], chosen: Sequence[str]) -> list[Series]:
    import pandas as pd

    from radii.report.content import Series
    from radii.stats.published import read_published

    found = []
    for path in paths:
        for name, dist in read_published(path).distributions.items():
            if not chosen or name in chosen:
                title = name if len(paths) == 1 else f"{name} · {Path(path).stem}"
                question = {"classifier": name, "split": "train", "verifier": "published"}
                found.append(Series(title, path, question, pd.DataFrame(), _dressed(dist, title), source=path))
    return found


def _dressed(dist: Distribution, name: str) -> Any:
    """The distribution as users meet it, under a name."""
    from radii.report.distribution import Distribution as Dressed

    return Dressed(**{f.name: getattr(dist, f.name) for f in fields(dist)} | {"name": name})


def check_names(series: Sequence[Series], labels: Sequence[str], target: str | None) -> Wanted:
    """The classes and the target by their numbers; one that was not measured is refused with the nearest."""
    known, targets = labels_of(series), targets_of(series)
    for label in labels:
        choice(label, "--class", map(str, known))
    if target is not None:
        if not targets:
            raise InputError("--target: expected radii towards single classes, got none; measure with target: all")
        choice(target, "--target", map(str, targets))
    return Wanted(tuple(map(int, labels)), None if target is None else int(target))


def _narrowed(content: Content, stores: Sequence[str], where: Any, wanted: Wanted) -> Content:
    """The rows of some classes, or of one target."""
    from radii.report.content import gather

    narrow = replace(where, label=wanted.labels, target=() if wanted.target is None else (wanted.target,))
    kept = list(gather(stores, narrow).series) if stores else []
    if wanted.target is None:
        for one in content.series:
            if str(one.source).lower().endswith(".csv"):
                rows = [k for k, label in enumerate(one.dist.label.tolist()) if label in wanted.labels]
                kept += [replace(one, dist=one.dist.select(rows))] if rows else []
    if not kept:
        raise InputError("--class, --target: expected a network with such radii, got none; leave one of them out")
    return replace(content, series=tuple(kept))
