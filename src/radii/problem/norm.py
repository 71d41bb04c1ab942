"""Norm: how the size of a perturbation is measured (L∞, L2 or L1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import choice
from radii.errors import InputError


@dataclass(frozen=True, slots=True)
class Norm:
    """One of `LINF`, `L2`, `L1`; compare and hash by name."""

    name: str

    @staticmethod
    def of(value: Norm | str) -> Norm:
        """The norm for a name such as "linf", "l2", "l1" (or the norm itself)."""
        if isinstance(value, Norm):
            return value
        if not isinstance(value, str):
            raise InputError(f"norm: expected 'linf', 'l2' or 'l1', got {value!r}")
        plain = value.lower().replace("∞", "inf").replace("_", "")
        return _NORMS[choice(plain, "norm", _NORMS)]

    @property
    def dual(self) -> Norm:
        """The dual norm: the size of a linear function over the unit ball of this norm."""
        return {"linf": L1, "l2": L2, "l1": LINF}[self.name]

    @property
    def order(self) -> float:
        """The p of the p-norm."""
        return {"linf": math.inf, "l2": 2.0, "l1": 1.0}[self.name]

    def size(self, vector: Any) -> float:
        """The norm of an array of any shape, summed in float64 without losing a digit that matters."""
        flat: NDArray[np.float64] = np.abs(np.asarray(vector, dtype=np.float64)).ravel()
        if flat.size == 0:
            return 0.0
        if self.name == "linf":
            return float(flat.max())
        if self.name == "l1":
            return math.fsum(flat)
        return math.sqrt(math.fsum(flat * flat))

    def distance(self, a: Any, b: Any) -> float:
        """The distance between two arrays of the same size, differences taken in float64."""
        return self.size(np.asarray(a, dtype=np.float64).ravel() - np.asarray(b, dtype=np.float64).ravel())

    def __str__(self) -> str:
        return self.name


LINF = Norm("linf")
L2 = Norm("l2")
L1 = Norm("l1")
_NORMS = {norm.name: norm for norm in (LINF, L2, L1)}
