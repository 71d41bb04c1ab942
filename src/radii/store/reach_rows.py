"""Rows of `reaches_frame` in groups of one question each, as the columns that a distribution of reaches takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from radii.errors import InputError
from radii.problem.property import find, make, printed, without_threshold
from radii.problem.quantity import RANGES
from radii.store.frame import QUESTION

if TYPE_CHECKING:
    import pandas as pd

REACH_QUESTION = (*QUESTION, "target", "epsilon")  # reaches that agree in all of these form one distribution


def reach_groups(frame: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """One group of rows per network, question and ε; an input that was measured again counts once, the last time."""
    for key, rows in frame.groupby(list(REACH_QUESTION), dropna=False, sort=True):
        once = rows.drop_duplicates(["index", "content"], keep="last").reset_index(drop=True)
        yield {name: _plain(value) for name, value in zip(REACH_QUESTION, key, strict=True)}, once


def reach_columns(question: dict[str, Any], rows: pd.DataFrame) -> dict[str, Any]:
    """The keywords of `ReachDistribution.from_arrays` for the rows of one group."""
    unit = str(rows["unit"].iloc[0])
    prediction = rows["prediction"].astype("Float64").to_numpy(dtype=float, na_value=float("nan"))
    where = rows["dataset"] + "/" + rows["split"] + "/" + rows["index"].astype(str)
    return {
        "lower": rows["lower"].to_numpy(),
        "upper": rows["upper"].to_numpy(),
        "label": rows["label"].to_numpy(),
        "correct": (prediction != prediction) | (prediction == rows["label"].to_numpy()),
        "status": rows["status"].to_numpy(dtype=str),
        "least": rows["extremum"].iloc[0] == "least",
        "epsilon": float(question["epsilon"]),
        "quantity": quantity_name(question),
        "unit": unit,
        "norm": str(question["norm"]),
        "bounds": RANGES.get(unit),
        "ids": where.to_numpy(),
        "contents": rows["content"].to_numpy(dtype=str),
        "cpu_seconds": rows["cpu_seconds"].to_numpy(),
        "wall_seconds": rows["wall_seconds"].to_numpy(),
        "keys": rows["key"].to_numpy(dtype=str),
    }


def quantity_name(question: dict[str, Any]) -> str:
    """What the quantity of a question is called; the property's text where its kind is not known here."""
    kind, values = str(question["property"]), json.loads(str(question["property_parameters"]))
    if question.get("target") is not None:
        values = {**values, "target": int(question["target"])}
    try:
        return make(kind, without_threshold(find(kind), values)).quantity_name
    except InputError:
        return printed(kind, values)


def _plain(value: Any) -> Any:
    """A cell as one of Python's own values, None for what is absent."""
    if value is None or str(value) in ("<NA>", "nan"):
        return None
    return value.item() if hasattr(value, "item") else value
