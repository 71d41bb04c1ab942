"""Marabou: the maraboupy package in a child process, for L∞ and L1 balls and for boxes.

Marabou computes in floating point and has had wrong answers: its `unsat` is recorded as its claim, its `sat` is
replayed. Every ReLU gets its pair of variables, stable or not: without them Marabou 2.0 fails with "Unknown error".
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from radii.decide import Budget, Clock, beyond
from radii.errors import ToolMissing
from radii.logit_query import LogitQuery, Region, logit_query, logit_spec
from radii.models.classifier import Classifier
from radii.models.graph import PIECEWISE
from radii.problem import Answer, Clause, Norm, Proof, Property, Query, Reason, SpecQuery
from radii.verifiers import _marabou_child
from radii.verifiers._relax import crown, over
from radii.verifiers.encode import encode, unsupported
from radii.verifiers.encoding import Encoding
from radii.verifiers.process import Finished, Limits, run, scratch

NORMS = ("linf", "l1")
NO_REPLAY = "marabou claims a counterexample that does not replay"
# Marabou stops at the edge of a violation. Where float32 rounding undoes it, the query is asked again with this much
# more margin, times 1 + |outputs|.
DEPTHS = (0.0, 1e-5, 1e-3)
BATCH = 32  # queries that share one child: starting it costs more than a small query
_REASONS = {"time": Reason.TIME, "memory": Reason.MEMORY}


@dataclass(frozen=True)
class Marabou:
    """Decides queries and specifications with Marabou; what it proves is its claim."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True

    @property
    def identity(self) -> str:
        """Name and version of the package."""
        try:
            return f"marabou(maraboupy {metadata.version('maraboupy')})"
        except metadata.PackageNotFoundError:
            return "marabou"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes", "outputs"), norms=NORMS, activations=PIECEWISE)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query, each within the budget; one child serves several."""
        return self._answers([logit_query(classifier, query, NORMS, unsupported) for query in queries], budget)

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST when Marabou claims that no input of the box violates the specification."""
        return self._answers([logit_spec(classifier, query, unsupported)], budget)[0]

    def _answers(self, queries: list[LogitQuery], budget: Budget) -> list[Answer]:
        if importlib.util.find_spec("maraboupy") is None:
            raise ToolMissing("maraboupy", "pip install 'radii[marabou]'", "the marabou verifier")
        answers: dict[int, Answer] = {}
        for i, query in enumerate(queries):
            early = _early(query)
            if early is not None:
                answers[i] = early
        for depth in DEPTHS:
            asked = [i for i in range(len(queries)) if i not in answers or answers[i].detail == NO_REPLAY]
            tasks = {i: json.dumps(_task(queries[i], budget, depth)) for i in asked}
            while tasks:
                batch = {i: tasks[i] for i in list(tasks)[:BATCH]}
                for i, answer in self._batch(queries, batch, budget).items():
                    if depth == 0 or answer.witness is not None:
                        answers[i] = answer
                    del tasks[i]
        return [answers[i] for i in range(len(queries))]

    def _batch(self, queries: list[LogitQuery], tasks: dict[int, str], budget: Budget) -> dict[int, Answer]:
        """Answers to at least the first of the tasks: as many as the child gave before it ended."""
        clock = Clock()
        # Marabou keeps its own time limit in whole seconds; this one is for when it does not.
        cpu = None if budget.seconds is None else budget.seconds * len(tasks) + 2
        limits = Limits(cpu=cpu, wall=None if cpu is None else 4 * cpu + 10, memory=budget.memory, output=2**26)
        program = [sys.executable, str(Path(_marabou_child.__file__))]
        with scratch("Marabou leaves files where it runs") as folder:
            done = run(program, limits, cwd=folder, stdin="\n".join(tasks.values()).encode())
        mark = _marabou_child.MARK
        lines = [line[len(mark) :] for line in done.stdout.splitlines() if line.startswith(mark)]
        each: dict[str, Any] = {"wall_seconds": clock.wall / max(len(lines), 1), "peak_memory": done.peak_memory}
        found = {i: self._read(queries[i], json.loads(line), each) for i, line in zip(tasks, lines)}
        if len(found) < len(tasks):  # the child ended during the next one: that one gets the blame
            lost = list(tasks)[len(found)]
            found[lost] = Answer.unknown(*_blame(done), cpu_seconds=done.cpu_seconds, **each)
        return found

    def _read(self, query: LogitQuery, result: dict[str, Any], cost: dict[str, Any]) -> Answer:
        cost = {**cost, "cpu_seconds": result["cpu"]}
        words = [word for word, _ in result["results"]]
        false = 0
        for word, x in result["results"]:
            if word == "sat":
                witness = query.confirm(x)
                if witness is not None:
                    return Answer.broken(witness, **cost)
                false += 1
        if result["error"]:
            return Answer.unknown(Reason.ERROR, f"marabou: {result['error']}", **cost)
        if false:
            return Answer.unknown(Reason.ERROR, NO_REPLAY, **cost)
        if len(words) == len(query.spec.clauses) and all(word == "unsat" for word in words):
            return Answer.robust(Proof("external", "claim", self.identity), **cost)
        odd = next((word for word in words if word != "unsat"), "nothing")
        reason = Reason.TIME if odd == "TIMEOUT" else Reason.ERROR
        return Answer.unknown(reason, f"marabou said {odd}", **cost)


def _early(query: LogitQuery) -> Answer | None:
    """The answer where Marabou need not be asked."""
    if query.obstacle:
        return Answer.unknown(Reason.UNSUPPORTED, query.obstacle)
    center = query.region.center
    witness = None if center is None else query.confirm(center)
    return None if witness is None else Answer.broken(witness)


def _blame(done: Finished) -> tuple[Reason, str]:
    if done.end in _REASONS:
        return _REASONS[done.end], f"marabou was stopped at its {done.end} limit"
    return Reason.ERROR, f"marabou ended with code {done.code}: {done.stderr.strip()[-300:]}"


def _task(query: LogitQuery, budget: Budget, depth: float) -> dict[str, Any]:
    """The query in Marabou's terms: bounds, equations, ReLU pairs and one list of inequalities per clause."""
    region = query.region
    encoding = encode(query.classifier.graph, region.low, region.high, crown(over(region)))
    low, high = (list(map(float, side)) for side in encoding.bounds)
    deeper = depth * (1.0 + max(abs(side[j]) for side in (low, high) for j in encoding.outputs))
    task: dict[str, Any] = {
        "lower": low,
        "upper": high,
        "inputs": list(range(encoding.inputs)),
        "outputs": [int(j) for j in encoding.outputs],
        "equations": [],
        "relus": [],
        "clauses": [_clause(clause, encoding, deeper) for clause in query.spec.clauses],
        "seconds": 0 if budget.seconds is None else max(1, math.ceil(budget.seconds)),
    }
    for block in encoding.blocks:
        for i in range(block.size):
            _column(task, block, i)
    _ball(task, region)
    return task


