"""Validators for values that come from a user: each returns the normalised value or raises `InputError`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import math
import reprlib
from collections.abc import Iterable
from fractions import Fraction
from types import ModuleType
from typing import Any

from radii.errors import InputError, ToolMissing

SEEDS = 2**63 - 1  # the largest seed: what a store's column and torch's generator can hold


class _Brief(reprlib.Repr):
    """What a line about a value shows of it: a file can hold numbers and lists that no line, and no memory, can."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlist, self.maxtuple, self.maxdict = 3, 8, 8, 8
        self.maxstring = self.maxother = 120

    def repr_int(self, x: int, level: int) -> str:
        """A long number by its size; Python refuses to print one of more than 4,300 digits."""
        return repr(x) if x.bit_length() <= 128 else f"a whole number of {x.bit_length()} bits"


brief = _Brief().repr


def number(value: Any, name: str, *, low: float = -math.inf, high: float = math.inf, strict: bool = False) -> float:
    """A finite float in [low, high] (open at `low` when strict). Accepts fractions such as "8/255"."""
    expected = f"a number {'above' if strict else 'of at least'} {low:g}" if low > -math.inf else "a number"
    if high < math.inf:
        expected += f" and at most {high:g}"
    try:
        text = value.replace(" ", "") if isinstance(value, str) else ""
        # A fraction only where one is written: Fraction("1e999999999") would compute all its digits.
        result = float(Fraction(text)) if "/" in text else float(text or value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"{name}: expected {expected}, got {brief(value)}") from None
    if not math.isfinite(result) or result > high or result < low or (strict and result == low):
        raise InputError(f"{name}: expected {expected}, got {brief(value)}")
    return result


def epsilon(value: Any, name: str = "epsilon") -> float:
    """A perturbation size: finite and at least 0, given as a number or as a fraction such as "8/255"."""
    return number(value, name, low=0.0)


def whole(value: Any, name: str, *, low: int = 0, high: int | None = None) -> int:
    """An integer in [low, high]."""
    limit = f"a whole number of at least {low}" + ("" if high is None else f" and at most {high}")
    if isinstance(value, bool) or (not isinstance(value, int) and not (hasattr(value, "__index__"))):
        raise InputError(f"{name}: expected {limit}, got {brief(value)}")
    result = int(value)
    if result < low or (high is not None and result > high):
        raise InputError(f"{name}: expected {limit}, got {brief(value)}")
    return result


def choice(value: Any, name: str, options: Iterable[str]) -> str:
    """One of the options; the message names the nearest one."""
    known = list(options)
    if value in known:
        return str(value)
    raise InputError(f"{name}: expected one of {', '.join(known)}, got {brief(value)}{nearest(str(value), known)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """A did-you-mean suffix, empty when nothing is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def byte_size(value: Any, name: str) -> int:
    """A memory size in bytes from a number or from text such as "4GiB"."""
    if isinstance(value, str):
        units = {
            "": 1,
            "b": 1,
            "kib": 2**10,
            "mib": 2**20,
            "gib": 2**30,
            "kb": 10**3,
            "mb": 10**6,
            "gb": 10**9,
        }
        text = value.strip().lower()
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(digits) :].strip()
        if unit in units and digits:
            return int(number(digits, name, low=0) * units[unit])
        raise InputError(f"{name}: expected a size such as '4GiB' or a number of bytes, got {brief(value)}")
    return int(number(value, name, low=0))


def data_option(text: str) -> str:
    """How to give an option to the source of a data set, in Python and on the command line."""
    return f"give {text} (--option {text} on the command line)"


def optional(module: str, extra: str, purpose: str = "") -> ModuleType:
    """Import an optional package, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = module.split(".")[0]
        if importlib.util.find_spec(missing) is not None:
            raise ToolMissing(missing, f"it is there but does not import ({error})", purpose) from error
        raise ToolMissing(missing, f"pip install 'radii[{extra}]'", purpose) from error
