"""`radii verify`: radii as a VNN-LIB solver.

The first line on stdout is sat, unsat, unknown or timed-out; after sat comes the assignment. Everything for people,
such as which of these words means robust, goes to stderr.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import note, writable
from radii.cli.deadline import Deadline
from radii.cli.options import Verifier
from radii.errors import FormatError, InputError

if TYPE_CHECKING:
    from radii.decide import SpecDecider
    from radii.formats import VnnlibProblem
    from radii.models.classifier import Classifier
    from radii.problem import Answer, Proof, Witness


class Form(StrEnum):
    """How a counterexample is printed: as VNN-LIB solvers do, or for 1.0 files as VNN-COMP's ((X_0 v) ...)."""

    ASSIGNMENT = "assignment"
    VNNCOMP = "vnncomp"


def verify(
    query: Annotated[Path, typer.Argument(help="VNN-LIB file, 1.0 or 2.x, plain or gzipped.")],
    network: Annotated[list[str], typer.Option(help="NAME=MODEL.onnx; NAME is the one the file declares.")],
    timeout: Annotated[float, typer.Option(help="Seconds of wall-clock time, loading included.")] = 3600.0,
    verifier: Verifier = "native",
    form: Annotated[Form, typer.Option(help="How a counterexample is printed.")] = Form.ASSIGNMENT,
    serialise: Annotated[
        Path | None, typer.Option("--serialise-assignments", help="Write a counterexample to this folder instead.")
    ] = None,
) -> None:
    """Decide a VNN-LIB query: sat (the property is broken), unsat (it holds), unknown or timed-out.

    \b
    Example:
      radii verify prop_1.vnnlib --network N=acas.onnx --timeout 60
    """
    deadline = Deadline(timeout)
    with deadline.guard():
        # These imports count as loading, so only what a query needs: `radii.api` would bring statistics and stores.
        from radii.formats import read_vnnlib
        from radii.models.load import glance
        from radii.verifiers.catalogue import make

        if serialise is not None:
            writable(serialise)
        problem = read_vnnlib(query)
        path = model_of(problem, network)
        decider = make(verifier)
        # The file says where inputs may lie, so the network gets no domain of its own.
        classifier = glance(path, domain=None)
        problem.check_network(classifier.input_shape, classifier.classes)
        verdict, witness = solve(problem, classifier, decider, deadline)
    deadline.say(verdict)
    if witness is not None and serialise is not None:
        _write(problem, witness, serialise)
    elif witness is not None:
        typer.echo(_assignment(problem, witness, form))


def model_of(problem: VnnlibProblem, given: list[str]) -> str:
    """The path of the one network that the file declares, from NAME=MODEL."""
    if len(given) != 1:
        raise InputError(f"--network: expected one, for the network {problem.network} of the query, got {len(given)}")
    name, equals, path = given[0].partition("=")
    if Path(given[0]).is_file():  # a bare path: the query declares one network, so there is nothing to choose
        name, path = problem.network, given[0]
    elif not equals or not path:
        raise InputError(f"--network: expected NAME=MODEL.onnx, got {given[0]!r}")
    if not problem.version.startswith("1") and name != problem.network:
        raise InputError(f"--network: expected the network {problem.network} that the query declares, got {name!r}")
    for tensor in (problem.input, problem.output):
        if tensor.dtype.lower() not in ("real", "float32"):
            raise FormatError(f"{tensor.name}: expected element type float32 or real, got {tensor.dtype}")
    return path


def solve(
    problem: VnnlibProblem, classifier: Classifier, decider: object, deadline: Deadline
) -> tuple[str, Witness | None]:
    """The verdict of the whole file, with a witness for sat: sat needs one box, unsat needs all of them."""
    from radii.decide import SpecDecider

    if not isinstance(decider, SpecDecider):
        name = getattr(decider, "identity", type(decider).__name__)
        raise InputError(f"--verifier: expected one that decides VNN-LIB queries (native, milp, smt), got {name}")
    if not problem.queries:
        note("robust: no input meets the conditions on the inputs")
        return "unsat", None
    missing: list[str] = []
    proofs: set[str] = set()
    for place in range(len(problem.queries)):
        answer = _answer(problem, place, classifier, decider, deadline)
        if answer is None:
            return "timed-out", None
        if answer.witness is not None:
            if problem.satisfied(answer.witness.x, answer.witness.outputs):
                note(f"broken: a counterexample was found and replayed in onnxruntime, after {deadline.spent:.2f} s")
                return "sat", answer.witness
            missing.append("a counterexample meets the conditions with equality where the file has < or >")
        elif answer.proof is None:
            missing.append(f"{answer.reason} {answer.detail}".strip())
        else:
            proofs.add(_said(answer.proof))
    if missing:
        late = deadline.left <= 0 or all(reason.startswith("time") for reason in missing)
        note(f"no answer for {len(missing)} of {len(problem.queries)} input boxes: {missing[0]}")
        return ("timed-out" if late else "unknown"), None
    note(f"robust: {', '.join(sorted(proofs))}; {len(problem.queries)} input box(es), after {deadline.spent:.2f} s")
    return "unsat", None


def _answer(
    problem: VnnlibProblem, place: int, classifier: Classifier, decider: SpecDecider, deadline: Deadline
) -> Answer | None:
    """The answer for one box within the time that is left; None when none is."""
    import numpy as np

    from radii.decide import Budget
    from radii.problem import Answer, Reason

    query = problem.queries[place]
    loose = np.flatnonzero(~(np.isfinite(query.lower) & np.isfinite(query.upper)))
    if loose.size:
        name = problem.input.element(int(loose[0]), problem.version)
        return Answer.unknown(Reason.UNSUPPORTED, f"{name} has no lower or no upper bound")
    left = deadline.left
    return None if left <= 0 else decider.decide_spec(classifier, query, Budget(seconds=left))


def _said(proof: Proof) -> str:
    """What an unsat rests on."""
    if proof.arithmetic == "claim":
        return f"claimed by {proof.tool}"
    return f"proven by {proof.kind} for " + ("the reals" if proof.arithmetic == "real" else "float32 in any order")


def _assignment(problem: VnnlibProblem, witness: Witness, form: Form) -> str:
    from radii.formats import assignment_text, pairs_text

    if form is Form.VNNCOMP and problem.version.startswith("1"):
        return pairs_text(witness.x, witness.outputs)
    return assignment_text([(problem.input, witness.x), (problem.output, witness.outputs)])


def _write(problem: VnnlibProblem, witness: Witness, folder: Path) -> None:
    """Each variable as a serialised ONNX tensor, as the solver interface asks."""
    from onnx import numpy_helper

    for tensor, values in ((problem.input, witness.x), (problem.output, witness.outputs)):
        proto = numpy_helper.from_array(values.reshape(tensor.shape), tensor.name)
        (folder / f"{tensor.name}.pb").write_bytes(proto.SerializeToString())
