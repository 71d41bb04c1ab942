"""Reads records row by row: one that cannot be read is an item with its faults, and hides none of the others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, exists, func, or_, select

from radii.errors import RadiiError, StoreError
from radii.store import schema
from radii.store._rows import (
    classifier_of,
    environment_of,
    inflated,
    instance_of,
    mapping,
    query_of,
    result_of,
    setting_of,
    sound,
    witness_of,
)
from radii.store.record import Evidence, Record, Unit

Made = TypeVar("Made")
_RESULTS = (schema.witnesses, schema.evidence, schema.queries)  # what a finished unit leaves beside its radius
PORTION = 2**26  # bytes of compressed evidence that are read at once
_SHARED = ("classifiers", "settings", "environments")  # one row serves many units: read once


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A stored row: its record, None where there is no reading it, what is wrong with the row, and its stored status.

    A witness or a piece of evidence that is damaged is a fault, and left out of the record.
    """

    classifier: str
    dataset: str
    index: int
    key: str
    record: Record | None
    faults: tuple[str, ...] = ()
    status: str = ""


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A unit without a result: the study that plans it, and whether parts of a result are still there."""

    study: str
    classifier: str
    dataset: str
    index: int
    key: str
    remains: bool


def portions(connection: Connection, numbers: list[int]) -> Iterator[list[int]]:
    """The rows in order, in parts whose evidence may be in memory at once."""
    place, size = schema.evidence.c.units_id, func.length(schema.evidence.c.data)
    sizes = {row[0]: row[1] or 0 for row in connection.execute(select(place, size).where(place.in_(numbers)))}
    part: list[int] = []
    held = 0
    for number in numbers:
        held += sizes.get(number, 0)
        if part and held > PORTION:
            yield part
            part, held = [], sizes.get(number, 0)
        part.append(number)
    if part:
        yield part


def examined(connection: Connection, numbers: list[int], evidence: bool = True) -> list[Examined]:
    """The records of these rows with witnesses, evidence and queries, each with what is wrong with it."""
    reader = _Reader(connection, numbers, evidence=evidence)
    return [reader.item(number) for number in numbers]


def units(connection: Connection, numbers: list[int]) -> dict[int, Unit]:
    """The units of these rows, without a budget."""
    reader = _Reader(connection, numbers, whole=False)
    return {number: reader.unit(number) for number in numbers}


def missing(connection: Connection) -> list[Missing]:
    """Planned units without a result, and units that have lost theirs, by study and place."""
    unit, place = schema.units.c, schema.instances.c
    remains = or_(*(exists().where(table.c.units_id == unit.id) for table in _RESULTS))
    source = (
        schema.units.join(schema.classifiers)
        .join(schema.instances)
        .outerjoin(schema.plans, schema.plans.c.units_id == unit.id)
        .outerjoin(schema.studies, schema.studies.c.id == schema.plans.c.studies_id)
        .outerjoin(schema.radii, schema.radii.c.units_id == unit.id)
    )
    columns = (schema.studies.c.name, schema.classifiers.c.name, place.dataset, place.index, unit.key, remains)
    query = select(*columns).select_from(source).where(schema.radii.c.units_id.is_(None))
    query = query.where(or_(schema.plans.c.units_id.is_not(None), remains))
    rows = connection.execute(query.order_by(schema.studies.c.name, schema.classifiers.c.name, place.index, unit.id))
    return [
        Missing(study=study or "", classifier=c, dataset=d, index=i, key=key, remains=bool(left))
        for study, c, d, i, key, left in rows
    ]


def planned_keys(connection: Connection, study: str) -> list[str]:
    """The stored keys of a study's units."""
    plan = schema.plans.join(schema.studies).join(schema.units, schema.units.c.id == schema.plans.c.units_id)
    return list(
        connection.execute(select(schema.units.c.key).select_from(plan).where(schema.studies.c.name == study)).scalars()
    )


