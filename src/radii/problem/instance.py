"""Instance: one input with its label and where it came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """One input (a float32 array, in the units of the domain), its label, and its place in a data set."""

    x: NDArray[np.float32] = field(repr=False)
    label: int
    index: int = 0
    dataset: str = ""
    split: str = ""

    def __post_init__(self) -> None:
        array = np.array(self.x, dtype=np.float32, order="C")  # a copy: the caller's array stays the caller's
        if array.size == 0:
            raise DataError(f"input {self.index}: expected at least one value, got an empty array")
        if not np.isfinite(array).all():
            raise DataError(f"input {self.index}: expected finite values, got NaN or infinity; remove or repair it")
        if int(self.label) < 0:
            raise DataError(f"input {self.index}: expected a label of at least 0, got {self.label}")
        array.setflags(write=False)
        object.__setattr__(self, "x", array)
        object.__setattr__(self, "label", int(self.label))
        object.__setattr__(self, "index", int(self.index))

    @property
    def fingerprint(self) -> str:
        """A hash of the values and the label: the instance's identity, wherever it is stored."""
        digest = hashlib.sha256(self.x.tobytes())
        digest.update(f"|{self.label}".encode())
        return digest.hexdigest()[:32]

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Instance) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)
