"""The properties that come with radii.

Each says, for a network with `classes` outputs, which linear conditions on the outputs violate it (`violations`), so
that attacks, bounds and solvers need to know conditions only, and which number it bounds (`quantity`), so that its
reach can be measured. Outputs are the network's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from radii._check import choice, number, whole
from radii.errors import InputError
from radii.problem.property import Property, made, register
from radii.problem.quantity import Quantity, signed
from radii.problem.spec import Clause, OutputSpec

NORMS = ("linf", "l2", "l1")  # of outputs, each at most as large as the next


@register
@dataclass(frozen=True, slots=True)
class Classification(Property):
    """The label stays on top: of every other class, or of one `target` class. A tie breaks it."""

    kind = "classification"
    speaks_of = "classes"
    target: int | None = None

    def __post_init__(self) -> None:
        if self.target is not None:
            whole(self.target, "target")

    def targets(self, classes: int, label: int) -> tuple[int, ...]:
        """The classes that must not reach the label's output."""
        if classes < 2:
            raise InputError(
                f"classification: expected a network of at least 2 outputs, got {classes}; regression networks have no "
                "classes, ask for standard, lipschitz or rows"
            )
        if not 0 <= label < classes:
            raise InputError(f"label: expected a class from 0 to {classes - 1}, got {label}")
        if self.target is None:
            return tuple(c for c in range(classes) if c != label)
        if not 0 <= self.target < classes:
            raise InputError(f"target: expected a class from 0 to {classes - 1}, got {self.target}")
        if self.target == label:
            raise InputError(f"target: expected another class than the label, got {self.target} for both")
        return (self.target,)

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return OutputSpec(
            tuple(Clause(_difference(classes, label, target), np.zeros(1)) for target in self.targets(classes, label))
        )

    @property
    def quantity_name(self) -> str:
        return "margin of the label" + ("" if self.target is None else f" over class {self.target}")

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The margin of the label over the targets, of which the least value counts."""
        rows = np.concatenate([-_difference(classes, label, target) for target in self.targets(classes, label)])
        return Quantity(rows, np.zeros(len(rows)), least=True)

    def implies(self, other: Property, epsilon: float) -> bool:
        return self == other or (self.target is None and isinstance(other, Classification))

    def asks(self, label: int) -> bool:
        return label != self.target

    @classmethod
    def each(cls, values: Mapping[str, Any], classes: int | None) -> list[Self]:
        """One property; one for each class that `target` lists; or, for `target: all`, one for every class."""
        target = values.get("target")
        if target != "all" and not isinstance(target, (list, tuple)):
            target = [target]
        given: list[Any] = ([None] if classes is None else list(range(classes))) if target == "all" else list(target)
        if not given:
            raise InputError("property: expected a target, a list of targets or all, got an empty list")
        found = [made(cls, {**values, "target": one}) for one in given]
        for one in found:
            if classes is not None and one.target is not None and one.target >= classes:
                raise InputError(f"property: expected a target from 0 to {classes - 1}, got {one.target}")
        return found


@register
@dataclass(frozen=True, slots=True)
class StrongClassification(Property):
    """The label's output (or its softmax probability, `on: probability`) stays above eta (Casadio et al. 2022)."""

    kind = "strong"
    threshold = "eta"
    eta: float
    on: str = "output"

    def __post_init__(self) -> None:
        choice(self.on, "on", ("output", "probability"))
        object.__setattr__(self, "eta", number(self.eta, "eta"))
        if self.on == "probability" and not 0 < self.eta < 1:
            raise InputError(f"eta: expected a probability between 0 and 1, got {self.eta}")

    @property
    def speaks_of(self) -> str:  # type: ignore[override]  # a constant of other properties, here it follows `on`
        return "outputs" if self.on == "output" else "probabilities"

    @property
    def caution(self) -> str:
        if self.on == "output" or self.eta > 0.5:
            return ""
        return (
            f"{self}: a probability above {self.eta:g} does not keep the label on top, another class may have more; "
            "only above 1/2 does it imply classification"
        )

    def implies(self, other: Property, epsilon: float) -> bool:
        """The same with a smaller eta; classification too, where the label keeps more than half of the probability."""
        if isinstance(other, StrongClassification):
            return self.on == other.on and self.eta >= other.eta
        return isinstance(other, Classification) and self.on == "probability" and self.eta > 0.5

    @property
    def quantity_name(self) -> str:
        return f"{self.on} of the label"

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The label's output or probability, of which the least value counts."""
        row = -np.eye(classes)[[_class(label, classes)]]
        of = "outputs" if self.on == "output" else "probabilities"
        return Quantity(row, np.zeros(1), of=of, least=True, unit=self.on)

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return self.quantity(classes, label).exceeding(-self.eta)


