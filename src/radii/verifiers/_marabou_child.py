"""Runs Marabou in a process of its own: one JSON task per line in, one JSON result per line out.

A program, not a module: it imports nothing of radii, so that it starts fast, and a crash of the library takes down
nothing but itself.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MARK = "radii-marabou "


def solve(core: Any, task: dict[str, Any], clause: list[Any]) -> tuple[str, list[float]]:
    """Marabou's word on one clause, and the inputs of a `sat`."""
    query = core.InputQuery()
    query.setNumberOfVariables(len(task["lower"]))
    for i, (low, high) in enumerate(zip(task["lower"], task["upper"])):
        query.setLowerBound(i, low)
        query.setUpperBound(i, high)
    for place, variable in enumerate(task["inputs"]):
        query.markInputVariable(variable, place)
    for place, variable in enumerate(task["outputs"]):
        query.markOutputVariable(variable, place)
    for kind, terms, scalar in task["equations"] + clause:
        equation = core.Equation(core.Equation.LE if kind == "<=" else core.Equation.EQ)
        for coefficient, variable in terms:
            equation.addAddend(coefficient, variable)
        equation.setScalar(scalar)
        query.addEquation(equation)
    for z, y in task["relus"]:
        core.addReluConstraint(query, z, y)
    options = core.Options()
    options._verbosity = 0
    options._numWorkers = 1
    options._timeoutInSeconds = task["seconds"]
    word, values, _ = core.solve(query, options, "")
    return word, [values[v] for v in task["inputs"]] if word == "sat" else []


def main() -> None:
    """Answers every task until the input ends."""
    from maraboupy import MarabouCore

    for line in sys.stdin:
        task, start = json.loads(line), time.process_time()
        results: list[tuple[str, list[float]]] = []
        try:
            results.extend(solve(MarabouCore, task, clause) for clause in task["clauses"])
            error = ""
        except Exception as problem:  # whatever the library throws must not look like an answer
            error = f"{type(problem).__name__}: {problem}"
        done = {"results": results, "error": error, "cpu": time.process_time() - start}
        sys.stdout.write(f"\n{MARK}{json.dumps(done)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
