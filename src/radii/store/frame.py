"""Stored results as plain columns, and as CSV, Parquet or JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Float, Integer, Table, select

from radii import _check
from radii.errors import InputError, StoreError
from radii.store import schema
from radii.store._rows import fitting
from radii.store.select import COLUMNS as NAMED
from radii.store.select import Selection, matching
from radii.store.sql import Store

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "parquet", "json")

ASKED = ("classifier", "dataset", "split", "property", "property_parameters", "norm")  # which network was asked what
QUESTION = (*ASKED, "search", "verifier", "seed")  # and how: radii that agree in all of these form one distribution

# The contract: these columns in this order; more may follow.
RADII: dict[str, Any] = {
    "classifier": NAMED["classifier"],
    "dataset": NAMED["dataset"],
    "split": NAMED["split"],
    "index": schema.instances.c.index,
    "label": NAMED["label"],
    "prediction": schema.radii.c.prediction,
    "property": NAMED["property"],
    "target": NAMED["target"],
    "norm": NAMED["norm"],
    "lower": schema.radii.c.lower,
    "upper": schema.radii.c.upper,
    "status": NAMED["status"],
    "search": NAMED["search"],
    "verifier": NAMED["verifier"],
    "queries": schema.radii.c.queries,
    "timeouts": schema.radii.c.timeouts,
    "memory_errors": schema.radii.c.memory_errors,
    "cancelled": schema.radii.c.cancelled,
    "cpu_seconds": schema.radii.c.cpu_seconds,
    "wall_seconds": schema.radii.c.wall_seconds,
    "seed": NAMED["seed"],
    "property_parameters": schema.settings.c.property_parameters,
    "tolerance": schema.radii.c.tolerance,
    "proof": schema.radii.c.proof,
    "arithmetic": schema.radii.c.arithmetic,
    "nodes": schema.radii.c.nodes,
    "peak_memory": schema.radii.c.peak_memory,
    "note": schema.radii.c.note,
    "key": NAMED["key"],
    "content": schema.instances.c.fingerprint,
    "tolerance_percent": schema.radii.c.tolerance_percent,
}
# The same with the size of the ball after its norm; which end is proven depends on the extremum.
_BEFORE = list(RADII)[: list(RADII).index("norm") + 1]
REACHES: dict[str, Any] = {
    **{name: RADII[name] for name in _BEFORE},
    "epsilon": NAMED["epsilon"],
    **{name: column for name, column in RADII.items() if name not in (*_BEFORE, "tolerance_percent")},
    **{name: schema.radii.c[name] for name in schema.REACH},
}
_ASKED = ("epsilon", "verdict", "reason", "detail", "decider", "cpu_seconds", "wall_seconds", "nodes", "peak_memory")
_WHOSE = ("classifier", "dataset", "split", "index", "label", "property", "target", "norm")
QUERIES: dict[str, Any] = {
    **{name: RADII[name] for name in _WHOSE},
    **{name: schema.queries.c[name] for name in _ASKED},
    "seed": NAMED["seed"],
    "key": NAMED["key"],
}
# Tables with many units to a row: their columns are read once and spread, which is much faster than a joined query.
_PARENTS = {
    schema.classifiers: [schema.classifiers.c.name],
    schema.instances: [schema.instances.c.dataset, schema.instances.c.split, schema.instances.c.index],
    schema.settings: [schema.settings.c.id],
}


def radii_frame(store: Store, where: Selection | None = None) -> pd.DataFrame:
    """One row per finished radius with the columns of `RADII`, by classifier and input; an absent end is NaN."""
    return _frame(store, RADII, replace(where or Selection(), measure=("radius",)), schema.radii)


def reaches_frame(store: Store, where: Selection | None = None) -> pd.DataFrame:
    """One row per finished reach with the columns of `REACHES`, in the same order."""
    return _frame(store, REACHES, replace(where or Selection(), measure=("reach",)), schema.radii)


def queries_frame(store: Store, where: Selection | None = None) -> pd.DataFrame:
    """One row per query of the selected units, in the order they were asked."""
    return _frame(store, QUERIES, where or Selection(), schema.queries)


def _frame(store: Store, columns: dict[str, Any], where: Selection, base: Table) -> pd.DataFrame:
    """The columns by name with one row per row of `base`."""
    import pandas as pd

    own = {name: column for name, column in columns.items() if column.table not in _PARENTS}
    links = [schema.units.c[f"{table.name}_id"] for table in _PARENTS]
    order = schema.queries.c.id if base is schema.queries else schema.units.c.id
    query = matching([*links, *own.values()], where).order_by(order)
    if base is schema.queries:
        query = query.join(schema.queries, schema.queries.c.units_id == schema.units.c.id)
    with store.read() as connection:
        rows = _transposed(connection, query)
        parents = {table: _parent(connection, table, keys, columns) for table, keys in _PARENTS.items()}
    values = {name: _series(name, column, data) for (name, column), data in zip(own.items(), rows[len(links) :])}
    places = []
    for (numbers, names), link in zip(parents.values(), rows):
        place = pd.Index(numbers).get_indexer(pd.Index(link, dtype="int64"))
        places.append(place)
        values |= {name: series.take(place).reset_index(drop=True) for name, series in names.items()}
    frame = pd.DataFrame({name: values[name] for name in columns}, copy=False)
    if base is schema.queries:
        return frame
    return frame.take(np.lexsort(places[::-1])).reset_index(drop=True)


def _transposed(connection: Connection, query: Any) -> list[Any]:
    """The columns of a query's result."""
    result = connection.execute(query)
    width = len(result.keys())
    rows = result.all()
    return list(zip(*rows)) if rows else [()] * width