@register
@dataclass(frozen=True, slots=True)
class Standard(Property):
    """The outputs stay nearer than delta to those at the centre, in `norm` (linf: no output moves that far)."""

    kind = "standard"
    needs_label = False
    threshold = "delta"
    delta: float
    norm: str = "linf"

    def __post_init__(self) -> None:
        choice(self.norm, "norm", NORMS)
        object.__setattr__(self, "delta", number(self.delta, "delta", low=0.0, strict=True))

    def implies(self, other: Property, epsilon: float) -> bool:
        """The same with a larger delta, also in a norm that is never larger: L∞ ≤ L2 ≤ L1."""
        if not isinstance(other, Standard):
            return False
        return NORMS.index(other.norm) <= NORMS.index(self.norm) and self.delta <= other.delta

    @property
    def quantity_name(self) -> str:
        return "output change" + ("" if self.norm == "linf" else f" ({self.norm})")

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """How far the outputs are from those at the centre."""
        rows = signed(np.eye(classes), _center(reference, classes, "standard robustness"))
        # Outputs that each move by less than δ/√m (δ/m) are together nearer than δ in the L2 (L1) norm.
        order, inside = {"linf": (np.inf, 1.0), "l2": (2.0, classes**-0.5), "l1": (1.0, 1.0 / classes)}[self.norm]
        return Quantity(*rows, inside=inside * (1.0 if self.norm == "linf" else 1.0 - 1e-15), order=order)

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return self.quantity(classes, label, reference).exceeding(self.delta)


@register
@dataclass(frozen=True, slots=True)
class Lipschitz(Property):
    """Every output moves less than `constant` times as far as the input, seen from the centre (Casadio et al. 2022)."""

    kind = "lipschitz"
    needs_label = False
    speaks_of = "distance"
    threshold = "constant"
    constant: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", number(self.constant, "constant", low=0.0, strict=True))

    def implies(self, other: Property, epsilon: float) -> bool:
        """The same with a larger constant; standard robustness with a delta of ε times the constant or more."""
        if isinstance(other, Lipschitz):
            return self.constant <= other.constant
        moved = Fraction(epsilon) * Fraction(self.constant)  # over the reals: a product of floats may round down
        return isinstance(other, Standard) and other.norm == "linf" and moved <= Fraction(other.delta)

    @property
    def quantity_name(self) -> str:
        return "slope"

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The slope: how far an output moves per unit of distance from the centre."""
        rows = signed(np.eye(classes), _center(reference, classes, "lipschitz"))
        return Quantity(*rows, per_distance=True, unit="output per unit of input")

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return self.quantity(classes, label, reference).exceeding(self.constant)


@register
@dataclass(frozen=True, slots=True)
class Probability(Property):
    """No softmax probability moves by gamma or more from its value at the centre.

    The quantitative robustness h of "Global Adversarial Robustness Guarantees for Neural Networks".
    """

    kind = "probability"
    needs_label = False
    speaks_of = "probabilities"
    threshold = "gamma"
    gamma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", number(self.gamma, "gamma", low=0.0, high=1.0, strict=True))

    def implies(self, other: Property, epsilon: float) -> bool:
        return isinstance(other, Probability) and self.gamma <= other.gamma

    @property
    def quantity_name(self) -> str:
        return "probability change"

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The largest change of a softmax probability."""
        rows = signed(np.eye(classes), _center(reference, classes, "probability change"))
        return Quantity(*rows, of="probabilities", unit="probability")

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        return self.quantity(classes, label, reference).exceeding(self.gamma)


