"""Joins stores, for instance from several machines: results are narrowed, contradictions reported, never averaged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from radii.store._put import Alarm
from radii.store._rows import chunks
from radii.store.record import Record, Unit
from radii.store.sql import Store


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge did: units new to the target, units it had already, renamed classifiers, contradictions."""

    added: int
    known: int
    renamed: dict[str, str]
    alarms: tuple[Alarm, ...]


def merge(target: Store, sources: Sequence[Store]) -> Merged:
    """Bring every record and study of the sources into the target; the sources are only read.

    A classifier whose name belongs to another network in the target gets the start of its fingerprint added.
    Merging the same source again would count its costs twice, so records the target has word for word are skipped.
    """
    added = known = 0
    alarms: list[Alarm] = []
    renamed: dict[str, str] = {}
    for source in sources:
        names = _names(target, source)
        renamed |= {
            one.name: names[one.fingerprint] for one in source.classifiers() if one.name != names[one.fingerprint]
        }
        for part in chunks(source.results(), 50):
            records = [_renamed(record, names) for record in part]
            times = target.finish_times(record.unit.key for record in records)
            added += len(records) - len(times)
            known += len(times)
            alarms += target.put_many([r for r in records if times.get(r.unit.key) != r.finished])
        for name, body in source.studies().items():
            if name not in target.studies():
                target.plan(name, [_unit(unit, names) for unit in source.planned(name)], body)
    return Merged(added=added, known=known, renamed=renamed, alarms=tuple(alarms))


def _names(target: Store, source: Store) -> dict[str, str]:
    taken = {one.name: one.fingerprint for one in target.classifiers()}
    held = {fingerprint: name for name, fingerprint in taken.items()}
    names: dict[str, str] = {}
    for one in source.classifiers():
        free = taken.get(one.name, one.fingerprint) == one.fingerprint
        names[one.fingerprint] = held.get(one.fingerprint) or (
            one.name if free else f"{one.name}-{one.fingerprint[:8]}"
        )
    return names


def _renamed(record: Record, names: dict[str, str]) -> Record:
    return dataclasses.replace(record, unit=_unit(record.unit, names))


def _unit(unit: Unit, names: dict[str, str]) -> Unit:
    classifier = dataclasses.replace(unit.classifier, name=names[unit.classifier.fingerprint])
    return dataclasses.replace(unit, classifier=classifier)
