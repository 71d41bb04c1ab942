"""Smt: exact answers over the rationals with Z3, for tiny networks: the referee that rounding cannot fool.

Every weight, input and ε is the exact fraction that its floating-point number stands for. L∞ and L1 balls and boxes are
linear; an L2 ball is one quadratic constraint, which Z3's nlsat can take for a handful of inputs. The formula is
SMT-LIB text for the solver's own program, which (unlike the library in this process) can be stopped at any moment.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from typing import Any, ClassVar

import numpy as np

from radii.decide import Budget, Clock, beyond
from radii.errors import ToolMissing
from radii.logit_query import LogitQuery, Region, logit_query, logit_spec
from radii.models.classifier import Classifier
from radii.models.graph import PIECEWISE
from radii.problem import Answer, Norm, Proof, Property, Query, Reason, SpecQuery, Witness
from radii.verifiers._relax import crown, over
from radii.verifiers.encode import encode, unsupported
from radii.verifiers.encoding import Block, Encoding
from radii.verifiers.process import Finished, Limits, run

NORMS = ("linf", "l1", "l2")
# A violation on the very edge may vanish in float32: then deeper ones are asked for, in units of the outputs' size.
DEPTHS = (Fraction(0), Fraction(1, 10**7), Fraction(1, 10**5), Fraction(1, 10**3), Fraction(1, 10))


@dataclass(frozen=True)
class Smt:
    """Decides queries and specifications with Z3."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True

    @property
    def identity(self) -> str:
        """Name and version of the solver."""
        try:
            return f"smt(z3 {metadata.version('z3-solver')})"
        except metadata.PackageNotFoundError:
            return "smt(z3)"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes", "outputs"), norms=NORMS, activations=PIECEWISE)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, each within the budget."""
        return [self._answer(logit_query(classifier, query, NORMS, unsupported), budget) for query in queries]

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST when no input of the box violates the specification."""
        return self._answer(logit_spec(classifier, query, unsupported), budget)

    def _answer(self, query: LogitQuery, budget: Budget) -> Answer:
        search = _Check(z3_program(), query, budget)
        if query.obstacle:
            return Answer.unknown(Reason.UNSUPPORTED, query.obstacle, **search.cost())
        middle = query.region.center
        if middle is not None and (found := query.confirm(middle)) is not None:
            return Answer.broken(found, **search.cost())
        outcome = search.check()
        if isinstance(outcome, Witness):
            return Answer.broken(outcome, **search.cost())
        if outcome is None:
            return Answer.robust(Proof("smt", "real", self.identity), **search.cost())
        return Answer.unknown(*outcome, **search.cost())


def z3_program() -> str:
    """The path of the z3 program, from the package or the PATH."""
    try:
        listed = metadata.files("z3-solver") or []
    except metadata.PackageNotFoundError:
        listed = []
    for file in listed:
        if file.name in ("z3", "z3.exe") and "bin" in file.parts[:-1]:
            return str(file.locate())
    found = shutil.which("z3")
    if found is None:
        raise ToolMissing("z3", "pip install 'radii[smt]'", "the smt verifier")
    return found


class _Check:
    """One query: the formula, the calls of the program, and what they cost."""

    def __init__(self, program: str, query: LogitQuery, budget: Budget) -> None:
        self.program, self.query, self.budget = program, query, budget
        self.clock, self.child_cpu, self.peak = Clock(), 0.0, 0

    def cost(self) -> dict[str, Any]:
        cpu = self.clock.cpu + self.child_cpu
        return {"cpu_seconds": cpu, "wall_seconds": self.clock.wall, "peak_memory": self.peak}

    def check(self) -> Witness | tuple[Reason, str] | None:
        """A replayed witness, None when there is none over the rationals, or why there is no answer."""
        region = self.query.region
        encoding = encode(self.query.classifier.graph, region.low, region.high, crown(over(region)))
        text = network_text(encoding) + region_text(region)
        size = max(float(np.max(np.abs(b)[encoding.outputs])) for b in encoding.bounds)
        logic = "QF_NRA" if region.center is not None and region.norm.name == "l2" else "QF_LRA"
        for depth in DEPTHS:
            asked = self._ask(logic, text + self._violation(encoding, depth * Fraction(max(size, 1e-6))), region)
            if isinstance(asked, tuple):
                return asked if depth == 0 else _EDGE
            if asked is None:
                return None if depth == 0 else _EDGE
            witness = self.query.confirm(asked)
            if witness is not None:
                return witness
        return _EDGE

    def _ask(self, logic: str, text: str, region: Region) -> list[float] | tuple[Reason, str] | None:
        names = " ".join(f"x{i}" for i in range(region.low.size))
        head = f"(set-option :pp.decimal true)(set-option :pp.decimal_precision 24)(set-logic {logic})\n"
        script = f"{head}{text}(check-sat)\n(get-value ({names}))\n"
        left = None if self.budget.seconds is None else self.budget.seconds - self.clock.cpu - self.child_cpu
        if left is not None and left <= 0:
            return Reason.TIME, "the budget went into the formula"
        # CPU time is the limit; the wall clock is only there for a program that waits forever.
        wall = None if left is None else 4 * left + 5
        limits = Limits(cpu=left, wall=wall, memory=self.budget.memory, output=2**26)
        done = run([self.program, "-smt2", "-in"], limits, stdin=script.encode())
        self.child_cpu += done.cpu_seconds
        self.peak = max(self.peak, done.peak_memory)
        return _read(done, region.low.size)

    def _violation(self, encoding: Encoding, depth: Fraction) -> str:
        clauses = []
        for clause in self.query.spec.clauses:
            rows = []
            for row, bound in zip(clause.coefficients, clause.bounds):
                terms = [f"(* {number(c)} y{j})" for c, j in zip(row, encoding.outputs) if c]
                rows.append(f"(<= {total(terms)} {number(Fraction(float(bound)) - depth)})")
            clauses.append(f"(and {' '.join(rows)})")
        return f"(assert (or {' '.join(clauses)}))\n"


_EDGE = (Reason.INCOMPLETE, "a counterexample exists over the rationals, but none was found that replays in float32")


def _read(done: Finished, size: int) -> list[float] | tuple[Reason, str] | None:
    """The point of a `sat`, None for `unsat`, or why there is neither."""
    if done.end == "time":
        return Reason.TIME, "z3 was stopped at the limit"
    if done.end == "memory":
        return Reason.MEMORY, "z3 was stopped at the memory limit"
    word, _, rest = done.stdout.lstrip().partition("\n")
    if word.strip() == "unsat":
        return None
    if word.strip() == "sat":
        values = [_decimal(v) for v in re.findall(r"\(x\d+ (\(- [\d.?]+\)|[\d.?]+)\)", rest)]
        if len(values) == size:
            return values
    return Reason.ERROR, f"z3 ended with code {done.code} and said {(done.stdout + done.stderr)[:200]!r}"


def _decimal(text: str) -> float:
    value = float(re.sub(r"[^\d.]", "", text))
    return -value if "-" in text else value


def number(value: float | Fraction) -> str:
    """The exact value of a number, as SMT-LIB writes it."""
    exact = Fraction(float(value)) if not isinstance(value, Fraction) else value
    size = f"{abs(exact.numerator)}.0"
    text = size if exact.denominator == 1 else f"(/ {size} {exact.denominator}.0)"
    return f"(- {text})" if exact < 0 else text


def total(terms: list[str]) -> str:
    """The sum of some terms."""
    return "0.0" if not terms else terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def network_text(encoding: Encoding) -> str:
    """The network over its box: constants x0… (inputs) and y… (all later columns, by their number)."""
    lines = []
    for i, (low, high) in enumerate(zip(encoding.low, encoding.high)):
        lines.append(f"(declare-const x{i} Real)(assert (and (>= x{i} {number(low)}) (<= x{i} {number(high)})))")
    # Outputs are named like columns even where an output is an input.
    lines += [f"(define-fun y{i} () Real x{i})" for i in range(encoding.inputs)]
    for block in encoding.blocks:
        lines += [_column(block, i) for i in range(block.size)]
    return "\n".join(lines) + "\n"


def _column(block: Block, i: int) -> str:
    name = f"y{block.start + i}"
    if block.relu and block.upper[i] <= 0:
        return f"(define-fun {name} () Real 0.0)"
    rows = block.matrix
    at = slice(rows.indptr[i], rows.indptr[i + 1])
    terms = [f"(* {number(a)} y{j})" for a, j in zip(rows.data[at], rows.indices[at]) if a]
    value = total([*terms, number(block.constant[i])])
    text = f"(declare-const {name} Real)"
    if block.error[i] > 0:  # any value within the error, where a coefficient could not be exact
        z, error = f"z{block.start + i}", number(block.error[i])
        text += f"(declare-const {z} Real)(assert (and (>= {z} (- {value} {error})) (<= {z} (+ {value} {error}))))"
        value = z
    if not block.relu or block.lower[i] >= 0:
        return f"{text}(assert (= {name} {value}))"
    return f"{text}(assert (and (>= {name} 0.0) (>= {name} {value}) (or (<= {name} 0.0) (<= {name} {value}))))"


def region_text(region: Region) -> str:
    """The ball with its exact ε (the box itself is part of the network's text)."""
    if region.center is None:
        return ""
    epsilon = number(region.epsilon)
    moves = [f"(- x{i} {number(c)})" for i, c in enumerate(region.center)]
    if region.norm.name == "linf":
        return "".join(f"(assert (and (<= {m} {epsilon}) (>= {m} (- {epsilon}))))\n" for m in moves)
    if region.norm.name == "l2":
        return f"(assert (<= {total([f'(* {m} {m})' for m in moves])} (* {epsilon} {epsilon})))\n"
    sizes = "".join(
        f"(declare-const m{i} Real)(assert (and (>= m{i} {m}) (>= m{i} (- {m}))))\n" for i, m in enumerate(moves)
    )
    return f"{sizes}(assert (<= {total([f'm{i}' for i in range(len(moves))])} {epsilon}))\n"
