"""What `radii stats` and `radii guarantee` read: stores, published tables, and a part of them by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from radii._check import choice
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.report.content import Content, Series


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
    """The content of stores and of tables (.csv); an unknown name is refused with the nearest."""
    from radii.report.content import gather
    from radii.store import Selection

    _known_names(addresses, part)
    where = Selection(study=tuple(part.study), classifier=tuple(part.classifier))
    content = gather(addresses, where)
    if content.empty and not content.reaches:
        raise InputError(
            f"radii {purpose}: expected finished radii, got none in {', '.join(addresses)}; run the study first"
        )
    if not part.label and part.target is None:
        return content
    wanted = check_names(content.series, part.label, part.target)
    narrow = replace(where, label=wanted.labels, target=() if wanted.target is None else (wanted.target,))
    kept = gather(addresses, narrow)
    if kept.empty:
        raise InputError("--class, --target: expected a network with such radii, got none; leave one of them out")
    return replace(content, series=kept.series)


def labels_of(series: Iterable[Series]) -> list[int]:
    """Every class of the inputs."""
    return sorted({int(label) for one in series for label in set(one.dist.label.tolist()) if label >= 0})


def targets_of(series: Iterable[Series]) -> list[int]:
    """Every target class that was asked for."""
    return sorted({int(t) for one in series if one.pairs is not None for t in set(one.pairs.target.tolist())})


def _known_names(addresses: Sequence[str], part: Part) -> None:
    from radii.report.sheets import is_sheet, sheet_series
    from radii.store import open_store

    studies: list[str] = []
    names: list[str] = []
    for address in addresses:
        if is_sheet(address):
            names += [str(one.question["classifier"]) for one in sheet_series(address)] if part.classifier else []
            continue
        with open_store(address, create=False) as store:
            studies += store.studies()
            names += [one.name for one in store.classifiers()]
    for name in part.study:
        choice(name, "--study", dict.fromkeys(studies))
    for name in part.classifier:
        choice(name, "--classifier", dict.fromkeys(names))


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