@register
@dataclass(frozen=True, slots=True)
class Rows(Property):
    """Every given row of the outputs stays above its bound: rows @ outputs > bounds (0 where none are given).

    With `clauses`, lists of row numbers from 0, one row of every clause does: clauses=((0, 1), (2,)) is broken where
    rows 0 and 1 fail together, or row 2.
    """

    kind = "rows"
    needs_label = False
    rows: tuple[tuple[float, ...], ...]
    bounds: tuple[float, ...] | None = None
    clauses: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        rows = tuple(tuple(number(v, "rows") for v in row) for row in _lists(self.rows, "rows"))
        if not rows or len({len(row) for row in rows}) != 1:
            raise InputError(f"rows: expected rows of coefficients, all of one length, got {self.rows!r}")
        object.__setattr__(self, "rows", rows)
        if self.bounds is not None:
            bounds = tuple(number(v, "bounds") for v in self.bounds)
            if len(bounds) != len(rows):
                raise InputError(f"bounds: expected {len(rows)}, one per row, got {len(bounds)}")
            object.__setattr__(self, "bounds", bounds)
        if self.clauses is not None:
            clauses = tuple(tuple(whole(k, "clauses") for k in one) for one in _lists(self.clauses, "clauses"))
            if not clauses or not all(clauses) or max(max(one) for one in clauses) >= len(rows):
                raise InputError(f"clauses: expected lists of row numbers below {len(rows)}, got {self.clauses!r}")
            object.__setattr__(self, "clauses", clauses)

    @classmethod
    def example(cls) -> Self:
        """One property of the kind, for networks of three outputs."""
        return cls(((1.0, -1.0, 0.0),))

    @property
    def quantity_name(self) -> str:
        return "value of the rows" if len(self.rows) > 1 else "value of the row"

    def quantity(self, classes: int, label: int, reference: Any = None) -> Quantity:
        """The least of rows @ outputs − bounds."""
        if self.clauses is not None:
            raise InputError("rows: expected rows without clauses, got clauses: only single rows have a reach")
        return Quantity(-self._rows(classes), self._bounds(), least=True)

    def violations(self, classes: int, label: int, reference: Any = None) -> OutputSpec:
        rows, bounds = self._rows(classes), self._bounds()
        clauses = self.clauses or tuple((k,) for k in range(len(rows)))
        return OutputSpec(tuple(Clause(rows[list(one)], bounds[list(one)]) for one in clauses))

    def _rows(self, classes: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        if len(self.rows[0]) != classes:
            raise InputError(f"rows: expected {classes} coefficients per row, one per output, got {len(self.rows[0])}")
        return np.array(self.rows)

    def _bounds(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.zeros(len(self.rows)) if self.bounds is None else np.array(self.bounds)


def _class(label: int, classes: int) -> int:
    if not 0 <= label < classes:
        raise InputError(f"label: expected a class from 0 to {classes - 1}, got {label}")
    return label


def _center(reference: Any, classes: int, what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if reference is None:
        raise InputError(f"{what}: expected the outputs at the centre as reference, got none")
    return np.asarray(reference, dtype=np.float64).reshape(classes)


def _lists(value: Any, name: str) -> list[list[Any]]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(row, (list, tuple)) for row in value):
        raise InputError(f"{name}: expected a list of rows of numbers, got {value!r}")
    return [list(row) for row in value]


def _difference(classes: int, label: int, target: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    row = np.zeros((1, classes))
    row[0, label], row[0, target] = 1.0, -1.0
    return row
