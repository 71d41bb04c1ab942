"""Between records and table rows."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Boolean, Column, Connection, Float, Insert, Integer, LargeBinary, RowMapping, Table, Text
from sqlalchemy.dialects import postgresql, sqlite

from radii._files import HARMLESS, RATIO
from radii.errors import StoreError
from radii.problem import Percent, Proof, Radius, Reach, Result, Tolerance, Witness
from radii.problem.radius import Cost
from radii.store.record import ClassifierRecord, Environment, InstanceRecord, QueryRecord, Setting, canonical

Item = TypeVar("Item")
Row = RowMapping

COSTS = tuple(one.name for one in dataclasses.fields(Cost))
CHUNK = 500  # values in one IN list or insert: far below the limits of every database


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """The items in lists of at most `size`."""
    source = iter(items)
    while part := list(islice(source, size)):
        yield part


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert the rows; those already there by a unique column are left alone."""
    if rows:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


def upsert(connection: Connection, table: Table, rows: list[dict[str, Any]], key: str = "units_id") -> None:
    """Insert the rows; those already there by the key are replaced."""
    if rows:
        statement = _insert(connection, table)
        others = {name: statement.excluded[name] for name in rows[0] if name != key}
        connection.execute(statement.on_conflict_do_update(index_elements=[key], set_=others), rows)


def _insert(connection: Connection, table: Table) -> Any:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement: Insert = dialect.insert(table)
    return statement


def sound(row: Row, table: Table) -> Row:
    """The row, once every column of the table holds what it is made for; SQLite itself would let anything in."""
    for name, fits, wanted in _columns(table):
        if not fits(row[name]):
            raise StoreError(f"{table.name} {name}: expected {wanted}, got {row[name]!r:.80}")
    return row


@cache
def _columns(table: Table) -> list[tuple[str, Callable[[Any], bool], str]]:
    return [(column.name, *fitting(column)) for column in table.c]


def fitting(column: Column[Any]) -> tuple[Callable[[Any], bool], str]:
    """Whether a value belongs into a column, and what people call such values."""
    kinds: dict[type, tuple[tuple[type, ...], str]] = {
        Boolean: ((bool,), "true or false"),
        Float: ((int, float), "a finite number"),
        Integer: ((int,), "a whole number"),
        LargeBinary: ((bytes,), "bytes"),
        Text: ((str,), "text"),
    }
    types, wanted = next(kind for base, kind in kinds.items() if isinstance(column.type, base))
    allowed = (*types, type(None)) if column.nullable else types

    def fits(value: Any) -> bool:
        return isinstance(value, allowed) and (not isinstance(value, float) or math.isfinite(value))

    return fits, wanted


