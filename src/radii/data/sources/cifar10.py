"""CIFAR-10 in its published forms (pickled or binary batches) and as .npz files of some of its images."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.data.dataset import Dataset
from radii.data.scale import channels_first, scaled
from radii.data.sources.arrays import pick, pick_split, read_arrays
from radii.data.sources.idx import read_bytes
from radii.data.sources.place import folders
from radii.errors import DataError
from radii.problem import Domain

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
_ROW = 1 + 3 * 32 * 32

Part = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def load(root: Path, split: str, *, file: str = "") -> Dataset:
    """One split, pixel / 255, as 3 x 32 x 32; `file` names one .npz file where a folder holds several.

    `indices` are positions in the published split also where a file holds some of the images only.
    """
    images, labels, positions = _npz(root, file, split) if file or root.is_file() else _published(root, split)
    domain = Domain()
    return Dataset(scaled(channels_first(images), domain, 255), labels, "cifar10", split, CLASSES, domain, positions)


def _published(root: Path, split: str) -> Part:
    for folder in folders(root, "cifar10"):
        for end, read in (("", _pickled), (".bin", _binary)):
            paths = [folder / f"{name}{end}" for name in _BATCHES[split]]
            if any(path.exists() for path in paths):
                parts = [read(path) for path in paths]
                images, labels = (np.concatenate(each) for each in zip(*parts))
                return images, labels, np.arange(len(labels))
        for path in sorted(folder.glob("*.npz")):
            if f"x_{split}" in read_arrays(path):
                return _npz(path, "", split)
    raise DataError(
        f"cifar10: expected {_BATCHES[split][0]}, {_BATCHES[split][0]}.bin or an .npz file with x_{split} in {root},"
        " found none; give its folder as root=… (--root) or run 'radii datasets fetch cifar10'"
    )


def _npz(root: Path, file: str, split: str) -> Part:
    path = root / file if file else root
    arrays = read_arrays(path)
    return pick(arrays, pick_split(arrays, split, str(path)), str(path))


def _binary(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of one label byte and 3,072 pixel bytes (red, green, blue; row-major)."""
    raw = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if raw.size == 0 or raw.size % _ROW:
        raise DataError(f"{path}: expected rows of {_ROW} bytes, got a file of {raw.size} bytes; fetch it again")
    rows = raw.reshape(-1, _ROW)
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]


def _pickled(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    raw = read_bytes(path)
    try:
        batch = _PlainUnpickler(io.BytesIO(raw), encoding="bytes").load()
        images = np.asarray(batch[b"data"], dtype=np.uint8).reshape(-1, 3, 32, 32)
        return images, np.asarray(batch[b"labels"], dtype=np.int64)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise DataError(f"{path}: expected a pickled CIFAR-10 batch, got: {type(error).__name__} {error}") from None


class _PlainUnpickler(pickle.Unpickler):
    """Builds arrays and plain values only, so that a file cannot run code."""

    _ALLOWED = frozenset(
        (module, name)
        for module in ("numpy.core.multiarray", "numpy._core.multiarray", "numpy")
        for name in ("_reconstruct", "ndarray", "dtype")
    )

    def find_class(self, module: str, name: str) -> Any:
        """The few names that an array in a pickle needs; everything else is refused."""
        if (module, name) not in self._ALLOWED and (module, name) != ("_codecs", "encode"):
            raise DataError(f"expected a pickle of plain arrays, got one that asks for {module}.{name}: refused")
        if name == "_reconstruct":  # the module was renamed with numpy 2
            module = "numpy._core.multiarray" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else module
        return super().find_class(module, name)
