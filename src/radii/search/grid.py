"""Grid: the values of ε that a search over a black-box verifier may ask about, in increasing order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from radii._check import epsilon as check_epsilon
from radii._check import nearest, whole
from radii.errors import InputError

_MOST = 1_000_000  # a grid is asked position by position; more is a slip in `step`


@dataclass(frozen=True, slots=True)
class Grid:
    """Strictly increasing values of ε; build it with `of`, `steps`, `values` or `pixels`."""

    epsilons: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.epsilons:
            raise InputError("grid: expected at least one value of ε, got none")
        if any(b <= a for a, b in pairwise(self.epsilons)):
            raise InputError("grid: expected strictly increasing values of ε")

    @staticmethod
    def of(value: Any) -> Grid:
        """A grid from itself, (start, stop, step), a mapping {start, stop, step} or {pixels}, or a list of values.

        A tuple is read like START:STOP:STEP on the command line; values of ε that are not evenly spaced are a list.

        >>> Grid.of((0.001, 0.4, 0.002)) == Grid.of({"start": 0.001, "stop": 0.4, "step": 0.002})
        True
        >>> Grid.of({"start": 0.001, "stop": 0.4, "step": 0.002}).epsilons[-1]
        0.399
        """
        if isinstance(value, Grid):
            return value
        if isinstance(value, Mapping):
            return _from_mapping(value)
        if isinstance(value, tuple):
            if len(value) != 3:
                raise InputError(f"grid: expected (start, stop, step) or a list of values, got {value!r}")
            return Grid.steps(*value)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return Grid.values(value)
        raise InputError(f"grid: expected start/stop/step, a list of values or pixels, got {value!r}")

    @staticmethod
    def steps(start: Any, stop: Any, step: Any) -> Grid:
        """start, start + step, ... up to and including stop, each the float nearest to the decimal value."""
        first, last, width = (_exact(v, f"grid {n}") for v, n in ((start, "start"), (stop, "stop"), (step, "step")))
        if width <= 0:
            raise InputError(f"grid step: expected a number above 0, got {step!r}")
        if last < first:
            raise InputError(f"grid: expected start ≤ stop, got {start!r} and {stop!r}")
        count = math.floor((last - first) / width) + 1
        if count > _MOST:
            raise InputError(f"grid: expected at most {_MOST} values, got {count}; use a larger step")
        return Grid(tuple(float(first + i * width) for i in range(count)))

    @staticmethod
    def values(epsilons: Sequence[Any]) -> Grid:
        """The given values in increasing order; fractions such as "8/255" are accepted, repeats are refused."""
        known = sorted(check_epsilon(value, "grid") for value in epsilons)
        for a, b in pairwise(known):
            if a == b:
                raise InputError(f"grid: expected every ε once, got {a:g} twice")
        return Grid(tuple(known))

    @staticmethod
    def pixels(last: int, first: int = 1) -> Grid:
        """first/255, ..., last/255: whole steps of an 8-bit pixel."""
        whole(first, "grid pixels", low=0, high=255)
        whole(last, "grid pixels", low=first, high=255)
        return Grid(tuple(n / 255 for n in range(first, last + 1)))

    def __len__(self) -> int:
        return len(self.epsilons)

    def __getitem__(self, position: int) -> float:
        return self.epsilons[position]

    def __iter__(self) -> Iterator[float]:
        return iter(self.epsilons)

    def step_at(self, position: int) -> float:
        """The width of the cell that starts at `position`; 0 for the last."""
        return self.epsilons[position + 1] - self.epsilons[position] if position + 1 < len(self.epsilons) else 0.0

    @property
    def identity(self) -> str:
        """A short stable text: part of a result's key."""
        first, last = self.epsilons[0], self.epsilons[-1]
        return f"grid[{len(self)}:{first!r}..{last!r}:{_digest(self.epsilons)}]"


def _digest(epsilons: tuple[float, ...]) -> str:
    """A hash of the values that does not change between runs."""
    return hashlib.sha256(",".join(map(repr, epsilons)).encode()).hexdigest()[:12]


def _exact(value: Any, name: str) -> Fraction:
    """The decimal or fraction a user meant: 0.1 is one tenth, so that steps add up without drift."""
    check_epsilon(value, name)
    return Fraction(value.replace(" ", "")) if isinstance(value, str) else Fraction(repr(float(value)))


def _from_mapping(value: Mapping[str, Any]) -> Grid:
    known = ("start", "stop", "step", "values", "pixels", "first")
    for key in value:
        if key not in known:
            raise InputError(f"grid: unknown key {key!r}; expected start, stop, step{nearest(str(key), known)}")
    keys = set(value)
    if keys == {"start", "stop", "step"}:
        return Grid.steps(value["start"], value["stop"], value["step"])
    if keys == {"values"}:
        return Grid.values(value["values"])
    if keys in ({"pixels"}, {"pixels", "first"}):
        return Grid.pixels(value["pixels"], value.get("first", 1))
    raise InputError(f"grid: expected the keys start, stop and step (or values, or pixels), got {', '.join(keys)}")
