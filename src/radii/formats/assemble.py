"""Assembly: the assertions of a VNN-LIB file gathered into input boxes and output specifications."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain

import numpy as np

from radii._memory import must_fit
from radii.errors import FormatError
from radii.formats.formula import Bound, Conjunction, Row, refuse_many
from radii.formats.names import Names
from radii.formats.vnnlib import Strictness, VnnlibProblem
from radii.problem import Clause, OutputSpec, SpecQuery

_BYTES = 18  # of one input in one box: two ends and whether each is strict
BoxKey = tuple[Bound, ...]


class Assembly:
    """What every case shares (a box, rows) and the disjunctions still to be multiplied out."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.lower = [-math.inf] * inputs
        self.upper = [math.inf] * inputs
        self._outputs = outputs
        self._strict: tuple[set[int], set[int]] = (set(), set())
        self._rows: list[Row] = []
        self._cases: list[Conjunction] = [()]

    def tighten(self, bound: Bound) -> None:
        """Take a bound that holds in every case."""
        _tighten(self.lower, self.upper, self._strict, bound)

    def add(self, clauses: list[Conjunction], fail: Callable[[str], FormatError]) -> None:
        """Take one assertion in disjunctive normal form."""
        if len(clauses) == 1:
            for atom in clauses[0]:
                if isinstance(atom, Bound):
                    self.tighten(atom)
                else:
                    self._rows.append(atom)
            return
        refuse_many(self._cases, clauses, fail)
        self._cases = [(*left, *right) for left in self._cases for right in clauses]

    def problem(self, names: Names) -> VnnlibProblem:
        """One query for every box, its clauses in the order of the file; empty boxes are left out."""
        groups: dict[BoxKey, list[list[Row]]] = {}
        for case in self._cases:
            box = tuple(atom for atom in case if isinstance(atom, Bound))
            rows = [atom for atom in case if isinstance(atom, Row)]
            groups.setdefault(box, []).append([*self._rows, *rows])
        must_fit(len(groups) * names.input.size * _BYTES, "input boxes", FormatError)
        built = [self._query(box, clauses) for box, clauses in groups.items()]
        found = [pair for pair in built if pair is not None]
        return VnnlibProblem(
            queries=tuple(query for query, _ in found),
            strictness=tuple(strict for _, strict in found),
            input=names.input,
            output=names.output,
            network=names.network,
            version=names.version,
        )

    def _query(self, box: BoxKey, clauses: list[list[Row]]) -> tuple[SpecQuery, Strictness] | None:
        lower, upper = list(self.lower), list(self.upper)
        strict = (set(self._strict[0]), set(self._strict[1]))
        for bound in box:
            _tighten(lower, upper, strict, bound)
        low, high = np.array(lower), np.array(upper)
        flags = _flags(len(lower), strict[0]), _flags(len(upper), strict[1])
        if np.any(low > high) or np.any((low == high) & (flags[0] | flags[1])):
            return None
        spec = OutputSpec(tuple(self._clause(rows) for rows in clauses))
        strict_rows = tuple(np.array([row.strict for row in rows] or [False]) for rows in clauses)
        return SpecQuery(low, high, spec), Strictness(flags[0], flags[1], strict_rows)

    def _clause(self, rows: list[Row]) -> Clause:
        # Without a condition on the outputs every input of the box is an answer: 0 ≤ 0.
        matrix = np.zeros((max(1, len(rows)), self._outputs))
        entries = list(chain.from_iterable(((i, j, c) for j, c in row.terms) for i, row in enumerate(rows)))
        if entries:
            at, column, value = zip(*entries, strict=True)
            matrix[list(at), list(column)] = value
        return Clause(matrix, np.array([row.bound for row in rows] or [0.0]))


def _tighten(lower: list[float], upper: list[float], strict: tuple[set[int], set[int]], bound: Bound) -> None:
    ends, marks = (upper, strict[1]) if bound.upper else (lower, strict[0])
    old, new = ends[bound.index], bound.value
    if new == old and bound.strict:
        marks.add(bound.index)
    elif new < old if bound.upper else new > old:
        ends[bound.index] = new
        (marks.add if bound.strict else marks.discard)(bound.index)


def _flags(size: int, members: set[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    flags = np.zeros(size, dtype=bool)
    flags[list(members)] = True
    return flags