class _Reader:
    """The rows of some units and of what they point to; nothing is trusted before it is asked for."""

    def __init__(self, connection: Connection, numbers: list[int], whole: bool = True, evidence: bool = True) -> None:
        unit = schema.units
        own = select(unit.c.id, unit.c.key, unit.c.classifiers_id, unit.c.settings_id, unit.c.instances_id)
        self._units = {row["id"]: row for row in connection.execute(own.where(unit.c.id.in_(numbers))).mappings()}
        inputs = {row["instances_id"] for row in self._units.values()}
        self._tables: dict[str, dict[Any, Any]] = {
            "classifiers": _rows(connection, schema.classifiers),
            "settings": _rows(connection, schema.settings),
            "environments": _rows(connection, schema.environments) if whole else {},
            "instances": _rows(connection, schema.instances, schema.instances.c.id, list(inputs)),
        }
        self._queries: dict[int, list[Any]] = {}
        self._made: dict[tuple[str, Any], Any] = {}
        if not whole:
            return
        for table in (schema.radii, schema.witnesses, schema.evidence):
            among = numbers if evidence or table is not schema.evidence else []
            self._tables[table.name] = _rows(connection, table, table.c.units_id, among)
        asked = select(schema.queries).where(schema.queries.c.units_id.in_(numbers)).order_by(schema.queries.c.id)
        for row in connection.execute(asked).mappings():
            self._queries.setdefault(row["units_id"], []).append(row)

    def unit(self, number: int) -> Unit:
        """The unit of a row, whose content must be what its key says."""
        row = self._units.get(number)
        if row is None:
            raise StoreError(f"units: expected a row {number}, got none")
        unit = Unit(
            classifier=self._get("classifiers", row["classifiers_id"], classifier_of),
            instance=self._get("instances", row["instances_id"], instance_of),
            setting=self._get("settings", row["settings_id"], setting_of),
        )
        if unit.key != row["key"]:
            raise StoreError(
                f"expected the content that its key {row['key']} was made from, got content of key {unit.key}: "
                "the network, the input, its label or the question was changed"
            )
        return unit

    def item(self, number: int) -> Examined:
        """The row with what is wrong with it."""
        faults: list[str] = []
        row = self._tables["radii"][number]
        witness = _tried(faults, lambda: self._get("witnesses", number, witness_of))
        evidence = _tried(faults, lambda: self._get("evidence", number, _evidence))
        result = _tried(faults, lambda: result_of(sound(row, schema.radii), self._epsilon(number), witness))
        if row["proof"] is None and (row["arithmetic"] is not None or row["tool"] is not None):
            faults.append(f"arithmetic {row['arithmetic']!r} by {row['tool']!r} of a proof, but no proof")
        unit = _tried(faults, lambda: replace(self.unit(number), budget=mapping(row["budget"], "budget")))
        queries = _tried(faults, lambda: tuple(query_of(sound(one, schema.queries)) for one in self._asked(number)))
        environment = _tried(faults, lambda: self._get("environments", row["environments_id"], environment_of))
        record = None
        if unit is not None and result is not None:
            record = Record.of(
                unit,
                result,
                queries=queries or (),
                evidence=evidence,
                environment=environment,
                finished=row["finished"],
            )
        link: Any = self._units.get(number, {})
        place = self._tables["instances"].get(link.get("instances_id"), {})
        return Examined(
            classifier=str(self._tables["classifiers"].get(link.get("classifiers_id"), {}).get("name", "?")),
            dataset=str(place.get("dataset", "?")),
            index=place.get("index", -1),
            key=str(link.get("key", f"row {number}")),
            record=record,
            faults=tuple(faults),
            status=str(row["status"]),
        )

    def _epsilon(self, number: int) -> float | None:
        """The ε whose reach was asked; None where a radius was, or where the setting is lost."""
        link: Any = self._units.get(number, {})
        setting = self._tables["settings"].get(link.get("settings_id"), {})
        epsilon: float | None = setting.get("epsilon")
        return epsilon

    def _asked(self, number: int) -> list[Any]:
        return self._queries.get(number, [])

    def _get(self, table: str, number: Any, make: Callable[[Any], Made]) -> Made | Any:
        """What a row of a table says; None where there is no row, which only some tables allow."""
        if (table, number) in self._made:
            return self._made[table, number]
        row = self._tables[table].get(number)
        if row is None:
            if table in ("classifiers", "instances", "settings"):
                raise StoreError(f"{table}: expected a row {number}, got none")
            return None
        made = make(sound(row, schema.metadata.tables[table]))
        if table in _SHARED:
            self._made[table, number] = made
        return made


def _rows(connection: Connection, table: Table, key: Any = None, among: list[int] | None = None) -> dict[Any, Any]:
    column = table.c.id if key is None else key
    query = select(table) if among is None else select(table).where(column.in_(among))
    return {row[column.name]: row for row in connection.execute(query).mappings()}


def _tried(faults: list[str], make: Callable[[], Made]) -> Made | None:
    """What `make` gives; None where it cannot, and why is noted."""
    try:
        return make()
    except (RadiiError, ValueError, TypeError, KeyError) as error:
        faults.append(" ".join(str(error).split()))
        return None


def _evidence(row: Any) -> Evidence:
    try:
        return Evidence(kind=row["kind"], data=inflated(row["data"]))
    except zlib.error as error:
        raise StoreError(f"evidence: expected compressed bytes, got damaged ones ({error})") from None
