"""Writing VNN-LIB 1.0 and 2.x: exact decimals without exponents, so that what is read back is what was asked.

The text says the *violation*: `sat` means that the property is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from radii._check import choice
from radii.errors import InputError
from radii.formats.decimals import exact, exact_sum
from radii.formats.vnnlib import Shape, Tensor, VnnlibProblem
from radii.problem import LINF, Clause, Domain, OutputSpec, Property, Query, SpecQuery

VERSIONS = ("1.0", "2.0")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file names things: its version, and (for 2.x) the network's name, shapes and element type.

    Without shapes, inputs and outputs are flat.
    """

    version: str = "1.0"
    network: str = "N"
    input_shape: Shape | None = None
    output_shape: Shape | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        choice(self.version, "VNN-LIB version", VERSIONS)

    def tensors(self, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
        """The input and output that the file declares."""
        if self.version == "1.0":
            return Tensor("X", (inputs,)), Tensor("Y", (outputs,))
        dtype = "real" if self.dtype == "Real" else self.dtype  # 2.x writes it small
        x = Tensor("X", (inputs,) if self.input_shape is None else self.input_shape, dtype)
        y = Tensor("Y", (outputs,) if self.output_shape is None else self.output_shape, dtype)
        for tensor, size, what in ((x, inputs, "inputs"), (y, outputs, "outputs")):
            if tensor.size != size:
                raise InputError(f"layout: expected a shape of {size} {what}, got {list(tensor.shape)}")
        return x, y


_UNIT, _FLAT = Domain(), Layout()


def query_text(
    query: Query, classes: int, *, domain: Domain = _UNIT, reference: Any = None, layout: Layout = _FLAT
) -> str:
    """The query as VNN-LIB: the exact ball ∩ domain, and the violation of the property.

    `reference` are the outputs at the centre, which standard robustness needs. Balls that are not boxes are refused.
    """
    if query.norm != LINF:
        raise InputError(
            f"VNN-LIB: expected norm linf, got {query.norm.name}: VNN-LIB gives every input its own interval, "
            f"and an {query.norm.name.upper()} ball is not such a box; use a verifier with this norm instead of a file"
        )
    _refuse(query.property, query.property.speaks_of)
    spec = query.property.violations(classes, query.instance.label, reference)
    _refuse(query.property, "a norm" if spec.judge is not None else "outputs")
    center = query.instance.x.ravel().tolist()
    low = [exact(domain.low) if c - query.epsilon < domain.low else exact_sum(c, -query.epsilon) for c in center]
    high = [exact(domain.high) if c + query.epsilon > domain.high else exact_sum(c, query.epsilon) for c in center]
    note = f"{query.property.kind} of label {query.instance.label} for norm linf, epsilon {exact(query.epsilon)}"
    return "\n".join(_lines([(low, high, spec)], layout, note)) + "\n"


_NOT_LINEAR = {
    "distance": "a slope divides by the distance moved, and VNN-LIB has no norm of the inputs",
    "probabilities": "probabilities are a softmax of the outputs, which is not linear",
    "a norm": "an L1 or L2 norm of the outputs is not linear",
}


def _refuse(property: Property, subject: str) -> None:
    """Raises `InputError` for what VNN-LIB, which compares linear functions of inputs and outputs, cannot say."""
    if subject in _NOT_LINEAR:
        raise InputError(
            f"VNN-LIB: expected linear conditions on the outputs, got {property}: {_NOT_LINEAR[subject]}; "
            "use verifier native"
        )


def spec_text(query: SpecQuery, *, layout: Layout = _FLAT) -> str:
    """A general specification over one box as VNN-LIB."""
    return "\n".join(_lines([_box(query)], layout, "")) + "\n"


def problem_text(problem: VnnlibProblem) -> str:
    """A whole problem as VNN-LIB, in its own version and names; strict inequalities cannot be kept and are refused."""
    if not problem.queries:
        raise InputError("VNN-LIB: expected at least one input box, got a problem that no input can meet")
    if any(problem.strictness):
        raise InputError("VNN-LIB: expected closed conditions, got strict inequalities, which are not written back")
    version = "1.0" if problem.version.startswith("1") else "2.0"
    layout = Layout(version, problem.network, problem.input.shape, problem.output.shape, problem.input.dtype)
    return "\n".join(_lines([_box(query) for query in problem.queries], layout, "")) + "\n"


Case = tuple[list[str | None], list[str | None], OutputSpec]


def _box(query: SpecQuery) -> Case:
    def ends(values: Any) -> list[str | None]:
        return [exact(v) if np.isfinite(v) else None for v in np.asarray(values).ravel().tolist()]

    return ends(query.lower), ends(query.upper), query.spec


def _lines(cases: Sequence[Any], layout: Layout, note: str) -> Iterator[str]:
    low, _, spec = cases[0]
    x, y = layout.tensors(len(low), spec.outputs)
    inputs = [x.element(i, layout.version) for i in range(x.size)]
    outputs = [y.element(i, layout.version) for i in range(y.size)]
    yield f"; {note}. sat: the property is broken; unsat: it holds" if note else "; sat: an input meets the conditions"
    yield from _declarations(layout, x, y, inputs, outputs)
    if len(cases) == 1:
        yield from (f"(assert {bound})" for bound in _bounds(inputs, *cases[0][:2]))
        yield from _specification(spec, outputs)
    else:
        yield "(assert (or"
        for low, high, spec in cases:
            bounds = list(_bounds(inputs, low, high))
            for clause in spec.clauses:
                yield f"    (and {' '.join([*bounds, *_rows(clause, outputs)])})"
        yield "))"


def _declarations(layout: Layout, x: Tensor, y: Tensor, inputs: list[str], outputs: list[str]) -> Iterator[str]:
    if layout.version == "1.0":
        yield from (f"(declare-const {name} Real)" for name in [*inputs, *outputs])
        return
    yield f"(vnnlib-version <{layout.version}>)"
    yield f"(declare-network {layout.network}"
    for kind, tensor in (("input", x), ("output", y)):
        yield f"    (declare-{kind} {tensor.name} {tensor.dtype} [{','.join(map(str, tensor.shape))}])"
    yield ")"


def _bounds(names: list[str], low: list[str | None], high: list[str | None]) -> Iterator[str]:
    for name, least, most in zip(names, low, high, strict=True):
        if least is not None:
            yield f"(>= {name} {least})"
        if most is not None:
            yield f"(<= {name} {most})"


def _specification(spec: OutputSpec, names: list[str]) -> Iterator[str]:
    if len(spec.clauses) == 1:
        yield from (f"(assert {row})" for row in _rows(spec.clauses[0], names))
        return
    yield "(assert (or"
    for clause in spec.clauses:
        yield f"    (and {' '.join(_rows(clause, names))})"
    yield "))"


def _rows(clause: Clause, names: list[str]) -> Iterator[str]:
    for coefficients, bound in zip(clause.coefficients.tolist(), clause.bounds.tolist(), strict=True):
        terms = [(c, names[j]) for j, c in enumerate(coefficients) if c]
        yield _row(terms, bound, names)


def _row(terms: list[tuple[float, str]], bound: float, names: list[str]) -> str:
    """Σ c·y ≤ bound in the plainest words: y ≤ b, y ≥ b and y ≤ z where they say it."""
    if len(terms) == 1 and abs(terms[0][0]) == 1:
        sign, name = terms[0]
        return f"(<= {name} {exact(bound)})" if sign > 0 else f"(>= {name} {exact(-bound)})"
    if bound == 0 and sorted(c for c, _ in terms) == [-1.0, 1.0]:
        small, large = (name for _, name in sorted(terms, reverse=True))
        return f"(<= {small} {large})"
    parts = [f"(* {exact(c)} {name})" for c, name in terms] or [f"(* 0.0 {names[0]})"]
    total = parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"
    return f"(<= {total} {exact(bound)})"
