"""Preprocessing: (x − mean) / std, per channel or for all values, before the network sees an input."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import ModelError

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """(x − mean) / std in the units of the domain; one number, or one per channel."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", _numbers(self.mean, "mean"))
        object.__setattr__(self, "std", _numbers(self.std, "std"))
        if any(value <= 0 for value in self.std):
            raise ModelError(f"preprocessing: expected every std above 0, got {list(self.std)}")
        sizes = {len(self.mean), len(self.std)} - {1}
        if len(sizes) > 1:
            raise ModelError(
                f"preprocessing: expected as many means as stds, got {len(self.mean)} and {len(self.std)}; "
                "give one number or one per channel for each"
            )

    @staticmethod
    def of(value: Preprocessing | Mapping[str, Any] | tuple[Any, Any] | None) -> Preprocessing:
        """Preprocessing from itself, {"mean": …, "std": …}, a (mean, std) pair, or None for none."""
        if value is None:
            return Preprocessing()
        if isinstance(value, Preprocessing):
            return value
        if isinstance(value, Mapping):
            unknown = sorted(set(value) - {"mean", "std"})
            if unknown:
                raise ModelError(f"preprocessing: expected the keys mean and std, got {', '.join(map(str, unknown))}")
            return Preprocessing(value.get("mean", (0.0,)), value.get("std", (1.0,)))
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return Preprocessing(value[0], value[1])
        raise ModelError(f"preprocessing: expected a (mean, std) pair or {{'mean': …, 'std': …}}, got {value!r}")

    @property
    def identity(self) -> bool:
        """Whether it leaves every input as it is."""
        return all(m == 0.0 for m in self.mean) and all(s == 1.0 for s in self.std)

    def arrays(self, shape: Shape) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and std, each shaped to broadcast against one input of this shape."""
        return _spread(self.mean, shape), _spread(self.std, shape)

    def __call__(self, x: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """The batch as the network gets it, computed in the precision of x."""
        if self.identity:
            return x
        mean, std = self.arrays(x.shape[1:])
        return np.asarray((x - mean.astype(x.dtype)) / std.astype(x.dtype), dtype=x.dtype)


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(v) for v in np.asarray(value, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(math.isfinite(v) for v in numbers):
        raise ModelError(f"preprocessing: expected {name} to be a finite number or one per channel, got {value!r}")
    return numbers


def _spread(values: tuple[float, ...], shape: Shape) -> NDArray[np.float64]:
    """The values along the channel axis: the first axis of their number, else the last (channels-last networks)."""
    array = np.asarray(values, dtype=np.float64)
    if len(values) == 1:
        return array.reshape(())
    if shape and shape[0] == len(values):
        return array.reshape(-1, *(1 for _ in shape[1:]))
    if shape and shape[-1] == len(values):
        return array
    dims = "x".join(map(str, shape))
    raise ModelError(f"preprocessing: expected one value per channel of the input {dims}, got {len(values)} values")
