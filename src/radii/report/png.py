"""Pictures as PNG texts that a page can hold; no imaging package is needed for that."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from radii.data import Dataset
from radii.problem import Instance
from radii.report.pictures import change, picture
from radii.store import InstanceRecord, Selection, Store

_LARGEST = 128  # pixels per side: larger pictures are thinned out for the page


@dataclass(frozen=True)
class Shown:
    """One witness as the page shows it; `original` and `change` are absent where the data set was not given."""

    key: str
    prediction: int
    distance: float
    witness: str
    original: str | None = None
    change: str | None = None


class Originals:
    """Inputs by their fingerprint, from the data sets that were given."""

    def __init__(self, datasets: Iterable[Dataset] = ()) -> None:
        self._sets = list(datasets)
        self._places = {
            (index, data.split): (data, place)
            for data in self._sets
            for place, index in enumerate(data.indices.tolist())
        }

    def get(self, record: InstanceRecord) -> npt.NDArray[np.float32] | None:
        """The values of an input, or None; an input with another content is not taken for it."""
        data, place = self._places.get((record.index, record.split), (None, 0))
        if data is None:
            return None
        x: npt.NDArray[np.float32] = data.x[place]
        return x if Instance(x, int(data.y[place])).fingerprint == record.fingerprint else None


def shown(store: Store, keys: Iterable[str], originals: Originals) -> Iterator[Shown]:
    """The witnesses of units as pictures, for those that have one with the shape of a picture."""
    wanted = list(keys)
    for start in range(0, len(wanted), 400):
        for item in store.examine(Selection(key=tuple(wanted[start : start + 400])), evidence=False):
            record = item.record
            witness = None if record is None else record.result.witness
            if record is None or witness is None:  # a damaged row has no picture; `radii check` names it
                continue
            original = originals.get(record.unit.instance)
            if original is not None and original.size != witness.x.size:
                continue
            values = witness.x if original is None else witness.x.reshape(original.shape)
            fooled = picture(values)
            if fooled is None:
                continue
            first = None if original is None else picture(original)
            yield Shown(
                record.unit.key,
                witness.prediction,
                witness.distance,
                png(fooled),
                None if first is None else png(first),
                None if first is None else png(change(first, fooled)),
            )


def png(values: Any) -> str:
    """A picture in [0, 1] (values outside are stretched to it) as base64 of a PNG, grey or RGB."""
    array = np.asarray(values, dtype=np.float64)
    step = -(-max(array.shape[:2]) // _LARGEST)
    array = array[::step, ::step]
    low, high = float(array.min()), float(array.max())
    if low < -1e-6 or high > 1 + 1e-6:
        array = (array - low) / max(high - low, 1e-12)
    pixels = np.clip(np.rint(array * 255), 0, 255).astype(np.uint8)
    height, width = pixels.shape[:2]
    kind = 2 if pixels.ndim == 3 else 0
    lines = pixels.reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), lines], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = b"".join(
        _chunk(tag, data) for tag, data in ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def _chunk(tag: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
