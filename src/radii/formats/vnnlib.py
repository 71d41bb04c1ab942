"""VnnlibProblem: what a VNN-LIB file asks, as one `SpecQuery` for every input box.

`sat` means that some input of some box has outputs that violate the specification of that box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import FormatError
from radii.problem import SpecQuery

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A declared variable: its name, element type and shape. In 1.0 files, X or Y with one flat dimension."""

    name: str
    shape: Shape
    dtype: str = "Real"

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    def element(self, index: int, version: str) -> str:
        """The name of one element, counted in row-major order."""
        if version.startswith("1"):
            return f"{self.name}_{index}"
        if not self.shape:
            return self.name
        return f"{self.name}[{','.join(str(int(i)) for i in np.unravel_index(index, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Strictness:
    """Which bounds and rows of a query were written with < or >, which a closed box and closed rows cannot say."""

    lower: NDArray[np.bool_] = field(repr=False)
    upper: NDArray[np.bool_] = field(repr=False)
    rows: tuple[NDArray[np.bool_], ...] = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.lower.any() or self.upper.any() or any(rows.any() for rows in self.rows))

    def met(self, query: SpecQuery, x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
        """Whether x and y satisfy the query with its strict parts taken as strict, in float64."""
        low = np.where(self.lower, x > query.lower, x >= query.lower)
        high = np.where(self.upper, x < query.upper, x <= query.upper)
        if not (low.all() and high.all()):
            return False
        for clause, strict in zip(query.spec.clauses, self.rows, strict=True):
            values = clause.coefficients @ y
            if np.where(strict, values < clause.bounds, values <= clause.bounds).all():
                return True
        return False


@dataclass(frozen=True, slots=True)
class VnnlibProblem:
    """The queries of a file, in order, and the names it uses.

    No query at all means that no input meets the file's own conditions: it is `unsat` whatever the network.
    `queries` are closed: where the file has strict inequalities they ask a little more, and `satisfied` has the
    last word on a witness.
    """

    queries: tuple[SpecQuery, ...]
    input: Tensor
    output: Tensor
    network: str = "N"
    version: str = "1.0"
    strictness: tuple[Strictness, ...] = ()

    def satisfied(self, x: Any, y: Any) -> bool:
        """Whether an input and its outputs satisfy the file, strict inequalities included."""
        inputs = np.asarray(x, dtype=np.float64).ravel()
        outputs = np.asarray(y, dtype=np.float64).ravel()
        return any(s.met(q, inputs, outputs) for q, s in zip(self.queries, self.strictness, strict=True))

    def check_network(self, input_shape: Shape, outputs: int) -> None:
        """Refuse a network that the file was not written for."""
        declared = self.input.shape
        if self.input.size != prod(input_shape):
            raise FormatError(
                f"the query is for a network with {self.input.size} inputs {list(declared)}, "
                f"got one with {prod(input_shape)} inputs {list(input_shape)}; give the network it was written for"
            )
        if self.output.size != outputs:
            raise FormatError(
                f"the query is for a network with {self.output.size} outputs, got one with {outputs}; "
                "give the network it was written for"
            )
        squeezed, given = _squeezed(declared), _squeezed(tuple(input_shape))
        if squeezed != given and len(squeezed) > 1 and len(given) > 1:
            raise FormatError(
                f"the query is for inputs of shape {list(declared)}, got a network with {list(input_shape)}; "
                "their axes are in another order"
            )


def _squeezed(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)
