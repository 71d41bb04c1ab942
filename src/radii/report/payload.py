"""The data that a page's script works on: columns by network, rounded towards the safe side, and pictures."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.report.content import Content, Series, opened
from radii.report.distribution import Distribution
from radii.report.packing import packed
from radii.report.png import Originals, Shown, shown
from radii.report.rounding import down, up
from radii.report.style import PALETTE, look
from radii.report.tables import curve_reach
from radii.store import export

STATUSES = ("closed", "open", "misclassified", "unsolved", "robust")
MOST_ROWS = 20_000  # inputs listed one by one; beyond that they are packed
MOST_PACKED = 150_000  # beyond that curves are drawn from a grid and only the most fragile are listed
LISTED = 300  # inputs of a network listed then
GRID = 600  # points of such a curve
PICTURES = 2_500_000  # bytes of pictures in a page
DOWNLOAD = 1_500_000  # bytes of the table to download


def payload(content: Content, eps: float, confidence: float, pictures: Mapping[str, Shown]) -> dict[str, Any]:
    """Everything the script needs."""
    total = sum(len(one.dist) for one in content.series)
    reach = curve_reach([one.dist for one in content.series])
    classes = sorted({int(key) for one in content.series for key in np.unique(one.dist.label) if key >= 0})
    every = max([*classes, len(content.class_names) - 1, *_targets(content)], default=-1) + 1
    names = [content.class_names[k] if k < len(content.class_names) else str(k) for k in range(every)]
    how = "listed" if total <= MOST_ROWS else "packed" if total <= MOST_PACKED else "grid"
    return {
        "series": [_series(one, i, pictures, (how, reach)) for i, one in enumerate(content.series)],
        "classNames": names,
        "classes": classes,
        "statuses": STATUSES,
        "eps": eps,
        "reach": reach,
        "confidence": confidence,
    }


def gathered_pictures(content: Content, originals: Originals, budget: int = PICTURES) -> dict[str, Shown]:
    """Witnesses by key, the most fragile inputs of every network first, until the budget of bytes is spent."""
    sources = {one.store: one.source for one in content.series if one.source != ""}
    found: dict[str, Shown] = {}
    left = budget
    many = sum(len(one.dist) for one in content.series) > MOST_ROWS
    for where, source in sources.items():
        rounds = zip_longest(*(_keys(one, many) for one in content.series if one.store == where))
        keys = [key for one_round in rounds for key in one_round if key is not None]
        with opened(source) as store:
            for start in range(0, len(keys), 200):
                for one_shown in shown(store, keys[start : start + 200], originals):
                    size = sum(len(p) for p in (one_shown.witness, one_shown.original, one_shown.change) if p)
                    if size > left:
                        return found
                    left -= size
                    found[one_shown.key] = one_shown
    return found


def as_script(value: Any) -> str:
    """JSON that can stand inside a script element whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def download(content: Content) -> str | None:
    """The radii as a CSV in base64 with every digit, or None where it would make the page too large."""
    import pandas as pd

    if content.empty or sum(len(one.rows) for one in content.series) > MOST_ROWS:
        return None
    text = export(pd.concat([one.rows for one in content.series], ignore_index=True), "csv") or ""
    coded = base64.b64encode(text.encode()).decode()
    return coded if len(coded) <= DOWNLOAD else None


def _series(one: Series, position: int, pictures: Mapping[str, Shown], form: tuple[str, float]) -> dict[str, Any]:
    how, reach = form
    style = look(position)
    dash = {"-": "", "--": "7 4", "-.": "8 3 2 3", ":": "2 3"}[style.line]
    data: dict[str, Any] = {"name": one.name, "colour": PALETTE.index(style.colour), "dash": dash, "n": len(one.dist)}
    data |= {"nearest": one.nearest, "data": f"{one.question['dataset']} {one.question['split']}"}
    data |= {"accuracy": float(one.dist.correct.mean())}
    dist, rows = one.dist, one.rows
    if how == "grid":
        low, high = dist.robust_accuracy(np.linspace(0.0, reach, GRID))
        data["curve"] = {"low": _short(low), "high": _short(high)}
        listed = np.sort(fragile_first(dist)[:LISTED])
        dist, rows = dist.select(listed), rows.iloc[listed]
    if how == "packed":
        data["packed"] = packed(dist, rows, STATUSES)
    else:
        prediction = rows["prediction"].astype("Float64").to_numpy(dtype=float, na_value=np.nan)
        data |= _columns(dist) | {"index": rows["index"].tolist(), "prediction": _whole(prediction)}
    data["witness"] = {str(place): as_row(pictures[key]) for place, key in enumerate(rows["key"]) if key in pictures}
    if one.pairs is not None and how == "listed":
        data["pairs"] = _pairs(one, one.pairs)
    return data


def _columns(dist: Distribution) -> dict[str, Any]:
    place = {name: i for i, name in enumerate(STATUSES)}
    seconds = dist.cpu_seconds if dist.cpu_seconds is not None else np.full(len(dist), np.nan)
    return {
        "lower": [None if math.isnan(v) else down(v) for v in dist.lower.tolist()],
        "upper": [None if math.isnan(v) else up(v) for v in dist.upper.tolist()],
        "label": dist.label.tolist(),
        "status": [place[name] for name in dist.status.tolist()],
        "seconds": [None if math.isnan(v) else float(f"{v:.4g}") for v in seconds.tolist()],
    }


def _pairs(one: Series, pairs: Distribution) -> dict[str, Any]:
    """Rows towards single targets, each with the place of its input."""
    places = {key: i for i, key in enumerate(_ids(one.dist))}
    ids = _ids(pairs)
    kept = [i for i, key in enumerate(ids) if key in places]
    part = _columns(pairs)
    chosen = {name: [part[name][i] for i in kept] for name in ("lower", "upper", "status", "seconds")}
    return {**chosen, "row": [places[ids[i]] for i in kept], "target": [int(pairs.target[i]) for i in kept]}


def _ids(dist: Distribution) -> list[str]:
    return [] if dist.ids is None else dist.ids.tolist()


def _targets(content: Content) -> Iterable[int]:
    return [int(one.pairs.target.max()) for one in content.series if one.pairs is not None]


def fragile_first(dist: Distribution) -> npt.NDArray[np.intp]:
    """The places of all inputs: correctly classified ones with the smallest witness first, the rest after them."""
    ends = np.where(dist.correct & np.isfinite(dist.upper), dist.upper, np.inf)
    return np.argsort(ends, kind="stable")


def _keys(one: Series, many: bool) -> list[str]:
    """The keys of the inputs whose witness is to be shown, most fragile first."""
    order = fragile_first(one.dist)
    known = order[(one.dist.correct & np.isfinite(one.dist.upper))[order]]
    return [str(key) for key in one.rows["key"].to_numpy()[known[:LISTED] if many else known]]


def as_row(found: Shown) -> list[Any]:
    """The prediction, distance and pictures of a witness as the page's script takes them."""
    return [found.prediction, up(found.distance), found.witness, found.original, found.change]


def _short(values: npt.NDArray[np.float64]) -> list[float]:
    return [float(f"{v:.5g}") for v in values.tolist()]


def _whole(values: npt.NDArray[np.floating[Any]]) -> list[int | None]:
    return [None if math.isnan(v) else int(v) for v in values.tolist()]