def _parent(connection: Connection, table: Table, keys: list[Any], columns: dict[str, Any]) -> tuple[Any, Any]:
    """The table's row numbers, in the order of its keys, and its part of the columns."""
    mine = {name: column for name, column in columns.items() if column.table is table}
    numbers, *rest = _transposed(connection, select(table.c.id, *mine.values()).order_by(*keys, table.c.id))
    return numbers, {name: _series(name, column, data) for (name, column), data in zip(mine.items(), rest)}


def _series(name: str, column: Any, data: Any) -> pd.Series[Any]:
    """The values of a column; one that holds something else is refused by its name."""
    import pandas as pd

    try:
        if isinstance(column.type, Float):
            values = np.array(data, dtype=np.float64)
            if not np.isinf(values).any():
                return pd.Series(values)
        elif isinstance(column.type, Integer):
            return pd.Series(list(data), dtype="Int64" if column.nullable else "int64")
        else:
            return pd.Series(list(data), dtype="str")
    except (ValueError, TypeError, OverflowError):
        pass
    fits, wanted = fitting(column)
    odd = next((value for value in data if not fits(value)), None)
    raise StoreError(f"store: expected {wanted} in column {name}, got {odd!r:.80}; `radii check` lists the rows")


def ends_in_order(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """The frame, once no lower end is above its upper end, and no radius negative: statistics of such mean nothing."""
    low, high = frame["lower"].to_numpy(), frame["upper"].to_numpy()
    bounded = "extremum" not in frame  # a reach may be negative: the least margin of a label
    bad = np.flatnonzero((low > high) | (bounded & ((low < 0) | (high < 0))))
    if bad.size:
        row = frame.iloc[int(bad[0])]
        raise StoreError(
            f"store {where}: {row['classifier']}, {row['dataset']} input {row['index']}: expected "
            f"{'0 ≤ ' * bounded}lower ≤ upper, "
            f"got {row['lower']!r} and {row['upper']!r} ({bad.size} such rows); `radii check` lists them"
        )
    return frame


def export(frame: pd.DataFrame, format: str, path: str | Path | None = None) -> str | None:
    """Write the frame to a file; without a path give its text back (csv and json only)."""
    _check.choice(format, "format", FORMATS)
    if format == "parquet":
        _check.optional("pyarrow", "parquet", "Parquet files")
        if path is None:
            raise InputError("format parquet: expected a file to write to, got none; give one with -o FILE")
    try:
        if format == "parquet":
            frame.to_parquet(path, index=False)
            return None
        text = _text(frame, format)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path}: expected a file that can be written, got {error.strerror or error}") from None
    return None


def _text(frame: pd.DataFrame, format: str) -> str:
    rows = list(zip(*(_plain(frame[name]) for name in frame.columns)))
    # Python's own writers keep every digit of a float, and are faster here than those of pandas.
    if format == "json":
        names = list(frame.columns)
        return json.dumps([dict(zip(names, row)) for row in rows], ensure_ascii=False, allow_nan=False) + "\n"
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(rows)
    return buffer.getvalue()


def _plain(series: pd.Series[Any]) -> list[Any]:
    """The values as Python's own, with None for what is absent."""
    absent = series.isna()
    if not absent.any():
        return series.tolist()
    return [None if gone else value for gone, value in zip(absent.tolist(), series.tolist())]
