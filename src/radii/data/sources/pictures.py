"""Picture files as one array: crop, colour and size (with pillow)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import choice, data_option, optional, whole
from radii._files import regular
from radii._memory import must_fit
from radii.errors import DataError

SUFFIXES = (".png", ".ppm", ".pgm", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
Region = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done to each picture: crop ("none", "square" or "region"), then grayscale, then resize (bilinear).

    "square" cuts the largest square around the middle; "region" cuts the rectangle that the list of pictures names.
    """

    resize: tuple[int, int] | None = None
    grayscale: bool = False
    crop: str = "none"

    @staticmethod
    def of(resize: Any, grayscale: bool, crop: str | None) -> Treatment:
        """The treatment from options as a user writes them: 32, (32, 32) or None for the size."""
        if not isinstance(grayscale, bool):
            raise DataError(f"grayscale: expected true or false, got {grayscale!r}")
        size: tuple[int, int] | None = None
        if resize is not None:
            sides = list(resize) if isinstance(resize, (list, tuple)) else [resize, resize]
            if len(sides) != 2:
                raise DataError(f"resize: expected a side or (height, width), got {resize!r}")
            size = (whole(sides[0], "resize", low=1), whole(sides[1], "resize", low=1))
        return Treatment(size, grayscale, choice(crop or "none", "crop", ("none", "square", "region")))


def read_pictures(
    paths: Sequence[Path], treatment: Treatment, regions: Sequence[Region] | None = None
) -> NDArray[np.uint8]:
    """The pictures as (count, channels, height, width) bytes; those of different sizes need a `resize`."""
    if treatment.crop == "region" and regions is None:
        raise DataError("crop: expected a list of pictures with columns Roi.X1, Roi.Y1, Roi.X2, Roi.Y2 for crop=region")
    library = optional("PIL.Image", "data", "reading pictures")
    result: NDArray[np.uint8] | None = None
    for position, path in enumerate(paths):
        one = _read(library, path, treatment, regions[position] if regions is not None else None)
        if result is None:
            must_fit(4 * len(paths) * one.size, "pictures", DataError)  # in float32, as a data set holds them
            result = np.empty((len(paths), *one.shape), dtype=np.uint8)
        if one.shape != result.shape[1:]:
            raise DataError(
                f"{path}: expected a picture of {_size(result.shape[1:])} like the first, got {_size(one.shape)};"
                f" {data_option('resize=32')} for one size"
            )
        result[position] = one
    if result is None:
        raise DataError("pictures: expected at least one, found none")
    return result


def _read(library: Any, path: Path, treatment: Treatment, region: Region | None) -> NDArray[np.uint8]:
    def fail(message: str) -> DataError:
        return DataError(f"{path}: {message}")

    bomb = (library.DecompressionBombWarning, library.DecompressionBombError)
    try:
        with warnings.catch_warnings(), regular(path, "a picture", fail) as (stream, _):
            warnings.simplefilter("error", bomb[0])
            with library.open(stream) as stored:
                picture = stored.convert("L" if treatment.grayscale or stored.mode in ("L", "1") else "RGB")
    except bomb:
        raise fail(f"expected a picture of at most {library.MAX_IMAGE_PIXELS} pixels, got more; shrink it") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise fail(f"expected a picture that can be read, got: {error}") from None
    if treatment.crop == "region" and region is not None:
        picture = picture.crop(region)
    elif treatment.crop == "square":
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        picture = picture.crop((left, top, left + side, top + side))
    if treatment.resize is not None:
        picture = picture.resize((treatment.resize[1], treatment.resize[0]), library.Resampling.BILINEAR)
    array = np.asarray(picture, dtype=np.uint8)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def _size(shape: tuple[int, ...]) -> str:
    return "x".join(str(side) for side in shape)
