"""idx files, gzipped or not: MNIST, Fashion-MNIST and everything published in their form."""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii import _files
from radii.data.dataset import Dataset
from radii.data.scale import channels_first, scaled
from radii.data.sources.place import find_file
from radii.errors import DataError
from radii.problem import Domain

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PARTS = {"train": "train", "test": "t10k"}


def read_idx(path: Path) -> NDArray[Any]:
    """The array in one idx file: four magic bytes, big-endian sizes, then the values."""
    raw = read_bytes(path)
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _TYPES:
        raise DataError(f"{path}: expected an idx file (magic bytes 00 00 type dimensions), got {raw[:4].hex(' ')!r}")
    kind, dimensions = np.dtype(_TYPES[raw[2]]), raw[3]
    start = 4 + 4 * dimensions
    if len(raw) < start:
        raise DataError(f"{path}: expected {dimensions} sizes, got a file of {len(raw)} bytes: it is cut off")
    shape = struct.unpack(f">{dimensions}I", raw[4:start])
    need = prod(shape) * kind.itemsize
    if len(raw) - start != need:
        raise DataError(
            f"{path}: expected {need} bytes of values for shape {shape}, got {len(raw) - start}: fetch it again"
        )
    return np.frombuffer(raw, dtype=kind, offset=start).reshape(shape)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked when it is gzipped (told by its first bytes, not by its name)."""
    return _files.read_bytes(path, "a data file", lambda message: DataError(f"{path}: {message}"))


def load(root: Path, split: str, *, name: str = "mnist", class_names: tuple[str, ...] = ()) -> Dataset:
    """The images and labels of one split of a folder in MNIST's form, pixel / 255, as 1 x rows x columns."""
    part = _PARTS[split]
    images = read_idx(find_file(root, _names(part, "images-idx3"), name))
    labels = read_idx(find_file(root, _names(part, "labels-idx1"), name))
    if images.ndim != 3 or labels.ndim != 1:
        raise DataError(
            f"{root}: expected images with 3 and labels with 1 dimension, got {images.ndim} and {labels.ndim}"
        )
    domain = Domain()
    return Dataset(scaled(channels_first(images), domain, 255), labels, name, split, class_names, domain)


def _names(part: str, what: str) -> list[str]:
    stems = [f"{part}-{what}-ubyte", f"{part}-{what.replace('-', '.')}-ubyte"]
    return [stem + end for stem in stems for end in ("", ".gz")]
