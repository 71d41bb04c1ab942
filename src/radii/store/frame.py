"""Stored results as plain columns, and as CSV, Parquet or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii import _check
from radii.errors import InputError, StoreError
from radii.store import schema
from radii.store.select import COLUMNS as NAMED
from radii.store.select import Selection, chosen
from radii.store.sql import Store

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "parquet", "json")

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
}
_ASKED = ("epsilon", "verdict", "reason", "detail", "decider", "cpu_seconds", "wall_seconds", "nodes", "peak_memory")
_WHOSE = ("classifier", "dataset", "split", "index", "label", "property", "target", "norm")
QUERIES: dict[str, Any] = {
    **{name: RADII[name] for name in _WHOSE},
    **{name: schema.queries.c[name] for name in _ASKED},
    "seed": NAMED["seed"],
    "key": NAMED["key"],
}
_WHOLE = ("index", "label", "prediction", "target", "seed")
_REAL = ("lower", "upper")


def radii_frame(store: Store, where: Selection | None = None) -> pd.DataFrame:
    """One row per finished unit with the columns of `RADII`; an absent end is NaN."""
    return _frame(store, chosen(_labelled(RADII), where or Selection()), list(RADII))


def queries_frame(store: Store, where: Selection | None = None) -> pd.DataFrame:
    """One row per query of the selected units, in the order they were asked."""
    query = chosen(_labelled(QUERIES), where or Selection())
    query = query.join(schema.queries, schema.queries.c.units_id == schema.units.c.id)
    return _frame(store, query.order_by(schema.queries.c.id), list(QUERIES))


def _labelled(columns: dict[str, Any]) -> list[Any]:
    return [column.label(name) for name, column in columns.items()]


def _frame(store: Store, query: Any, names: list[str]) -> pd.DataFrame:
    import pandas as pd

    with store.read() as connection:
        rows = connection.execute(query).all()
    frame = pd.DataFrame.from_records([tuple(row) for row in rows], columns=names)
    kinds = dict.fromkeys([name for name in _WHOLE if name in names], "Int64")
    kinds |= dict.fromkeys([name for name in _REAL if name in names], "float64")
    return frame.astype(kinds)


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
    if format == "csv":
        return str(frame.to_csv(index=False))
    # Through Python's json, since pandas' own writer rounds to 15 places.
    plain = frame.astype(object).where(frame.notna(), None)
    return json.dumps(plain.to_dict("records"), ensure_ascii=False, allow_nan=False) + "\n"
