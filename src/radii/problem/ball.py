"""Ball: the perturbations of size at most ε around an input, intersected with the value domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import epsilon as check_epsilon
from radii._check import number
from radii.errors import InputError
from radii.problem.norm import LINF, Norm


@dataclass(frozen=True, slots=True)
class Domain:
    """The values an input can take: the same interval for every coordinate; ±inf means unbounded."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"domain: expected low < high, got [{self.low:g}, {self.high:g}]")

    @staticmethod
    def of(value: Domain | tuple[float | None, float | None] | None) -> Domain:
        """A domain from itself, a (low, high) pair, or None for the whole space."""
        if isinstance(value, Domain):
            return value
        if value is None:
            return Domain(-np.inf, np.inf)
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return Domain(_end(value[0], -np.inf), _end(value[1], np.inf))
        raise InputError(f"domain: expected a (low, high) pair or None, got {value!r}")

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def ends(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """The least and the largest of these floats that lie in the domain."""
        low, high = (np.asarray(end, dtype=dtype) for end in (self.low, self.high))
        low = np.nextafter(low, np.inf, dtype=dtype) if float(low) < self.low else low
        high = np.nextafter(high, -np.inf, dtype=dtype) if float(high) > self.high else high
        return float(low), float(high)

    def farthest(self, x: Any, norm: Norm) -> float:
        """The distance from an input beyond which nothing of the domain lies; infinite where the domain has no end."""
        values = np.asarray(x, dtype=np.float64)
        return norm.size(np.maximum(values - self.low, self.high - values)) if self.bounded else np.inf

    def contains(self, x: Any) -> bool:
        """Whether every coordinate lies in the domain (NaN does not)."""
        values = np.asarray(x)
        return bool(np.all((values >= self.low) & (values <= self.high)))


def _end(value: Any, infinite: float) -> float:
    return infinite if value is None or value == infinite else number(value, "domain")


@dataclass(frozen=True, slots=True)
class Ball:
    """All x with norm(x - center) ≤ epsilon and x in the domain. Membership is decided in float64."""

    center: NDArray[np.floating[Any]] = field(repr=False)
    epsilon: float
    norm: Norm = LINF
    domain: Domain = Domain()

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def distance(self, x: Any) -> float:
        """How far x is from the centre, in this ball's norm."""
        return self.norm.distance(x, self.center)

    def contains(self, x: Any) -> bool:
        """Whether x lies in the ball and in the domain, without any slack."""
        return self.domain.contains(x) and self.distance(x) <= self.epsilon

    def box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The smallest box around the ball ∩ domain; for L∞ it is the set itself up to rounding."""
        center = np.asarray(self.center, dtype=np.float64)
        low = np.maximum(center - self.epsilon, self.domain.low)
        high = np.minimum(center + self.epsilon, self.domain.high)
        return low, high
