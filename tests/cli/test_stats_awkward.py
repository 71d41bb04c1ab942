"""Every view of `radii stats` on awkward results: tables without NaN, or one clear line."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
import pytest

from radii.errors import InputError
from radii.report.content import Content, Series
from radii.report.distribution import Distribution
from radii.report.stats_tables import VIEWS, view

NAN = math.nan
AWKWARD: dict[str, dict[str, Any]] = {
    "all open": {"lower": [NAN] * 4, "upper": [NAN] * 4},
    "all misclassified": {"lower": [NAN] * 4, "correct": [0] * 4},
    "identical radii": {"lower": [0.1] * 4, "upper": [0.1] * 4},
    "infinite upper ends": {"lower": [0.1, 0.2] * 2, "upper": [math.inf] * 4},
    "one correct input": {"lower": [0.1] * 4, "upper": [0.2] * 4, "correct": [1, 0, 0, 0]},
}


def content(arrays: dict[str, Any], rows: int = 4) -> Content:
    """Two networks with the same awkward radii, and no store behind them."""
    some = {key: values[:rows] for key, values in arrays.items()}
    series = []
    for name in ("a", "b"):
        dist = Distribution.from_arrays(
            **some, label=[0, 1, 0, 1][:rows], ids=range(rows), cpu_seconds=[1.0] * rows, name=name
        )
        series.append(Series(name, "", {"classifier": name, "split": "test"}, pd.DataFrame(), dist))
    return Content(tuple(series), ())


@pytest.mark.parametrize("name", sorted(VIEWS))
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("data", sorted(AWKWARD))
def test_no_nan_in_any_table(name: str, data: str, rows: int) -> None:
    refusal, shown = "", []
    try:
        shown = view(name, content(AWKWARD[data], rows), 0.1, 0.95)
    except InputError as error:
        refusal = str(error)
    assert shown or "expected" in refusal
    for table in shown:
        text = json.dumps(table.rows, allow_nan=False)  # raises for NaN and for infinity
        assert "nan" not in text.lower()
        assert table.rows or table.note