def _column(task: dict[str, Any], block: Any, i: int) -> None:
    y = target = block.start + i
    if block.relu:
        target = len(task["lower"])
        task["lower"].append(float(block.lower[i]))
        task["upper"].append(float(block.upper[i]))
        task["relus"].append((target, y))
    at = slice(block.matrix.indptr[i], block.matrix.indptr[i + 1])
    terms = [(float(a), int(j)) for a, j in zip(block.matrix.data[at], block.matrix.indices[at]) if a]
    task["equations"].append(("=", [*terms, (-1.0, target)], -float(block.constant[i])))


def _ball(task: dict[str, Any], region: Region) -> None:
    """For L1: x − center = above − below, and their sum is at most ε."""
    if region.is_box or region.center is None:
        return
    parts = []
    for i, middle in enumerate(region.center):
        above = len(task["lower"])
        task["lower"] += [0.0, 0.0]
        task["upper"] += [max(float(region.high[i] - middle), 0.0), max(float(middle - region.low[i]), 0.0)]
        task["equations"].append(("=", [(1.0, i), (-1.0, above), (1.0, above + 1)], float(middle)))
        parts += [(1.0, above), (1.0, above + 1)]
    task["equations"].append(("<=", parts, float(region.epsilon)))


def _clause(clause: Clause, encoding: Encoding, deeper: float) -> list[Any]:
    return [
        ("<=", [(float(c), int(j)) for c, j in zip(row, encoding.outputs) if c], float(bound) - deeper)
        for row, bound in zip(np.asarray(clause.coefficients), clause.bounds)
    ]
