"""Sheets: radii in CSV files, as `radii export` writes them or as the tables of the JAIR paper were published."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii._files import regular
from radii.errors import FormatError, InputError
from radii.report.arrays import rows_of
from radii.report.content import Series, grouped
from radii.report.distribution import Distribution
from radii.store import QUESTION, Selection
from radii.store.frame import RADII, ends_in_order

if TYPE_CHECKING:
    import pandas as pd

ORIGIN = "Read from a table, not from a store: alarms, evidence, witnesses and hardware are not known here."
_EXPORTED = ("classifier", "dataset", "split", "index", "label", "lower", "upper", "status")
_PUBLISHED = ("network", "split", "image_id", "label", "lower", "upper", "seconds")
_WHOLE = ("index", "label", "prediction", "target", "seed")
_COUNTS = ("queries", "timeouts", "memory_errors", "cancelled", "nodes", "peak_memory")
_NUMBERS = ("lower", "upper", "cpu_seconds", "wall_seconds", "tolerance", "tolerance_percent")


def is_sheet(address: object) -> bool:
    """Whether an address names a CSV file and not a store."""
    return isinstance(address, (str, Path)) and str(address).lower().endswith(".csv")


def sheet_series(path: str | Path, where: Selection | None = None) -> list[Series]:
    """The radii in a CSV file, one series per network and question; `where` picks some of them."""
    columns = _header(path)
    asked = where or Selection()
    if asked.study:
        raise InputError(f"--study: expected a store, which knows of studies, got the table {path}")
    if set(_EXPORTED) <= set(columns):
        frame = ends_in_order(_picked(_exported(path), asked), str(path))
        return [] if frame.empty else list(grouped(frame, str(path), ()))
    if set(_PUBLISHED) <= set(columns):
        return list(_published(path, asked))
    between = "; is it separated by semicolons?" if len(columns) == 1 and ";" in columns[0] else ""
    raise FormatError(
        f"{path}: expected the columns of radii export ({', '.join(_EXPORTED)}, …) or of a published table "
        f"({', '.join(_PUBLISHED)}), got {', '.join(columns[:8]) or 'none'}{between}"
    )


def _header(path: str | Path) -> list[str]:
    def fail(said: str) -> InputError:
        return InputError(f"{path}: {said}")

    with regular(Path(path), "a CSV file", fail) as (stream, _):
        try:
            with io.TextIOWrapper(stream, encoding="utf-8", newline="") as text:
                return next(csv.reader(text), [])
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise fail(f"expected a readable CSV file, got {error}") from None


def _exported(path: str | Path) -> pd.DataFrame:
    import pandas as pd

    text = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame = pd.DataFrame({name: text.get(name, "") for name in RADII}, index=text.index)
    try:
        for name in (*_WHOLE, *_COUNTS):
            frame[name] = pd.to_numeric(frame[name].replace("", None)).astype("Int64")
        for name in _NUMBERS:  # by Python, which reads every digit; pandas is quicker and may miss the last one
            frame[name] = [float(value) if value else math.nan for value in frame[name]]
    except (ValueError, TypeError) as error:
        raise FormatError(f"{path}: expected numbers in the column {name}, got: {error}") from None
    frame["index"] = frame["index"].astype(int)
    frame["property_parameters"] = frame["property_parameters"].replace("", "{}")
    return frame


def _picked(frame: pd.DataFrame, where: Selection) -> pd.DataFrame:
    for one in fields(where):
        if wanted := getattr(where, one.name):
            frame = frame[frame[one.name].isin(wanted)]
    return frame.reset_index(drop=True)


def _published(path: str | Path, where: Selection) -> Iterator[Series]:
    """One series per network and run of the paper's tables."""
    from radii.stats.published import read_published

    for name, dist in read_published(path).distributions.items():
        rows = [k for k, label in enumerate(dist.label.tolist()) if not where.label or label in where.label]
        if not rows or (where.classifier and name not in where.classifier) or where.target:
            continue
        part = dist.select(rows)
        dressed = Distribution(**{f.name: getattr(part, f.name) for f in fields(part)})
        question: dict[str, Any] = dict.fromkeys(QUESTION, "–") | {"classifier": name, "run": 1}
        question |= {"split": "train", "verifier": "published", "property_parameters": "{}"}
        yield Series(name, str(path), question, rows_of(dressed, name), dressed)
