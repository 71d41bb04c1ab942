"""Milp: exact answers by mixed-integer programming (MIPVerify, Tjeng et al. 2019), for L∞ and L1 balls and boxes.

What makes a bound of a floating-point solver a proof: the program is a relaxation of the truth (see `_mip_model`), so
only the slack of the solver can overstate its bound. One that keeps its dual feasibility tolerance τ overstates by at
most τ · Σ (width of every column); ten times that is asked for. Below that the answer is UNKNOWN, never ROBUST.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import psutil

from radii._check import choice
from radii.attacks.min_norm import MinimumNorm
from radii.decide import Budget, Clock, beyond
from radii.logit_query import LogitQuery, logit_query, logit_spec
from radii.models.classifier import Classifier
from radii.models.graph import PIECEWISE
from radii.problem import (
    Answer,
    Clause,
    Instance,
    Norm,
    Proof,
    Property,
    Query,
    Radius,
    Reason,
    SpecQuery,
    Tolerance,
    Verdict,
    Witness,
)
from radii.verifiers._mip_model import Mip, least_margin
from radii.verifiers._mip_solve import PACKAGES, TOLERANCE, Limits, Solved, solve, solver_version
from radii.verifiers._relax import crown, over, row_bounds
from radii.verifiers.encode import encode, unsupported
from radii.verifiers.encoding import Encoding

NORMS = ("linf", "l1")
_ENDS = {"time": Reason.TIME, "memory": Reason.MEMORY, "nodes": Reason.TIME, "error": Reason.ERROR}


def safety(mip: Mip) -> float:
    """What a bound must exceed before it counts: ten times what the solver's tolerance can be worth."""
    return 10 * TOLERANCE * mip.scale


