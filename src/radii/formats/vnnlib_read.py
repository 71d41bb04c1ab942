"""Reading VNN-LIB 1.0 and 2.x: plain or gzipped, streamed, with line and column in every complaint.

Both versions share this parser. The `vnnlib` package reads 2.x only, refuses whole numbers beside floats, gives no
columns for most errors, and its conversion to boxes loses bounds that stand inside `and`; the tests use its grammar as
the referee of what is written here.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TextIO

from radii._files import unpacked
from radii.errors import FormatError
from radii.formats.assemble import Assembly
from radii.formats.formula import Bound, Reader
from radii.formats.names import Names
from radii.formats.sexpr import Group, Source
from radii.formats.vnnlib import VnnlibProblem

# Numbers of this form are always finite; all others are read with more checks.
_NUMBER = r"[-+]?(?:\d{1,200}(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?"
_NAME = r"[A-Za-z]\w*(?:\s*\[[\d,\s]*\])?"
# Nearly all of a big file: one declaration, or one bound on one variable.
_ONE_CONSTANT = re.compile(r"\(\s*declare-const\s+([XY])_(\d{1,18})\s+Real\s*\)\s*")
_ONE_BOUND = re.compile(rf"\(\s*assert\s*\(\s*([<>]=)\s*({_NAME})\s+({_NUMBER})\s*\)\s*\)\s*")
_IGNORED = {"set-logic", "set-info", "set-option", "check-sat", "get-model", "get-value", "exit"}


def read_vnnlib(path: str | Path) -> VnnlibProblem:
    """What a VNN-LIB file asks; gzipped files are recognised by their content."""
    file = Path(path)

    def fail(message: str) -> FormatError:
        return FormatError(f"{file}: {message}")

    try:
        with unpacked(file, "a VNN-LIB file", fail) as raw, io.TextIOWrapper(raw, encoding="utf-8") as text:
            return _read(text, file.name)
    except UnicodeDecodeError:
        raise fail("expected a text file (or gzip), got binary data") from None
    except OSError as error:
        raise fail(f"cannot be read: {error.strerror or error}") from None


def parse_vnnlib(text: str) -> VnnlibProblem:
    """What a VNN-LIB text asks."""
    return _read(io.StringIO(text), "VNN-LIB")


def _read(stream: TextIO, name: str) -> VnnlibProblem:
    return _Parser(Source(stream, name)).run()


class _Parser:
    """One pass over a file: declarations first, then assertions."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._fail = source.error
        self._names = Names(source.error)
        self._reader = Reader(self._names.resolve, source.error)
        self._assembly: Assembly | None = None

    def run(self) -> VnnlibProblem:
        """The whole file."""
        source = self._source
        while source.skip():
            quick = self._quick_constants() if self._assembly is None else self._quick_bounds(self._assembly)
            if not quick:
                self._take(source.statement())
        if self._assembly is None:
            raise self._fail("expected assertions, got none")
        return self._assembly.problem(self._names)

    def _take(self, statement: Group) -> None:
        head = statement.head
        if head == "assert":
            if len(statement.items) != 2:
                raise self._fail(f"expected one condition in assert, got {len(statement.items) - 1}", statement.at)
            if self._assembly is None:
                self._names.close(statement.at)
                self._assembly = Assembly(self._names.input.size, self._names.output.size)
            clauses = self._reader.disjunction(statement.items[1])
            self._assembly.add(clauses, lambda message: self._fail(message, statement.at))
        elif head in ("declare-const", "declare-fun", "declare-network", "vnnlib-version"):
            if self._assembly is not None:
                raise self._fail(f"expected {head} before the first assert", statement.at)
            self._names.declare(statement)
        elif head not in _IGNORED:
            expected = "declare-const, declare-network or assert"
            raise self._fail(f"expected {expected}, got {head or '()'!r}", statement.at)

    def _quick_constants(self) -> bool:
        """Take the run of 1.0 declarations at this place; False when there is none."""
        source, position = self._source, self._source.pos
        while (match := _ONE_CONSTANT.match(source.text, position)) is not None:
            self._names.constant(match[1] == "Y", int(match[2]))
            position = match.end()
        source.pos, taken = position, position > source.pos
        return taken

    def _quick_bounds(self, assembly: Assembly) -> bool:
        """Take the run of one-bound assertions at this place; False when there is none."""
        source, resolve = self._source, self._names.resolve
        text, position, taken = source.text, source.pos, False
        lower, upper = assembly.lower, assembly.upper
        while (match := _ONE_BOUND.match(text, position)) is not None:
            relation, name, number = match.groups()
            variable = resolve(name)
            if variable is None or variable.output:
                break
            value, index = float(number), variable.index
            if relation == "<=":
                if value < upper[index]:
                    assembly.tighten(Bound(index, True, value, False))
            elif value > lower[index]:
                assembly.tighten(Bound(index, False, value, False))
            taken = True
            position = match.end()
        source.pos = position
        return taken
