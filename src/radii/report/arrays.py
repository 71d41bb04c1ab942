"""Reports of distributions that come from arrays and not from a store: what is not known is said to be unknown."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from radii.errors import InputError
from radii.report.content import Content, Part, Series, gather, named, natural
from radii.report.distribution import Distribution
from radii.store import QUESTION, Store

if TYPE_CHECKING:
    import pandas as pd

    from radii.data import Dataset

ORIGIN = "Made from arrays, not from a store: networks, data, proofs and hardware are not known here."


def write_report(
    path: str | Path,
    dists: Sequence[Distribution],
    *,
    eps: Any = None,
    confidence: float = 0.95,
    title: str = "Robustness report",
    data: Dataset | Sequence[Dataset] = (),
) -> Path:
    """Write the report in the format of the file's ending and give its path back."""
    from radii.report.documents import write_checked

    return write_checked(path, lambda: content_of(dists, title), eps=eps, confidence=confidence, data=data)


def content_of(dists: Sequence[Distribution], title: str = "Robustness report") -> Content:
    """The content of distributions: what their stores say of those that have one, rows alone of the others."""
    stored: dict[int | str, Part] = {}
    for dist in dists:
        if dist.source is None or dist.keys is None:
            continue
        name = id(dist.source) if isinstance(dist.source, Store) else str(dist.source)
        known = stored[name].keys if name in stored else frozenset()
        stored[name] = Part(dist.source, keys=known | frozenset(dist.keys.tolist()))
    bare = [dist for dist in dists if dist.source is None or dist.keys is None]
    if not stored:
        return _unsourced(bare, title)
    content = gather(stored.values(), title=title)
    names = max((dist.class_names for dist in dists), key=len)
    if bare:
        content = replace(content, series=content.series + _unsourced(bare, title).series, origin=ORIGIN)
    return named(content, names)


def _unsourced(dists: Sequence[Distribution], title: str = "Robustness report") -> Content:
    """The content of distributions that come from no store: one row per input each."""
    if not dists or any(len(dist) == 0 for dist in dists):
        raise InputError("report: expected distributions with at least one input each, got an empty one")
    names = [dist.name or "radii" for dist in dists]
    if len(set(names)) < len(names):
        raise InputError(f"report: expected distributions with names that differ, got {', '.join(names)}")
    found = []
    for dist, name in zip(dists, names, strict=True):
        dist.one_row_each("report")
        question: dict[str, Any] = dict.fromkeys(QUESTION, "–") | {"classifier": name, "property_parameters": "{}"}
        found.append(Series(name, "", question, rows_of(dist, name), dist))
    found.sort(key=lambda one: natural(one.name))
    class_names = max((dist.class_names for dist in dists), key=len)
    return Content(tuple(found), (), class_names, title, ORIGIN)


def small_curve(dist: Distribution) -> str:
    """The robust-accuracy curve as an HTML image; nothing for no inputs."""
    from radii.report.figures import new_figure, robust_accuracy_curve

    if len(dist) == 0:
        return ""
    figure, axes = new_figure(4.6, 2.8)
    robust_accuracy_curve(dist, axes)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    coded = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="robust accuracy against ε" src="data:image/png;base64,{coded}">'


def rows_of(dist: Distribution, name: str) -> pd.DataFrame:
    """The rows of a distribution under the names of the results table, as far as they are known."""
    import pandas as pd

    n = len(dist)
    index = np.arange(n) if dist.ids is None else dist.ids
    columns: dict[str, Any] = {
        "classifier": name,
        "index": index,
        "label": dist.label,
        "prediction": pd.array([pd.NA] * n, dtype="Int64"),
        "lower": dist.lower,
        "upper": dist.upper,
        "status": dist.status,
        "cpu_seconds": np.nan if dist.cpu_seconds is None else dist.cpu_seconds,
        "wall_seconds": np.nan if dist.wall_seconds is None else dist.wall_seconds,
        "key": "",
    }
    return pd.DataFrame(columns, index=range(n))