@dataclass(frozen=True)
class Milp:
    """Decides queries and specifications, and measures radii, with HiGHS ("highs"), SCIP ("scip") or Gurobi ("gurobi").

    >>> Milp(solver="highs").proves
    True
    """

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True

    solver: str = "highs"

    def __post_init__(self) -> None:
        choice(self.solver, "milp solver", PACKAGES)

    @property
    def identity(self) -> str:
        """Name, solver and its version."""
        return f"milp(solver={self.solver}, {solver_version(self.solver)})"

    @property
    def proof(self) -> Proof:
        """How a ROBUST answer of this verifier was established."""
        return Proof("milp", "real", solver_version(self.solver))

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes", "outputs"), norms=NORMS, activations=PIECEWISE)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, each within the budget."""
        return [self._decide(classifier, query, budget) for query in queries]

    def _decide(self, classifier: Classifier, query: Query, budget: Budget) -> Answer:
        """A fast attack goes first: solvers are slow to find points that gradients find at once."""
        asked = logit_query(classifier, query, NORMS, unsupported)
        if not asked.obstacle:
            (struck,) = MinimumNorm("fast").decide(classifier, [query], budget)
            if struck.verdict is Verdict.BROKEN:
                return struck
        return self.answer(asked, budget)

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST when no input of the box violates the specification."""
        return self.answer(logit_spec(classifier, query, unsupported), budget)

    def measure(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        budget: Budget,
        *,
        tolerance: Tolerance,
        limit: float | None = None,
        progress: Callable[[int, Radius], None] | None = None,
    ) -> list[Radius]:
        """The radius of each instance, by minimising ε itself."""
        from radii.verifiers._mip_radius import MipRadius  # it needs this module

        found = []
        for place, instance in enumerate(instances):
            query = Query(instance, 0.0, property, norm)
            search = MipRadius(self, classifier, query, budget, tolerance, limit)
            found.append(search.run())
            if progress is not None:
                progress(place, found[-1])
        return found

    def answer(self, query: LogitQuery, budget: Budget) -> Answer:
        """The answer to one query within the budget."""
        deciding = MipDecision(self.solver, query, budget)
        if query.obstacle:
            return deciding.unknown(Reason.UNSUPPORTED, query.obstacle)
        if deciding.center() or deciding.prepare() or not deciding.open:
            return deciding.verdict(self.proof)
        for clause in deciding.open:
            if not deciding.clause(clause):
                break
        return deciding.verdict(self.proof)


class MipDecision:
    """One query on its way to an answer."""

    def __init__(self, solver: str, query: LogitQuery, budget: Budget) -> None:
        self.solver, self.query, self.budget = solver, query, budget
        self.clock, self.nodes = Clock(), 0
        self.witness: Witness | None = None
        self.failed: tuple[Reason, str] | None = None
        self.open: list[Clause] = []
        self.encoding: Encoding | None = None

    @property
    def seconds(self) -> float:
        """CPU seconds of the budget (infinite when there is no limit)."""
        return math.inf if self.budget.seconds is None else self.budget.seconds

    def center(self) -> bool:
        """Whether the middle of the region is itself a counterexample."""
        region = self.query.region
        middle = region.center if region.center is not None else (region.low + region.high) / 2
        self.witness = self.query.confirm(middle)
        return self.witness is not None

    def prepare(self) -> bool:
        """Encodes the network and keeps the clauses that bounds alone do not rule out; true when the budget is gone."""
        region, spec = self.query.region, self.query.spec
        least = over(region)
        self.encoding = encode(self.query.classifier.graph, region.low, region.high, crown(least))
        scored: list[tuple[float, int, Clause]] = []
        for clause in spec.clauses:
            rows = np.zeros((len(clause.bounds), self.encoding.columns))
            rows[:, self.encoding.outputs] = clause.coefficients
            bounds = row_bounds(self.encoding.blocks, rows, least, region.low, region.high)
            margin = float(np.max(bounds - clause.bounds - 1e-15 * (np.abs(bounds) + np.abs(clause.bounds))))
            if not margin > 0:
                scored.append((margin, len(scored), clause))
        self.open = [clause for _, _, clause in sorted(scored)]
        return self.exhausted()

    def exhausted(self) -> bool:
        """Whether time or memory is gone already; says so in `failed`."""
        if self.clock.cpu >= self.seconds:
            self.failed = (Reason.TIME, "the budget went into the bounds")
        elif self.budget.memory is not None and _resident() > self.budget.memory:
            self.failed = (Reason.MEMORY, "the budget went into the bounds")
        return self.failed is not None

    def clause(self, clause: Clause) -> bool:
        """Whether the clause is ruled out; otherwise `witness` or `failed` says why not."""
        assert self.encoding is not None
        mip = least_margin(self.encoding, self.query.region, clause)
        enough = safety(mip)

        def stop(bound: float, x: Any) -> bool:
            if x is not None and self.witness is None:
                self.witness = self.query.confirm(x)
            return self.witness is not None or bound > enough

        solved = self.solve(mip, stop)
        if self.witness is None and solved.x is not None:
            self.witness = self.query.confirm(solved.x)
        if self.witness is not None:
            return False
        if solved.bound > enough:
            return True
        self.failed = _why(solved, enough)
        return False

    def solve(self, mip: Mip, stop: Callable[[float, Any], bool], share: float = 1.0) -> Solved:
        """One solve within (a share of) what is left of the budget."""
        end = self.clock.cpu + share * max(self.seconds - self.clock.cpu, 0.0) if math.isfinite(self.seconds) else 1e9
        nodes = None if self.budget.nodes is None else max(self.budget.nodes - self.nodes, 1)
        limits = Limits(end, self.budget.memory, nodes, lambda: self.clock.cpu, stop)
        solved = solve(self.solver, mip, limits)
        self.nodes += solved.nodes
        return solved

    def cost(self) -> dict[str, Any]:
        """What it cost so far, as an `Answer` wants it."""
        return {
            "cpu_seconds": self.clock.cpu,
            "wall_seconds": self.clock.wall,
            "nodes": self.nodes,
            "peak_memory": _resident(),
        }

    def unknown(self, reason: Reason, detail: str) -> Answer:
        """No answer, and why."""
        return Answer.unknown(reason, detail, **self.cost())

    def verdict(self, proof: Proof) -> Answer:
        """The answer: what was found, what went wrong, or else the proof."""
        if self.witness is not None:
            return Answer.broken(self.witness, **self.cost())
        if self.failed is not None:
            return self.unknown(*self.failed)
        return Answer.robust(proof, **self.cost())


def _why(solved: Solved, enough: float) -> tuple[Reason, str]:
    if solved.end in _ENDS:
        return _ENDS[
            solved.end
        ], f"the solver stopped ({solved.detail or solved.end}) at a margin of {solved.bound:.3g}"
    if solved.end == "infeasible":
        return Reason.ERROR, "the solver called a program infeasible that has a solution"
    detail = f"the least margin, {solved.bound:.3g}, is too close to 0 (a proof needs {enough:.2g})"
    return Reason.INCOMPLETE, f"{detail}, and no counterexample replays"


def _resident() -> int:
    return int(psutil.Process(os.getpid()).memory_info().rss)
