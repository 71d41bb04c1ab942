"""Reads counts, sizes, plans and alarms."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, select

from radii.problem import Status
from radii.store import schema
from radii.store._claims import SKEW, clock
from radii.store._put import Alarm
from radii.store._rows import classifier_of, mapping, sound
from radii.store.engine import file_of
from radii.store.record import ClassifierRecord
from radii.store.select import COLUMNS, Selection, chosen, matching


@dataclass(frozen=True, kw_only=True)
class Info:
    """What a store holds: rows by table, size in bytes, the schema's version and the names of its studies."""

    where: str
    schema: int
    size_bytes: int
    rows: dict[str, int]
    statuses: dict[str, int]
    studies: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the units of one classifier are: `statuses` counts the finished ones, `claimed` those in work.

    `width` is the mean of upper − lower over the open ones that have both ends; None when there are none.
    """

    classifier: str
    planned: int
    statuses: dict[str, int]
    claimed: int
    width: float | None = None

    @property
    def done(self) -> int:
        """How many are finished, whatever came out."""
        return sum(self.statuses.values())


def numbers(connection: Connection, where: Selection | None) -> list[int]:
    """The row numbers of the selected finished units, in a stable order; of all, also those that belong to nothing."""
    known = list(connection.execute(chosen([schema.units.c.id], where or Selection())).scalars())
    if where is not None:
        return known
    every = connection.execute(select(schema.radii.c.units_id).order_by(schema.radii.c.units_id)).scalars()
    seen = set(known)
    return known + [number for number in every if number not in seen]


def planned(connection: Connection, study: str) -> list[int]:
    """The row numbers of a study's units, finished or not."""
    query = chosen([schema.units.c.id], Selection(study=(study,)), finished=False)
    return list(connection.execute(query).scalars())


def finish_times(connection: Connection, keys: list[str]) -> dict[str, float]:
    """When the units with these keys were finished; those that are not are left out."""
    query = select(schema.units.c.key, schema.radii.c.finished).join_from(schema.units, schema.radii)
    return {row[0]: row[1] for row in connection.execute(query.where(schema.units.c.key.in_(keys)))}


def _all(connection: Connection, table: Any) -> Any:
    return connection.execute(select(table)).mappings()


def progress(connection: Connection, study: str | None) -> list[Progress]:
    """How far every classifier of a study (or of the whole store) is."""
    ends = schema.radii.c
    gap = (ends.upper - ends.lower).label("gap")
    columns = [schema.classifiers.c.name, schema.units.c.id, ends.status, gap]
    units = matching(columns, Selection(study=(study,) if study else ()), finished=False).subquery()
    live = (schema.claims.c.units_id == units.c.id) & (schema.claims.c.expires > clock(connection))
    claimed = func.sum(case((schema.claims.c.units_id.is_not(None), 1), else_=0))
    counted = (
        select(units.c.name, units.c.status, func.count(), claimed, func.avg(units.c.gap))
        .select_from(units.outerjoin(schema.claims, live))
        .group_by(units.c.name, units.c.status)
    )
    result: dict[str, Progress] = {}
    for name, status, number, busy, width in connection.execute(counted):
        old = result.get(name, Progress(classifier=name, planned=0, statuses={}, claimed=0))
        result[name] = Progress(
            classifier=name,
            planned=old.planned + number,
            statuses=old.statuses | ({status: number} if status else {}),
            claimed=old.claimed + int(busy),
            width=width if status == Status.OPEN else old.width,
        )
    return [result[name] for name in sorted(result)]


def costs(connection: Connection) -> dict[tuple[str, tuple[str, ...]], tuple[int, float]]:
    """Finished units and their CPU seconds, by classifier and (property, norm, search, verifier, measure)."""
    asked = [schema.settings.c[name] for name in ("property", "norm", "search", "verifier")] + [COLUMNS["measure"]]
    spent = [func.count(), func.sum(schema.radii.c.cpu_seconds)]
    query = matching([schema.classifiers.c.name, *asked, *spent], Selection())
    rows = connection.execute(query.group_by(schema.classifiers.c.name, *asked))
    return {(name, tuple(kind)): (number, seconds) for name, *kind, number, seconds in rows}


def finished_since(connection: Connection, study: str | None, moment: float) -> int:
    """How many units of a study (or of the whole store) were finished at that moment or later, by now."""
    where = Selection(study=(study,) if study else ())
    query = matching([func.count()], where).where(schema.radii.c.finished.between(moment, clock(connection) + SKEW))
    return int(connection.execute(query).scalar_one())


def state(connection: Connection) -> tuple[float | None, ...]:
    """Numbers that change whenever a result, a plan or an alarm is added."""
    radii = select(func.count(), func.max(schema.radii.c.finished)).select_from(schema.radii)
    others = (select(func.count()).select_from(table) for table in (schema.plans, schema.alarms, schema.studies))
    return (*connection.execute(radii).one(), *(connection.execute(query).scalar_one() for query in others))


def info(connection: Connection, where: str) -> Info:
    """What the store holds."""
    tables = [table for table in schema.metadata.sorted_tables if table is not schema.about]
    rows = {table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables}
    grouped = select(schema.radii.c.status, func.count()).group_by(schema.radii.c.status)
    counts = {row[0]: row[1] for row in connection.execute(grouped)}
    names = connection.execute(select(schema.studies.c.name).order_by(schema.studies.c.name)).scalars()
    return Info(
        where=where,
        schema=schema.version_of(connection),
        size_bytes=_size(connection),
        rows=rows,
        statuses={status.value: counts.get(status.value, 0) for status in Status},
        studies=tuple(names),
    )


def _size(connection: Connection) -> int:
    if connection.dialect.name == "postgresql":
        whole = select(func.pg_database_size(func.current_database()))
        return int(connection.execute(whole).scalar_one())
    file = file_of(connection.engine.url)
    if not file:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())
    return sum(os.path.getsize(file + end) for end in ("", "-wal") if os.path.exists(file + end))


def classifiers(connection: Connection) -> list[ClassifierRecord]:
    """Every classifier, by name."""
    found = (classifier_of(sound(row, schema.classifiers)) for row in _all(connection, schema.classifiers))
    return sorted(found, key=lambda one: one.name)


def studies(connection: Connection) -> dict[str, dict[str, Any]]:
    """The body of every study, by name."""
    return {row["name"]: mapping(row["body"], f"study {row['name']}") for row in _all(connection, schema.studies)}


def alarms(connection: Connection) -> list[Alarm]:
    """Every contradiction, in the order they were met."""
    columns = [schema.units.c.key, schema.classifiers.c.name, schema.instances.c.dataset, schema.instances.c.index]
    query = chosen([*columns, schema.alarms.c.message], Selection(), finished=False)
    query = query.join(schema.alarms, schema.alarms.c.units_id == schema.units.c.id).order_by(None)
    rows = connection.execute(query.order_by(schema.alarms.c.id))
    return [Alarm(key=key, classifier=c, dataset=d, index=i, message=m) for key, c, d, i, m in rows]
