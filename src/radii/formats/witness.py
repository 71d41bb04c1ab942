"""Counterexamples as text: VNN-COMP's `((X_0 0.5) ... (Y_0 0.1))` and the assignments of VNN-LIB 2.x solvers.

    sat                        sat
    ((X_0 0.5)                 X float32 [2]
     (X_1 0.25)                0.5
     (Y_0 1.5))                0.25
                               Y float32 [1]
                               1.5

Every number is printed exactly, without exponents, and read with or without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import FormatError
from radii.formats.decimals import exact
from radii.formats.vnnlib import Tensor

Values = NDArray[np.float64]
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?"
_PAIR = re.compile(rf"\(\s*([A-Za-z]\w*)_(\d{{1,18}})\s+({_NUMBER})\s*\)")
_HEADER = re.compile(r"([A-Za-z]\w*)\s+([A-Za-z]\w*)\s*\[([\d,\s]*)\]")


def pairs_text(x: Any, y: Any) -> str:
    """An input and its outputs as VNN-COMP expects them: ((X_0 v) (X_1 v) ... (Y_0 v) ...)."""
    rows = [f"({name}_{i} {exact(v)})" for name, values in (("X", x), ("Y", y)) for i, v in enumerate(_flat(values))]
    return "(" + "\n ".join(rows) + ")"


def assignment_text(assigned: Sequence[tuple[Tensor, Any]]) -> str:
    """Tensors and their values in the VNN-LIB textual form: `name type [dims]`, then one value per line, row by row."""
    lines: list[str] = []
    for tensor, values in assigned:
        lines.append(f"{tensor.name} {tensor.dtype} [{','.join(map(str, tensor.shape))}]")
        lines.extend(exact(v) for v in _flat(values))
    return "\n".join(lines)


def read_witness(text: str) -> dict[str, Values]:
    """The values of every variable in a counterexample of either form, flat, by name; a verdict line is skipped."""
    body = re.sub(r"\A\s*(?:sat|violated|unsat|holds)\b[ \t]*\n?", "", text).strip()
    if not body:
        raise FormatError("counterexample: expected values, got none")
    return _read_pairs(body) if body.startswith("(") else _read_assignment(body, _lines_before(text, body))


def _flat(values: Any) -> list[float]:
    found: list[float] = np.asarray(values, dtype=np.float64).ravel().tolist()
    return found


def _lines_before(text: str, body: str) -> int:
    return text.count("\n", 0, text.index(body))


def _read_pairs(text: str) -> dict[str, Values]:
    found: dict[str, dict[int, float]] = {}
    rest, end = [], 0
    for match in _PAIR.finditer(text):
        rest.append(text[end : match.start()])
        end = match.end()
        indices = found.setdefault(match[1], {})
        if int(match[2]) in indices:
            raise _at(text, match.start(), f"expected one value for {match[1]}_{match[2]}, got two")
        indices[int(match[2])] = float(match[3])
    rest.append(text[end:])
    if not found or "".join("".join(rest).split()) not in ("()", ""):
        stray = re.search(r"[^\s()]\S*", " ".join(rest))
        raise FormatError(f"counterexample: expected ((X_0 0.5) ...), got {stray[0][:40] if stray else text[:40]!r}")
    return {name: _dense(name, values) for name, values in found.items()}


def _dense(name: str, values: dict[int, float]) -> Values:
    if max(values) != len(values) - 1:
        hole = next(index for index in range(len(values)) if index not in values)
        raise FormatError(f"counterexample: expected a value for {name}_{hole}, got none")
    return np.array([values[i] for i in range(len(values))])


def _read_assignment(text: str, skipped: int) -> dict[str, Values]:
    found: dict[str, Values] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        header = _HEADER.fullmatch(lines[at].strip())
        if header is None:
            raise FormatError(f"counterexample: expected NAME TYPE [dims], got {lines[at][:40]!r}", skipped + at + 1, 1)
        # 18 digits of a size are enough: there are never so many lines.
        count = prod(int(n.strip()[:18]) for n in header[3].split(",") if n.strip())
        values = [line.strip() for line in lines[at + 1 : at + 1 + count]]
        for offset, value in enumerate(values):
            if not re.fullmatch(_NUMBER, value):
                raise FormatError(
                    f"counterexample: expected a number, got {value[:40]!r}", skipped + at + offset + 2, 1
                )
        if len(values) != count:
            raise FormatError(f"counterexample: expected {count} values of {header[1]}, got {len(values)}")
        found[header[1]] = np.array([float(v) for v in values])
        at += 1 + count
        while at < len(lines) and not lines[at].strip():
            at += 1
    return found


def _at(text: str, position: int, message: str) -> FormatError:
    start = text.rfind("\n", 0, position)
    return FormatError(f"counterexample: {message}", text.count("\n", 0, position) + 1, position - start)
