"""Formulas: a VNN-LIB assertion as a disjunction of conjunctions of bounds on inputs and linear rows on outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from radii.errors import FormatError
from radii.formats.sexpr import Atom, Group, Tree

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
MOST_CLAUSES = 200_000  # of a disjunctive normal form
MOST_DIGITS = 4000  # of a number; the longest exact float64 has 1,077
MOST_ATOMS = 20_000_000  # in all its clauses together


@dataclass(frozen=True, slots=True)
class Variable:
    """One number the network takes (`output` false) or gives, by its flat position."""

    output: bool
    index: int


@dataclass(frozen=True, slots=True)
class Bound:
    """input[index] ≤ value (`upper`) or ≥ value; without equality when strict."""

    index: int
    upper: bool
    value: float
    strict: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Σ coefficient · output[index] ≤ bound; without equality when strict."""

    terms: tuple[tuple[int, float], ...]
    bound: float
    strict: bool


Conjunction = tuple[Bound | Row, ...]
Fail = Callable[[str, int], FormatError]
Resolve = Callable[[str], Variable | None]


@dataclass(frozen=True, slots=True)
class _Linear:
    terms: dict[Variable, Fraction]
    constant: Fraction

    def scaled(self, factor: Fraction) -> _Linear:
        return _Linear({v: c * factor for v, c in self.terms.items()}, self.constant * factor)

    def plus(self, other: _Linear) -> _Linear:
        terms = dict(self.terms)
        for variable, coefficient in other.terms.items():
            terms[variable] = terms.get(variable, Fraction(0)) + coefficient
        return _Linear(terms, self.constant + other.constant)


