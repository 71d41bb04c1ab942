"""numpy files: one .npz with inputs and labels, for one split or for several, or x.npy with y.npy beside it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import data_option
from radii._files import Fail, refuse_bomb, regular
from radii._memory import must_fit
from radii.data.dataset import Dataset
from radii.data.scale import UNIT, DomainLike, channels_first, scaled
from radii.errors import DataError
from radii.problem import Domain

_INPUTS = ("x", "X", "images", "data", "inputs")
_LABELS = ("y", "Y", "labels", "label", "targets")
_POSITIONS = ("index", "indices")
_DAMAGED = (ValueError, OSError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


def load(
    path: Path,
    split: str | None = None,
    *,
    domain: DomainLike = UNIT,
    scale: float | None = None,
    layout: str = "auto",
    class_names: Sequence[str] = (),
    labels: str | Path | None = None,
) -> Dataset:
    """The data set in numpy files; `labels` names the file of labels when it is not y.npy beside the inputs."""
    arrays = read_arrays(path, labels)
    part = pick_split(arrays, split, str(path))
    x, y, positions = pick(arrays, part, str(path))
    title, space = path.stem, Domain.of(domain)
    images = channels_first(x, layout, title)
    return Dataset(scaled(images, space, scale, title), y, title, part or "all", tuple(class_names), space, positions)


def read_arrays(path: Path, labels: str | Path | None = None) -> dict[str, NDArray[Any]]:
    """The named arrays of an .npz file, or x and y of .npy files; pickled objects are refused."""
    if path.is_dir():
        path = path / "x.npy"
    if path.suffix.lower() == ".npz":
        stored = _read(path)
        if not isinstance(stored, dict):
            raise DataError(f"{path}: expected an .npz archive of arrays, got a single array; rename it to .npy")
        return stored
    beside = Path(labels) if labels is not None else _labels_beside(path)
    return {"x": _read(path), "y": _read(beside)}


def _labels_beside(path: Path) -> Path:
    """y.npy for x.npy, y_test.npy for x_test.npy, labels.npy for images.npy, name_y.npy for name.npy."""
    stem = path.stem
    options = [stem.replace(a, b, 1) for a, b in zip(_INPUTS, _LABELS) if stem.startswith(a)]
    for name in (*options, f"{stem}_y", f"{stem}_labels", "y", "labels"):
        found = path.with_name(f"{name}.npy")
        if found.is_file() and found != path:
            return found
    hint = data_option("labels=FILE")
    raise DataError(f"{path}: expected a file of labels beside it such as y.npy, found none; {hint}")


def _read(path: Path) -> Any:
    """The array of an .npy file, or all arrays of an .npz file by name."""

    def fail(message: str) -> DataError:
        return DataError(f"{path}: {message}")

    try:
        with regular(path, "a numpy file", fail) as (stream, size):
            if not zipfile.is_zipfile(stream):
                stream.seek(0)
                return _array(stream, size, fail)
            with zipfile.ZipFile(stream) as archive:
                members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
                refuse_bomb(sum(info.file_size for info in members), size, fail)
                return {info.filename.removesuffix(".npy"): _member(archive, info, fail) for info in members}
    except _DAMAGED as error:
        raise fail(f"expected a whole numpy file without pickled objects, got: {_line(error)}") from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, fail: Fail) -> NDArray[Any]:
    with archive.open(info) as stream:
        return _array(stream, info.file_size, fail)


def _array(stream: Any, size: int, fail: Fail) -> NDArray[Any]:
    """The array in a stream of that size, which its header must not exceed: numpy makes room for what is claimed."""
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = header(stream)
    need = prod(shape) * kind.itemsize
    if not kind.hasobject and need != size - stream.tell():
        raise fail(f"expected {need} bytes for an array of shape {shape}, got {size - stream.tell()}: it is damaged")
    must_fit(need, "arrays", fail)
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def pick_split(arrays: Mapping[str, NDArray[Any]], split: str | None, where: str) -> str:
    """Which split to take: the one asked for, "test" where there are several, or "" for a file without splits."""
    found = [s for s in ("train", "test", "val", "valid") if any(f"{key}_{s}" in arrays for key in _INPUTS)]
    if not found:
        return "" if split in (None, "all") or any(key in arrays for key in _INPUTS) else str(split)
    chosen = split or ("test" if "test" in found else found[0])
    if chosen not in found:
        raise DataError(f"{where}: expected split {' or '.join(found)}, got {chosen!r}")
    return chosen


def pick(arrays: Mapping[str, NDArray[Any]], part: str, where: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Inputs, labels and positions (empty when the file has none) of one split."""
    end = f"_{part}" if part else ""

    def first(names: tuple[str, ...]) -> NDArray[Any] | None:
        return next((arrays[name + end] for name in names if name + end in arrays), None)

    x, y, positions = first(_INPUTS), first(_LABELS), first(_POSITIONS)
    if x is None or y is None:
        raise DataError(
            f"{where}: expected arrays {_INPUTS[0]}{end} and {_LABELS[0]}{end}, got {', '.join(arrays) or 'none'}"
        )
    return x, y, np.empty(0, dtype=np.int64) if positions is None else positions
