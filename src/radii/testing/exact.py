"""Exact radii of tiny piecewise-linear networks, found independently of every decider.

Inside a cell, where each activation keeps to one linear piece, a network is affine; the nearest input of a cell that
breaks the property is then a linear program (L∞, L1) or a projection (L2). Cells are split activation by activation and
visited in the order of their distance from the input, so that only cells nearer than the radius are looked at. The
result is exact up to the solvers' tolerance (1e-10 on constraints scaled to unit length): allow about 1e-7, relative.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import Graph
from radii.models.operators import Affine
from radii.problem import Classification, Domain, Norm, OutputSpec
from radii.testing._nearest import Array, Nearest, halfspace_distances
from radii.testing._pieces import Piece, pieces_of

MAX_INPUTS = 64
MAX_UNITS = 200
MAX_SOLVES = 50_000

Form = tuple[Tensor, Tensor]  # a value as an affine function of z: slopes (inputs, *shape), constants (1, *shape)
Option = tuple[Piece, Array, Array, float]  # a piece, its rows and limits, and how far its farthest row alone is
Choice = tuple[int, list[Option]]  # a unit and the pieces it can take


@dataclass(frozen=True, slots=True)
class Breach:
    """The nearest input that breaks a property, and how far it is; x is None when no input does (distance inf)."""

    distance: float
    x: NDArray[np.float64] | None


def exact_radius(
    network: Classifier | Graph,
    x: Any,
    label: int,
    norm: Norm | str = "linf",
    target: int | None = None,
    domain: Domain | tuple[float, float] | str | None = "own",
) -> float:
    """The distance to the nearest input at which another class (or the target) reaches the label's output.

    0 for an input where it does so already, inf when no input of the domain does. The domain is the classifier's own
    ([0, 1] for a bare graph) unless another is given; None is the whole space. For networks of at most 64 inputs and
    200 activations, of which few are undecided near the input.
    """
    graph, space = _parts(network, domain)
    classes = math.prod(graph.output_shape)
    spec = Classification(target).violations(classes, label)
    return exact_breach(graph, x, spec, norm, space).distance


def exact_breach(
    network: Classifier | Graph,
    x: Any,
    spec: OutputSpec,
    norm: Norm | str = "linf",
    domain: Domain | tuple[float, float] | str | None = "own",
) -> Breach:
    """The input nearest to x whose outputs meet some clause of the specification."""
    graph, space = _parts(network, domain)
    center = np.asarray(x, dtype=np.float64).ravel()
    units = sum(node.size for node in graph.nodes if not isinstance(node.operator, Affine | None))
    if center.size != math.prod(graph.input_shape):
        raise InputError(f"exact radius: expected {math.prod(graph.input_shape)} inputs, got {center.size}")
    if center.size > MAX_INPUTS or units > MAX_UNITS:
        raise InputError(
            f"exact radius: expected at most {MAX_INPUTS} inputs and {MAX_UNITS} activations,"
            f" got {center.size} and {units}"
        )
    if not space.contains(center):
        raise InputError(f"exact radius: expected an input in the domain [{space.low:g}, {space.high:g}]")
    with torch.no_grad():
        return _Walk(graph.to(torch.float64), center, spec, Norm.of(norm), space).run()


def _parts(network: Classifier | Graph, domain: Any) -> tuple[Graph, Domain]:
    graph = network if isinstance(network, Graph) else network.graph
    if isinstance(domain, str):
        if domain != "own":
            raise InputError(f"domain: expected 'own', a (low, high) pair or None, got {domain!r}")
        return graph.logits, Domain() if isinstance(network, Graph) else network.domain
    return graph.logits, Domain.of(domain)


@dataclass(slots=True)
class _Cell:
    """Inputs on which the activations decided so far keep to their pieces: {z : rows @ z <= limits} in the box."""

    rows: Array
    limits: Array
    point: Array | None  # the nearest point, None while it is not solved for
    forms: list[Form]
    chosen: dict[int, Piece] = field(default_factory=dict)  # decided units of the activation that comes next


class _Walk:
    """The search over cells; z is the offset from the input."""

    def __init__(self, graph: Graph, center: Array, spec: OutputSpec, norm: Norm, domain: Domain) -> None:
        self.graph, self.center, self.spec, self.norm = graph, center, spec, norm
        self.low, self.high = domain.low - center, domain.high - center
        self.nearest = Nearest(norm, self.low, self.high)
        self.best = math.inf
        self.where: Array | None = None
        self.pieces: dict[int, list[tuple[Piece, ...]]] = {
            i: pieces_of(node.operator, graph.nodes[node.inputs[0]].shape)
            for i, node in enumerate(graph.nodes)
            if not isinstance(node.operator, Affine | None)
        }
        self.heap: list[tuple[float, int, _Cell]] = []
        self.count = itertools.count()

    def run(self) -> Breach:
        """The nearest breach."""
        n = len(self.center)
        eye = torch.eye(n, dtype=torch.float64).reshape(n, *self.graph.input_shape)
        start = torch.as_tensor(self.center).reshape(1, *self.graph.input_shape)
        if self.spec.violated(self.graph(start).numpy().ravel()):
            return Breach(0.0, self.center.copy())
        root = _Cell(np.empty((0, n)), np.empty(0), np.zeros(n), [(eye, start)])
        guess = self._guess()
        if guess is not None:
            self._dive(root, guess)
        self._push(0.0, root)
        while self.heap and self.heap[0][0] < self.best:
            bound, _, cell = heapq.heappop(self.heap)
            if cell.point is None:
                self._locate(cell, bound)
            else:
                self._expand(cell, bound)
            if self.nearest.solved > MAX_SOLVES:
                raise InputError(
                    f"exact radius: expected a network that {MAX_SOLVES} subproblems settle, got a larger one"
                )
        return Breach(self.best, None if self.where is None else self.center + self.where)

    def _push(self, bound: float, cell: _Cell) -> None:
        if bound < self.best:
            heapq.heappush(self.heap, (bound, next(self.count), cell))

    def _locate(self, cell: _Cell, bound: float) -> None:
        """Find the nearest point of a cell, and queue the cell again if that is nearer than the best breach."""
        found = self.nearest(cell.rows, cell.limits, self.best)
        if found is not None:
            cell.point = found[1]
            self._push(max(bound, found[0]), cell)

    def _expand(self, cell: _Cell, bound: float) -> None:
        """Split a cell at the next activation that is undecided nearer than the best breach, or finish it."""
        while (place := self._advance(cell)) is not None:
            choice = self._decide(cell, place)
            if choice is not None:
                self._split(cell, bound, choice)
                return
            cell.forms = [*cell.forms, self._output(cell, place)]
            cell.chosen = {}
        self._finish(cell)

    def _split(self, cell: _Cell, bound: float, choice: Choice) -> None:
        unit, options = choice
        for piece, rows, limits, distance in options:
            inside = cell.point is not None and bool(np.all(rows @ cell.point <= limits))
            child = _Cell(
                np.vstack([cell.rows, rows]),
                np.concatenate([cell.limits, limits]),
                cell.point if inside else None,
                cell.forms,
                {**cell.chosen, unit: piece},
            )
            self._push(bound if inside else max(bound, distance), child)

    def _finish(self, cell: _Cell) -> None:
        """The network is affine on this cell: look for the nearest breach of each clause in it."""
        slopes, constants = cell.forms[-1]
        matrix, offset = _matrix(slopes), constants.reshape(-1).numpy()
        for clause in self.spec.clauses:
            rows = np.vstack([cell.rows, clause.coefficients @ matrix])
            limits = np.concatenate([cell.limits, clause.bounds - clause.coefficients @ offset])
            found = self.nearest(rows, limits, self.best)
            if found is not None and found[0] < self.best:
                self.best, self.where = found

    def _advance(self, cell: _Cell) -> int | None:
        """Apply affine operators up to the next activation; its node, or None at the end of the network."""
        forms = cell.forms
        while len(forms) < len(self.graph.nodes):
            node = self.graph.nodes[len(forms)]
            if not isinstance(node.operator, Affine):
                cell.forms = forms
                return len(forms)
            slopes, constants = zip(*(forms[i] for i in node.inputs))
            forms = [*forms, (node.operator.linear(*slopes), node.operator(*constants))]
        cell.forms = forms
        return None

    def _decide(self, cell: _Cell, place: int) -> Choice | None:
        """Settle the units with one piece within reach; the undecided unit with the farthest other piece, if any."""
        slopes, constants = self._flat(cell, place)
        remaining = [unit for unit in range(len(self.pieces[place])) if unit not in cell.chosen]
        options = self._options(slopes, constants, place, remaining)
        widest, pick = -1.0, None
        for unit in remaining:
            near = [option for option in options[unit] if option[3] < self.best]
            if len(near) <= 1:
                cell.chosen[unit] = near[0][0] if near else min(options[unit], key=lambda option: option[3])[0]
                continue
            spread = max(option[3] for option in near)
            if spread > widest:
                widest, pick = spread, (unit, near)
        return pick

    def _options(self, slopes: Array, constants: Array, place: int, remaining: list[int]) -> dict[int, list[Option]]:
        """For each unit its pieces with their rows and how far the farthest row alone is."""
        all_pieces = [(unit, piece) for unit in remaining for piece in self.pieces[place][unit]]
        wanted = [(plus, minus, bound) for _, piece in all_pieces for plus, minus, bound in piece.rows]
        if not wanted:
            return {
                unit: [(piece, slopes[:0], constants[:0], 0.0) for piece in self.pieces[place][unit]]
                for unit in remaining
            }
        plus, minus = (np.array([row[k] for row in wanted], dtype=np.int64) for k in (0, 1))
        bounds = np.array([row[2] for row in wanted])
        padded = np.vstack([slopes, np.zeros((1, slopes.shape[1]))])  # -1 picks the row of zeros
        offsets = np.append(constants, 0.0)
        rows, limits = padded[plus] - padded[minus], bounds - (offsets[plus] - offsets[minus])
        far = halfspace_distances(rows, limits, self.norm, self.low, self.high)
        result: dict[int, list[Option]] = {unit: [] for unit in remaining}
        at = 0
        for unit, piece in all_pieces:
            part = slice(at, at + len(piece.rows))
            at = part.stop
            distance = float(far[part].max()) if len(piece.rows) else 0.0
            result[unit].append((piece, rows[part], limits[part], distance))
        return result

    def _flat(self, cell: _Cell, place: int) -> tuple[Array, Array]:
        slopes, constants = cell.forms[self.graph.nodes[place].inputs[0]]
        return _matrix(slopes), constants.reshape(-1).numpy()

    def _output(self, cell: _Cell, place: int) -> Form:
        slopes, constants = self._flat(cell, place)
        chosen = [cell.chosen[unit] for unit in range(len(self.pieces[place]))]
        source = np.array([piece.source for piece in chosen])
        slope = np.array([piece.slope for piece in chosen])
        constant = np.array([piece.constant for piece in chosen])
        shape = self.graph.nodes[place].shape
        out = torch.from_numpy((slopes[source] * slope[:, None]).T.copy()).reshape(-1, *shape)
        return out, torch.from_numpy(constants[source] * slope + constant).reshape(1, *shape)

    def _dive(self, root: _Cell, point: Array) -> None:
        """Finish the cell that holds a point: a first upper end for the search."""
        cell = _Cell(root.rows, root.limits, None, root.forms)
        while (place := self._advance(cell)) is not None:
            slopes, constants = self._flat(cell, place)
            units = list(range(len(self.pieces[place])))
            for unit, options in self._options(slopes, constants, place, units).items():
                piece, rows, limits, _ = min(
                    options, key=lambda o: float(np.max(o[1] @ point - o[2])) if len(o[2]) else -math.inf
                )
                cell.chosen[unit] = piece
                cell.rows, cell.limits = np.vstack([cell.rows, rows]), np.concatenate([cell.limits, limits])
            cell.forms = [*cell.forms, self._output(cell, place)]
            cell.chosen = {}
        self._finish(cell)

    def _guess(self) -> Array | None:
        """Some breach found by sampling, pulled towards the input; None when the sample holds none."""
        n = len(self.center)
        rng = np.random.default_rng(0)
        directions = np.vstack([rng.normal(size=(256, n)), np.sign(rng.normal(size=(128, n))), np.eye(n), -np.eye(n)])
        directions /= np.abs(directions).max(axis=1, keepdims=True)
        reach = np.ptp([self.low, self.high]) if np.isfinite(self.low).all() and np.isfinite(self.high).all() else 16.0
        points = (directions[None] * (reach * 0.5 ** np.arange(6))[:, None, None]).reshape(-1, n)
        points = np.clip(points, self.low, self.high)
        points = points[self._broken(points)]
        if not len(points):
            return None
        size = {"linf": np.abs(points).max(1), "l1": np.abs(points).sum(1), "l2": (points**2).sum(1)}[self.norm.name]
        far = points[int(np.argmin(size))]
        inner, outer = 0.0, 1.0
        for _ in range(20):
            middle = (inner + outer) / 2
            inner, outer = (inner, middle) if self._broken(middle * far[None])[0] else (middle, outer)
        return np.asarray(outer * far)

    def _broken(self, points: Array) -> NDArray[np.bool_]:
        x = torch.as_tensor(points + self.center).reshape(-1, *self.graph.input_shape)
        outputs = self.graph(x).reshape(len(points), -1).numpy()
        clauses = [np.all(outputs @ c.coefficients.T <= c.bounds, axis=1) for c in self.spec.clauses]
        return np.asarray(np.any(clauses, axis=0))


def _matrix(slopes: Tensor) -> Array:
    """Slopes of a form as (outputs, inputs)."""
    return np.asarray(slopes.reshape(len(slopes), -1).numpy().T)