class Reader:
    """Turns trees into conjunctions; `resolve` names variables, `fail` makes an error for an offset."""

    def __init__(self, resolve: Resolve, fail: Fail) -> None:
        self._resolve = resolve
        self._fail = fail

    def disjunction(self, tree: Tree) -> list[Conjunction]:
        """The formula in disjunctive normal form."""
        if isinstance(tree, Atom):
            if tree.text in ("true", "false"):
                return [()] if tree.text == "true" else []
            raise self._fail(f"expected a condition, got {tree.text[:40]!r}", tree.at)
        head, rest = tree.head, tree.items[1:]
        if head == "and":
            return self._product((self.disjunction(item) for item in rest), tree.at)
        if head == "or":
            return [clause for item in rest for clause in self.disjunction(item)]
        if head in _COMPARISONS:
            return self._comparison(head, tree)
        if head == "not":
            raise self._fail("expected a condition without 'not'; turn the comparison around instead", tree.at)
        raise self._fail(f"expected and, or, <=, >=, <, >, == or !=, got {head or '()'!r}", tree.at)

    def _product(self, parts: Iterable[list[Conjunction]], at: int) -> list[Conjunction]:
        result: list[Conjunction] = [()]
        common: list[Bound | Row] = []  # of parts with one case, which need no multiplying
        for part in parts:
            if len(part) == 1:
                common.extend(part[0])
                continue
            refuse_many(result, part, lambda message: self._fail(message, at))
            result = [(*left, *right) for left, right in product(result, part)]
        refuse_many(result, [tuple(common)], lambda message: self._fail(message, at))
        return [(*common, *case) for case in result]

    def _comparison(self, head: str, tree: Group) -> list[Conjunction]:
        sides = _joined(tree.items[1:])
        if len(sides) != 2:
            raise self._fail(f"expected two sides of {head}, got {len(sides)}", tree.at)
        if head in ("<=", ">=") and (bound := self._plain_bound(head, *sides)) is not None:
            return [(bound,)]
        left, right = (self._linear(side) for side in sides)
        difference = left.plus(right.scaled(Fraction(-1)))
        try:
            return [
                tuple(self._atom(difference.scaled(Fraction(sign)), strict, tree.at) for sign, strict in case)
                for case in _COMPARISONS[head]
            ]
        except OverflowError:
            raise self._fail("expected numbers in the range of float64, got larger ones", tree.at) from None

    def _plain_bound(self, head: str, name: Tree, value: Tree) -> Bound | None:
        """input ≤ number or input ≥ number, by far the most common condition, without any algebra."""
        if not (isinstance(name, Atom) and isinstance(value, Atom) and _NUMBER.fullmatch(value.text)):
            return None
        variable, number = self._resolve(name.text), float(value.text)
        if variable is None or variable.output or not math.isfinite(number):
            return None
        return Bound(variable.index, head == "<=", number, False)

    def _atom(self, difference: _Linear, strict: bool, at: int) -> Bound | Row:
        """difference ≤ 0 (or < 0) as a bound on one input or a row over outputs."""
        terms = {v: c for v, c in difference.terms.items() if c}
        inputs = [v for v in terms if not v.output]
        if inputs and len(inputs) < len(terms):
            raise self._fail("a condition that mixes inputs and outputs is not a property radii can decide", at)
        if len(inputs) > 1:
            raise self._fail("a condition on several inputs at once is not a box; give each input its own bounds", at)
        if inputs:
            coefficient = terms[inputs[0]]
            return Bound(inputs[0].index, coefficient > 0, float(-difference.constant / coefficient), strict)
        row = tuple(sorted((v.index, float(c)) for v, c in terms.items()))
        return Row(row, float(-difference.constant), strict)

    def _linear(self, tree: Tree) -> _Linear:
        if isinstance(tree, Atom):
            return self._leaf(tree)
        head = tree.head
        parts = [self._linear(side) for side in _joined(tree.items[1:])]
        if not parts or head not in ("+", "-", "*", "/"):
            raise self._fail(f"expected +, -, * or a number, got {head or '()'!r}", tree.at)
        if head == "-" and len(parts) == 1:
            return parts[0].scaled(Fraction(-1))
        result = parts[0]
        for part in parts[1:]:
            if head in "+-":
                result = result.plus(part.scaled(Fraction(1 if head == "+" else -1)))
            elif head == "*":
                result = self._times(result, part, tree.at)
            else:
                result = self._over(result, part, tree.at)
        return result

    def _times(self, a: _Linear, b: _Linear, at: int) -> _Linear:
        if a.terms and b.terms:
            raise self._fail("a product of variables is not linear; radii decides linear conditions", at)
        return b.scaled(a.constant) if not a.terms else a.scaled(b.constant)

    def _over(self, a: _Linear, b: _Linear, at: int) -> _Linear:
        if b.terms or not b.constant:
            raise self._fail("expected a division by a number other than 0", at)
        return a.scaled(1 / b.constant)

    def _leaf(self, atom: Atom) -> _Linear:
        if atom.text[0] in "0123456789+-.":
            if not _NUMBER.fullmatch(atom.text) or not math.isfinite(float(atom.text)) or len(atom.text) > MOST_DIGITS:
                raise self._fail(f"expected a finite decimal number, got {atom.text[:40]!r}", atom.at)
            return _Linear({}, Fraction(atom.text))
        variable = self._resolve(atom.text)
        if variable is None:
            raise self._fail(f"expected a declared variable, got {atom.text[:40]!r}", atom.at)
        return _Linear({variable: Fraction(1)}, Fraction(0))


def refuse_many(left: list[Conjunction], right: list[Conjunction], fail: Callable[[str], FormatError]) -> None:
    """Refuse a product of cases that is too large: a few kilobytes of disjunctions can ask for any memory."""
    atoms = sum(map(len, left)) * len(right) + sum(map(len, right)) * len(left)
    if len(left) * len(right) > MOST_CLAUSES or atoms > MOST_ATOMS:
        raise fail(f"expected at most {MOST_CLAUSES} cases and {MOST_ATOMS} conditions, got more; split the query")


# Each comparison a ? b as cases of conditions sign · (a − b) ≤ 0, strict or not.
_COMPARISONS: dict[str, tuple[tuple[tuple[int, bool], ...], ...]] = {
    "<=": (((1, False),),),
    ">=": (((-1, False),),),
    "<": (((1, True),),),
    ">": (((-1, True),),),
    "==": (((1, False), (-1, False)),),
    "=": (((1, False), (-1, False)),),
    "!=": (((1, True),), ((-1, True),)),
}


def _joined(items: tuple[Tree, ...]) -> list[Tree]:
    """The items with `X [0,1]` (a name, then its indices) made one atom."""
    joined: list[Tree] = []
    for item in items:
        last = joined[-1] if joined else None
        if isinstance(item, Atom) and item.text[0] == "[" and isinstance(last, Atom):
            joined[-1] = Atom(last.text + "".join(item.text.split()), last.at)
        else:
            joined.append(item)
    return joined
