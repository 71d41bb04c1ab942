"""Writes finished units; what is found out later about the same unit narrows its radius or reach."""

from __future__ import annotations

import dataclasses
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select

from radii.errors import Contradiction, RadiiError, StoreError
from radii.problem import Radius, Result
from radii.problem.radius import Cost
from radii.store import schema
from radii.store._register import Register
from radii.store._rows import chunks, query_row, result_of, result_row, sound, upsert, witness_row
from radii.store.record import Record, canonical


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Two results about one unit that cannot both be right; the store keeps the first."""

    key: str
    classifier: str
    dataset: str
    index: int
    message: str


def put(connection: Connection, register: Register, records: Sequence[Record]) -> list[Alarm]:
    """Store the records and give back what contradicts the store or an earlier record of the same unit."""
    alarms: list[Alarm] = []
    first = {record.unit.key: record for record in reversed(records)}
    if len(first) < len(records):
        again = [record for record in records if record is not first[record.unit.key]]
        once = [record for record in records if record is first[record.unit.key]]
        return put(connection, register, once) + put(connection, register, again)
    for part in chunks(records):
        numbers = register.units(connection, [record.unit for record in part])
        before = _before(connection, numbers)
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("radii", "queries", "witnesses", "evidence")}
        for number, record in zip(numbers, part, strict=True):
            try:
                old = _stored(before[number], record.unit.setting.epsilon) if number in before else None
                _collect(rows, connection, register, number, record, old)
                if record.result.alarm:
                    alarms.append(_alarm(connection, number, record, record.result.alarm))
            except (Contradiction, StoreError) as error:
                alarms.append(_alarm(connection, number, record, str(error)))
        upsert(connection, schema.radii, rows["radii"])
        upsert(connection, schema.witnesses, rows["witnesses"])
        upsert(connection, schema.evidence, rows["evidence"])
        if rows["queries"]:
            connection.execute(schema.queries.insert(), rows["queries"])
        connection.execute(delete(schema.claims).where(schema.claims.c.units_id.in_(numbers)))
    return alarms


def joined(old: Result, new: Result) -> Result:
    """What both say of one unit, costs added; raises `Contradiction` when they cannot both hold."""
    costs = {
        one.name: getattr(old.cost, one.name) + getattr(new.cost, one.name) for one in dataclasses.fields(Cost)
    } | {"peak_memory": max(old.cost.peak_memory, new.cost.peak_memory)}
    if isinstance(old, Radius) and isinstance(new, Radius):
        return dataclasses.replace(_narrowed(old, new), cost=Cost(**costs))
    if isinstance(old, Radius) or isinstance(new, Radius):
        raise StoreError("a radius and a reach of one unit: the key of one of them is wrong")
    return dataclasses.replace(new.narrow(old), cost=Cost(**costs))


def _narrowed(old: Radius, new: Radius) -> Radius:
    if old.misclassified != new.misclassified:
        raise Contradiction("misclassified in one run and classified correctly in another: the network is not stable")
    return new if new.misclassified else new.narrow(old)


def _before(connection: Connection, numbers: list[int]) -> dict[int, Any]:
    found = select(schema.radii).where(schema.radii.c.units_id.in_(numbers))
    return {row["units_id"]: row for row in connection.execute(found).mappings()}


def _stored(row: Any, epsilon: float | None) -> Result:
    """The result of a stored row; one that cannot be read is not overwritten."""
    try:
        return result_of(sound(row, schema.radii), epsilon)
    except RadiiError as error:
        raise StoreError(f"the stored row is damaged ({error}), so it stays; `radii check` lists such rows") from None


def _collect(
    rows: dict[str, list[dict[str, Any]]],
    connection: Connection,
    register: Register,
    number: int,
    record: Record,
    old: Result | None,
) -> None:
    new = record.result
    both = new if old is None else joined(old, new)
    rows["radii"].append(
        {
            "units_id": number,
            **result_row(both),
            "budget": canonical(dict(record.unit.budget)),
            "environments_id": record.environment and register.environment(connection, record.environment),
            "finished": record.finished,
        }
    )
    rows["queries"] += [query_row(query, number) for query in record.queries]
    # What belongs to an end is replaced only where the new result gave that end.
    if new.witness is not None and both.witness is new.witness:
        rows["witnesses"].append(witness_row(new.witness, number))
    if record.evidence is not None and both.lower == new.lower:
        data = zlib.compress(record.evidence.data, 6)
        rows["evidence"].append({"units_id": number, "kind": record.evidence.kind, "data": data})
    elif old is not None and both.lower != old.lower:  # the stored evidence shows a smaller radius than is proven now
        connection.execute(delete(schema.evidence).where(schema.evidence.c.units_id == number))


def _alarm(connection: Connection, number: int, record: Record, message: str) -> Alarm:
    connection.execute(schema.alarms.insert().values(units_id=number, message=message, raised=time.time()))
    unit = record.unit
    return Alarm(
        key=unit.key,
        classifier=unit.classifier.name,
        dataset=unit.instance.dataset,
        index=unit.instance.index,
        message=message,
    )
