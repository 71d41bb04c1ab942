"""Long lists of radii as texts that a page can hold: 21 bytes per input instead of some 60."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.report.distribution import Distribution
from radii.report.rounding import down32, up32

if TYPE_CHECKING:
    import pandas as pd


def packed(dist: Distribution, rows: pd.DataFrame, statuses: tuple[str, ...]) -> dict[str, str]:
    """The columns of a network in base64, little-endian; NaN is an absent end, -1 an absent prediction."""
    place = {name: i for i, name in enumerate(statuses)}
    seconds = dist.cpu_seconds if dist.cpu_seconds is not None else np.full(len(dist), np.nan)
    prediction = rows["prediction"].astype("Float64").to_numpy(dtype=float, na_value=-1.0)
    return {
        "lower": _text(down32(dist.lower), "<f4"),
        "upper": _text(up32(dist.upper), "<f4"),
        "seconds": _text(seconds, "<f4"),
        "label": _text(dist.label, "<i2"),
        "prediction": _text(prediction, "<i2"),
        "index": _text(_whole(rows["index"]), "<i4"),
        "status": _text(np.array([place[name] for name in dist.status.tolist()]), "u1"),
    }


def _whole(index: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """The numbers of the inputs, or their places where they are known by other names."""
    whole = index.dtype.kind in "iu"
    return index.to_numpy(dtype=np.int64) if whole else np.arange(len(index))


def _text(values: npt.NDArray[Any], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()
