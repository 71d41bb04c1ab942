"""From stored numbers to the units of the domain, and from stored axes to (channels, height, width)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import choice, data_option, number
from radii.errors import DataError
from radii.problem import Domain

CHANNELS = (1, 3, 4)
UNIT = Domain()
DomainLike = Domain | tuple[float, float] | None


def scaled(values: Any, domain: Domain, scale: float | None = None, name: str = "data") -> NDArray[np.float32]:
    """The values as float32 in the units of the domain.

    With `scale` they are divided by it. Without, bytes (uint8) are pixels: 0 … 255 becomes low … high of a bounded
    domain; every other type is taken as it is.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iufb":
        raise DataError(f"{name}: expected numbers, got values of type {array.dtype}")
    if scale is not None:
        return _divided(array, number(scale, "scale", low=0.0, strict=True))
    if array.dtype != np.uint8 or not domain.bounded or (domain.low, domain.high) == (0.0, 255.0):
        return np.asarray(array, dtype=np.float32)
    if array.size > 1 and array.max() == 1:
        raise DataError(
            f"{name}: expected bytes from 0 to 255, got only 0 and 1; {data_option('scale=1')} or scale=255"
        )
    if domain == UNIT:
        return _divided(array, 255.0)
    units = array.astype(np.float64) * ((domain.high - domain.low) / 255.0) + domain.low
    return np.clip(units, domain.low, domain.high).astype(np.float32)


def _divided(array: NDArray[Any], scale: float) -> NDArray[np.float32]:
    if array.dtype == np.uint8 and scale <= np.finfo(np.float32).max:
        # a table of 256 quotients: each correctly rounded, and quick for whole data sets
        table: NDArray[np.float32] = (np.arange(256) / scale).astype(np.float32)
        return np.take(table, array)
    return np.asarray(array / scale, dtype=np.float32)


def channels_first(images: NDArray[Any], layout: str = "auto", name: str = "data") -> NDArray[Any]:
    """A batch of images as (count, channels, height, width).

    `layout` is "first", "last", or "auto": four axes of which only the last, or only the second, can be channels
    (1, 3 or 4 of them); three axes are grey images. Arrays that are no images pass unchanged.
    """
    choice(layout, "layout", ("auto", "first", "last"))
    if images.ndim == 3 and layout == "auto" and min(images.shape[1:]) > 1:
        return images[:, None]
    if images.ndim != 4:
        return images
    if layout == "auto":
        first, last = images.shape[1] in CHANNELS, images.shape[3] in CHANNELS
        if first and last and images.shape[1] != images.shape[3]:
            raise DataError(
                f"{name}: expected to tell channels from rows in shape {images.shape[1:]};"
                f" {data_option('layout=first')} or layout=last"
            )
        layout = "last" if last and not first else "first"
    return images.transpose(0, 3, 1, 2) if layout == "last" else images
