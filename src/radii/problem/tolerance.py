"""Tolerance: the gap between a radius's ends that counts as closed, in units of ε or in per cent of the upper end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from radii._check import brief, number
from radii.errors import InputError

EXPECTED = "a number above 0, or per cent of the upper end above 0% and below 100%, such as 5%"


@dataclass(frozen=True, slots=True)
class Percent:
    """A relative tolerance: a gap of so many per cent of the upper end is closed."""

    percent: float

    def __post_init__(self) -> None:
        if not 0 < self.percent < 100:
            raise InputError(f"tolerance: expected {EXPECTED}, got {self}")

    @property
    def share(self) -> float:
        """The same as a share of 1."""
        return self.percent / 100

    def __str__(self) -> str:
        return f"{float(self.percent)!r}".removesuffix(".0") + "%"


Tolerance = float | Percent


def tolerance_of(value: Any, name: str = "tolerance") -> Tolerance:
    """The tolerance that a number, a fraction such as "1/255" or a text such as "5%" means."""
    try:
        if isinstance(value, Percent):
            return value
        if isinstance(value, str) and value.rstrip().endswith("%"):
            return Percent(number(value.rstrip()[:-1], name))
        return number(value, name, low=0.0, strict=True)
    except InputError:
        raise InputError(f"{name}: expected {EXPECTED}, got {brief(value)}") from None


def share_of(value: Any, name: str = "tolerance") -> float:
    """The tolerance of a reach, which is always a share of what is proven: 0.02 and "2%" mean the same."""
    found = tolerance_of(value, name)
    return found.share if isinstance(found, Percent) else found


def closing_gap(tolerance: Tolerance, upper: float) -> float:
    """The largest gap below an upper end that counts as closed, in units of ε."""
    return tolerance.share * upper if isinstance(tolerance, Percent) else tolerance


def written(tolerance: Tolerance) -> float | str:
    """The tolerance as files and stores keep it: a number, or a text such as "5%"."""
    return str(tolerance) if isinstance(tolerance, Percent) else tolerance