def mapping(text: str, name: str) -> dict[str, Any]:
    """The JSON object that a column holds."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise StoreError(f"{name}: expected a JSON object, got {text!r:.80}")
    return value


_EXTREMA = ("greatest", "least")


def result_row(result: Result) -> dict[str, Any]:
    """The columns of a radius or a reach, without its unit and its witness."""
    proof = result.proof
    radius = result if isinstance(result, Radius) else Radius()
    reach = result if isinstance(result, Reach) else None
    return {
        "lower": result.lower,
        "upper": result.upper,
        "status": result.status.value,
        "tolerance": 0.0 if isinstance(result.tolerance, Percent) else result.tolerance,
        "tolerance_percent": result.tolerance.percent if isinstance(result.tolerance, Percent) else None,
        "limit": radius.limit,
        "misclassified": radius.misclassified,
        "critical_termination": radius.critical_termination,
        "prediction": result.prediction,
        "proof": proof.kind if proof else None,
        "arithmetic": proof.arithmetic if proof else None,
        "tool": proof.tool if proof else None,
        "note": result.note,
        "extremum": None if reach is None else _EXTREMA[reach.least],
        "start": None if reach is None else reach.start,
        "resolution": None if reach is None else reach.resolution,
        "unit": None if reach is None else reach.unit,
        **{name: getattr(result.cost, name) for name in COSTS},
    }


def result_of(row: Row, epsilon: float | None, witness: Witness | None = None) -> Result:
    """The result of a row: a reach where the setting has an ε, a radius elsewhere."""
    if epsilon is None:
        if row["extremum"] is not None:
            raise StoreError(f"radii extremum: expected none in the row of a radius, got {row['extremum']!r:.80}")
        return radius_of(row, witness)
    if row["tolerance_percent"] is not None:
        raise StoreError(f"radii tolerance_percent: expected none of a reach, got {row['tolerance_percent']!r:.80}")
    if row["extremum"] not in _EXTREMA or row["start"] is None or row["resolution"] is None:
        raise StoreError(f"radii extremum: expected greatest or least, with a start, got {row['extremum']!r:.80}")
    return Reach(
        epsilon,
        row["lower"],
        row["upper"],
        least=row["extremum"] == "least",
        tolerance=row["tolerance"],
        start=row["start"],
        resolution=row["resolution"],
        unit=row["unit"] or "",
        witness=witness,
        proof=None if row["proof"] is None else Proof(row["proof"], row["arithmetic"], row["tool"]),
        prediction=row["prediction"],
        note=row["note"],
        cost=Cost(**{name: row[name] for name in COSTS}),
    )


def _tolerance(row: Row) -> Tolerance:
    gap, percent = row["tolerance"], row["tolerance_percent"]
    if percent is None:
        return float(gap)
    if gap != 0:
        raise StoreError(f"radii tolerance: expected 0 beside a relative one, got {gap!r:.80} beside {percent!r:.80} %")
    return Percent(percent)


def radius_of(row: Row, witness: Witness | None = None) -> Radius:
    """The radius of a row."""
    proof = None if row["proof"] is None else Proof(row["proof"], row["arithmetic"], row["tool"])
    return Radius(
        lower=row["lower"],
        upper=row["upper"],
        tolerance=_tolerance(row),
        limit=row["limit"],
        misclassified=bool(row["misclassified"]),
        critical_termination=bool(row["critical_termination"]),
        prediction=row["prediction"],
        witness=witness,
        proof=proof,
        note=row["note"],
        cost=Cost(**{name: row[name] for name in COSTS}),
    )


def classifier_row(record: ClassifierRecord) -> dict[str, Any]:
    return {**vars_of(record), "metadata": canonical(dict(record.metadata))}


def classifier_of(row: Row) -> ClassifierRecord:
    return ClassifierRecord(
        fingerprint=row["fingerprint"],
        name=row["name"],
        path=row["path"],
        metadata=mapping(row["metadata"], "classifier metadata"),
    )


def instance_of(row: Row) -> InstanceRecord:
    return InstanceRecord(**{one.name: row[one.name] for one in dataclasses.fields(InstanceRecord)})


def setting_row(record: Setting) -> dict[str, Any]:
    parameters = ("property_parameters", "search_parameters")
    texts = {name: canonical(dict(getattr(record, name))) for name in parameters}
    return {**vars_of(record), **texts, "key": record.key}


def setting_of(row: Row) -> Setting:
    values = {one.name: row[one.name] for one in dataclasses.fields(Setting)}
    for name in ("property_parameters", "search_parameters"):
        values[name] = mapping(values[name], name)
    return Setting(**values)


def environment_row(record: Environment) -> dict[str, Any]:
    return {"key": record.key, "body": canonical(vars_of(record))}


def environment_of(row: Row) -> Environment:
    """The environment of a row; what another version of radii may have added is left out."""
    body = mapping(row["body"], "environment")
    known = {one.name: body[one.name] for one in dataclasses.fields(Environment) if one.name in body}
    usual = vars_of(Environment(seed=0))
    for name, value in known.items():
        if not isinstance(value, type(usual[name])) and not (name == "seed" and value is None):
            raise StoreError(f"environment {name}: expected {type(usual[name]).__name__}, got {value!r:.80}")
    return Environment(**known)


def query_row(record: QueryRecord, unit: int) -> dict[str, Any]:
    return {**vars_of(record), "units_id": unit}


def query_of(row: Row) -> QueryRecord:
    return QueryRecord(**{one.name: row[one.name] for one in dataclasses.fields(QueryRecord)})


def witness_row(witness: Witness, unit: int) -> dict[str, Any]:
    return {
        "units_id": unit,
        "x": pack_array(witness.x),
        "outputs": pack_array(witness.outputs),
        "distance": float(witness.distance),
        "prediction": int(witness.prediction),
    }


def witness_of(row: Row) -> Witness:
    return Witness(
        x=unpack_array(row["x"]),
        outputs=unpack_array(row["outputs"]),
        distance=row["distance"],
        prediction=row["prediction"],
    )


def vars_of(record: Any) -> dict[str, Any]:
    """The fields of a record by name, one level deep."""
    return {one.name: getattr(record, one.name) for one in dataclasses.fields(record)}


def pack_array(array: NDArray[np.floating[Any]]) -> bytes:
    """An array of floats with its shape and precision, compressed."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return zlib.compress(buffer.getvalue(), 6)


def inflated(blob: bytes) -> bytes:
    """What compressed bytes of a store hold; `zlib.error` where that is far more than results do, or damaged."""
    stream = zlib.decompressobj()
    found = stream.decompress(blob, max(HARMLESS, RATIO * len(blob)))
    if not stream.eof:
        raise zlib.error("cut off, or more than 200 times its size")
    return found


def unpack_array(blob: bytes) -> NDArray[np.floating[Any]]:
    """The array of `pack_array`."""
    try:
        array: NDArray[np.floating[Any]] = np.load(io.BytesIO(inflated(blob)), allow_pickle=False)
    except (zlib.error, ValueError, OSError, EOFError) as error:
        raise StoreError(f"witness: expected a compressed array, got damaged bytes ({error})") from None
    return array
