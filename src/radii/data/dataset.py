"""Dataset: inputs in the units of their domain, with labels, class names and their positions in a split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from radii._check import data_option
from radii._html import table
from radii.errors import DataError
from radii.problem import Domain, Instance


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled inputs of one shape, images as (channels, height, width).

    `x` is float32 in the units of `domain`, `indices` are the positions in the data set's split: they stay with the
    inputs through slicing and selection (left empty they count from 0). An item is an `Instance`, a slice or an index
    array gives a Dataset.
    """

    x: NDArray[np.float32] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    name: str = "data"
    split: str = "all"
    class_names: tuple[str, ...] = ()
    domain: Domain = Domain()
    indices: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def __post_init__(self) -> None:
        x = np.ascontiguousarray(self.x, dtype=np.float32).view()  # a view: the caller's own array stays writable
        y = _whole_numbers(self.y, f"{self.name}: labels")
        indices = np.arange(len(x)) if len(self.indices) == 0 else _whole_numbers(self.indices, f"{self.name}: indices")
        if x.ndim < 2 or x.size == 0:
            raise DataError(f"{self.name}: expected inputs of shape (count, …), got shape {x.shape}: nothing to study")
        if not len(x) == len(y) == len(indices):
            raise DataError(f"{self.name}: expected as many labels as inputs ({len(x)}), got {len(y)}")
        names = tuple(str(name) for name in self.class_names) or tuple(str(c) for c in range(int(y.max()) + 1))
        _check_labels(self.name, y, indices, len(names))
        _check_values(self.name, x, indices, self.domain)
        for array in (x, y, indices):
            array.setflags(write=False)
        for key, value in (("x", x), ("y", y), ("indices", indices), ("class_names", names)):
            object.__setattr__(self, key, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.x.shape[1:])

    @property
    def classes(self) -> int:
        """How many classes the labels come from."""
        return len(self.class_names)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What looks wrong with the values but need not be: one line each."""
        found = []
        top = float(np.abs(self.x).max())
        if self.domain == Domain() and 0 < top <= 1.5 / 255:
            found.append(
                f"{self.name}: no value above {top:.3g} in a domain of [0, 1]: were they divided by 255 twice?"
            )
        if len(self) > 1 and bool((self.x == self.x[:1]).all()):
            found.append(f"{self.name}: all {len(self)} inputs are the same")
        return tuple(found)

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"Dataset({self.name} {self.split}: {len(self)} inputs of {shape}, {self.classes} classes)"

    def _repr_html_(self) -> str:
        """What the data set holds, for notebooks."""
        counts = ", ".join(f"{name}: {n}" for name, n in zip(self.class_names, np.bincount(self.y).tolist()))
        shape = "x".join(str(size) for size in self.shape)
        rows = [("inputs", len(self)), ("shape", shape), ("domain", self.domain), ("inputs by class", counts)]
        return table(f"data set {self.name} {self.split}".strip(), rows)

    def __len__(self) -> int:
        return len(self.x)

    @overload
    def __getitem__(self, key: int) -> Instance: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any]) -> Dataset: ...
    def __getitem__(self, key: Any) -> Instance | Dataset:
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"{self.name}: expected a position below {len(self)}, got {key}")
            return Instance(self.x[key], int(self.y[key]), int(self.indices[key]), self.name, self.split)
        if not isinstance(key, slice):
            key = np.asarray(key)
            if key.size == 0:
                key = key.astype(np.int64)
            if key.ndim != 1 or key.dtype.kind not in "iub":
                raise DataError(f"{self.name}: expected a position, a slice or a list of positions, got {key!r}")
        try:
            picked = self.x[key], self.y[key], self.indices[key]
        except IndexError as error:
            raise DataError(f"{self.name}: expected positions below {len(self)}: {error}") from None
        if len(picked[0]) == 0:
            raise DataError(f"{self.name}: expected at least one input, got an empty selection from {len(self)}")
        return Dataset(picked[0], picked[1], self.name, self.split, self.class_names, self.domain, picked[2])

    def __iter__(self) -> Iterator[Instance]:
        return (self[i] for i in range(len(self)))

    @property
    def instances(self) -> list[Instance]:
        """All inputs as instances, in order."""
        return list(self)


def _whole_numbers(values: Any, what: str) -> NDArray[np.int64]:
    """The values as a fresh vector of whole numbers."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{what}: expected one whole number per input, got an array of shape {array.shape}")
    if array.dtype.kind not in "iub" and not (array.dtype.kind == "f" and bool((array == np.round(array)).all())):
        raise DataError(f"{what}: expected whole numbers, got values of type {array.dtype}")
    return array.astype(np.int64)


def _check_labels(name: str, y: NDArray[np.int64], indices: NDArray[np.int64], classes: int) -> None:
    wrong = np.flatnonzero((y < 0) | (y >= classes))
    if wrong.size:
        first = wrong[0]
        raise DataError(
            f"{name}: expected labels from 0 to {classes - 1}, got {y[first]} at input {indices[first]}"
            f" ({wrong.size} such labels)"
        )


def _check_values(name: str, x: NDArray[np.float32], indices: NDArray[np.int64], domain: Domain) -> None:
    low, high = float(x.min()), float(x.max())
    if not np.isfinite([low, high]).all():  # min and max carry NaN through
        finite = np.isfinite(x.reshape(len(x), -1)).all(axis=1)
        raise DataError(
            f"{name}: expected finite values, got NaN or infinity in {int((~finite).sum())} inputs, first in input"
            f" {indices[~finite][0]}; remove or repair them"
        )
    if low >= domain.low and high <= domain.high:
        return
    got = f"{name}: expected values in the domain [{domain.low:g}, {domain.high:g}], got [{low:g}, {high:g}]"
    if domain == Domain() and low >= 0 and 2 < high <= 255:
        raise DataError(f"{got}: these look like pixels from 0 to 255; {data_option('scale=255')}")
    raise DataError(f"{got}; {data_option('domain=LOW,HIGH')} for the units the network was trained in, or scale=…")
