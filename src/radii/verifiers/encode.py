"""Encoding: a network as sparse affine rows and ReLUs over columns, shared by the MILP, SMT and Marabou verifiers.

Columns come in blocks. The first are the inputs; every later block is y = z or y = max(z, 0) with z affine in earlier
columns. Every coefficient is the network's own number: where two affine maps follow each other, the value between them
gets columns of its own instead of a rounded product. Where a number cannot be exact (the 1/9 of a mean), `error` says
by how much z may differ. Other activations are rewritten:

    LeakyRelu   s·x + (1 − s)·relu(x)              Clip       low + relu(x − low) − relu(x − high)
    MaxPool     a running maximum: max(a, b) = b + relu(a − b)
"""

from __future__ import annotations

import functools
import operator as operator_module
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from radii._torch import torch
from radii.errors import UnsupportedOperator
from radii.models.convolutions import AveragePool, MaxPool
from radii.models.graph import Graph, Node
from radii.models.operators import Affine, Clip, LeakyRelu, Operator, Pad, Relu, Reshape, Scale, Sum
from radii.verifiers._relax import interval
from radii.verifiers.encoding import Block, Encoding, Matrix, Vector

UNIT = float(np.finfo(np.float64).eps) / 2  # the unit round-off u of float64


Tighten = Callable[[Sequence[Block], Block, Vector, Vector], tuple[Vector, Vector]]


def unsupported(graph: Graph) -> tuple[str, ...]:
    """The operators of the graph that have no piecewise-linear encoding, each once, with the node's name."""
    known = (Affine, Relu, LeakyRelu, Clip, MaxPool)
    return tuple(
        f"{type(node.operator).__name__} ({node.name or f'node {i}'})"
        for i, node in enumerate(graph.logits.nodes)
        if node.operator is not None and not isinstance(node.operator, known)
    )


def encode(graph: Graph, low: Any, high: Any, tighten: Tighten | None = None) -> Encoding:
    """The encoding of the graph's logits over a box of inputs.

    Bounds come from interval arithmetic rounded outwards; `tighten` may give better ones for each block (it gets the
    earlier blocks, the new one with its interval bounds, and the box). Sigmoid, tanh and products raise.
    """
    missing = unsupported(graph)
    if missing:
        raise UnsupportedOperator(
            f"expected a piecewise-linear network, got {', '.join(missing)}; use the native verifier for these", missing
        )
    builder = Builder(np.asarray(low, np.float64).ravel(), np.asarray(high, np.float64).ravel(), tighten)
    return builder.finish(builder.add(graph))


@dataclass(frozen=True, eq=False)
class Form:
    """Values that are affine in the columns; `plain` when each is just one column (or 0)."""

    matrix: Matrix
    constant: Vector
    error: Vector
    plain: bool = False

    @property
    def size(self) -> int:
        return int(self.constant.size)


class Builder:
    """Grows an encoding: `add` a graph (several may share the inputs), `relu`, `maximum`, then `finish`."""

    def __init__(self, low: Vector, high: Vector, tighten: Tighten | None = None) -> None:
        self._low, self._high, self._tighten = low, high, tighten
        self._blocks: list[Block] = []
        self._columns = low.size

    @property
    def inputs(self) -> Form:
        """The inputs as values."""
        return self._pick(np.arange(self._low.size))

    def add(self, graph: Graph) -> Form:
        """The outputs of a graph applied to the inputs."""
        values: list[Form] = []
        nodes = graph.logits.to(torch.float64).nodes
        for node in nodes:
            if node.operator is None:
                values.append(self.inputs)
            else:
                shapes = [nodes[i].shape for i in node.inputs]
                values.append(self._apply(node, node.operator, [values[i] for i in node.inputs], shapes))
        return values[-1]

    def finish(self, outputs: Form) -> Encoding:
        """The encoding whose outputs are these values."""
        plain = self.columns(outputs)
        place = np.asarray(plain.matrix.tocoo().col, dtype=np.int64)
        if place.size != plain.size:  # a zero row has no column: give every output one
            plain = self._block(replace_plain(outputs), relu=False)
            place = np.asarray(plain.matrix.tocoo().col, dtype=np.int64)
        return Encoding(self._low, self._high, tuple(self._blocks), place)

    def columns(self, form: Form) -> Form:
        """The same values as columns of their own, where they are not columns already."""
        return form if form.plain else self._block(form, relu=False)

    def relu(self, form: Form) -> Form:
        """max(value, 0)."""
        return self._block(form, relu=True)

    def combine(self, terms: Sequence[tuple[float, Form]], constant: Any = 0.0) -> Form:
        """Σ factor · value + constant."""
        forms = [self.columns(form) for _, form in terms]
        matrix = _total(factor * self._wide(form) for (factor, _), form in zip(terms, forms))
        size = forms[0].size
        return Form(
            scipy.sparse.csr_array(matrix), np.broadcast_to(np.asarray(constant, float), size).copy(), np.zeros(size)
        )

    def maximum(self, a: Form, b: Form) -> Form:
        """max(a, b), value by value, as b + relu(a − b)."""
        a, b = self.columns(a), self.columns(b)
        return self.combine([(1.0, b), (1.0, self.relu(self.combine([(1.0, a), (-1.0, b)])))])

    def _apply(self, node: Node, operator: Operator, inputs: list[Form], shapes: list[tuple[int, ...]]) -> Form:
        if isinstance(operator, Affine):
            return self._affine(operator, inputs, shapes)
        (x,) = inputs
        if isinstance(operator, Relu):
            return self.relu(x)
        if isinstance(operator, LeakyRelu):
            x = self.columns(x)
            # float32 slopes are what the model file holds; 1 − s is exact enough only with its own error term.
            form = self.combine([(operator.slope, x), (1.0 - operator.slope, self.relu(x))])
            slack = UNIT * self._magnitude(self._wide(x), np.zeros(x.size))
            return Form(form.matrix, form.constant, slack)
        if isinstance(operator, Clip):
            return self._clip(x, operator.low, operator.high)
        if isinstance(operator, MaxPool):
            return self._pool(x, operator, shapes[0])
        raise UnsupportedOperator(f"expected a piecewise-linear operator, got {type(operator).__name__}")

    def _clip(self, x: Form, low: float, high: float) -> Form:
        x = self.columns(x)
        upper = x if not np.isfinite(low) else self.relu(self.combine([(1.0, x)], -low))
        base = low if np.isfinite(low) else 0.0
        if not np.isfinite(high):
            return self.combine([(1.0, upper)], base)
        cut = self.relu(self.combine([(1.0, x)], -high))
        return self.combine([(1.0, upper), (-1.0, cut)], base)

    def _pool(self, x: Form, pool: MaxPool, shape: tuple[int, ...]) -> Form:
        x = self.columns(x)
        windows = _windows(pool, shape)
        best = self._pick_rows(x, windows[:, 0])
        for k in range(1, windows.shape[1]):
            other = self._pick_rows(x, windows[:, k])
            if np.array_equal(windows[:, k], windows[:, 0]):
                continue
            best = self.maximum(best, other)
        return best

    def _affine(self, operator: Affine, inputs: list[Form], shapes: list[tuple[int, ...]]) -> Form:
        if operator.terms > 1 or isinstance(operator, Scale):
            inputs = [self.columns(form) for form in inputs]
        if isinstance(operator, Reshape):
            return inputs[0]
        zeros = [torch.zeros((1, *shape), dtype=torch.float64) for shape in shapes]
        constant = operator(*zeros).numpy().ravel().astype(np.float64)
        parts = [_matrix(operator, i, zeros) for i in range(len(inputs))]
        moved = operator.terms == 1 and not isinstance(operator, Scale)
        if moved:  # values are only copied: whatever they are, they stay exact
            matrix = _total(part @ self._wide(form) for part, form in zip(parts, inputs))
            offset = sum(part @ form.constant for part, form in zip(parts, inputs))
            error = sum(part @ form.error for part, form in zip(parts, inputs))
            fills = constant if isinstance(operator, Pad) else np.zeros_like(constant)
            plain = all(form.plain for form in inputs) and not fills.any()
            return Form(scipy.sparse.csr_array(matrix), offset + fills, np.asarray(error, float), plain)
        matrix = scipy.sparse.csr_array(_total(p @ self._wide(f) for p, f in zip(parts, inputs)))
        return Form(matrix, constant, self._rounding(operator, matrix, constant))

    def _rounding(self, operator: Affine, matrix: Matrix, constant: Vector) -> Vector:
        """How far the stored coefficients may be from the real ones, in the value of a row."""
        mean = isinstance(operator, AveragePool) or (isinstance(operator, Sum) and operator.mean)
        if mean or (isinstance(operator, Scale) and operator.rounded):
            return np.asarray(8 * UNIT * self._magnitude(matrix, constant))
        return np.zeros(constant.size)

    def _magnitude(self, matrix: Matrix, constant: Vector) -> Vector:
        low, high = self._bounds()
        size = np.maximum(np.abs(low), np.abs(high))
        return np.asarray((abs(matrix) @ size + np.abs(constant)) * (1 + 1e-9))

    def _bounds(self) -> tuple[Vector, Vector]:
        pairs = [(self._low, self._high), *(block.values for block in self._blocks)]
        return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])

    def _block(self, form: Form, *, relu: bool) -> Form:
        low, high = self._bounds()
        matrix = self._wide(form)
        lower, upper = interval(matrix, form.constant, form.error, low, high)
        block = Block(self._columns, matrix, form.constant, form.error, relu, lower, upper)
        if self._tighten is not None:
            lower, upper = self._tighten(tuple(self._blocks), block, self._low, self._high)
            block = Block(self._columns, matrix, form.constant, form.error, relu, lower, upper)
        self._blocks.append(block)
        first, self._columns = self._columns, self._columns + form.size
        return self._pick(np.arange(first, first + form.size))

    def _pick(self, columns: NDArray[np.int64]) -> Form:
        size = columns.size
        matrix = scipy.sparse.csr_array((np.ones(size), (np.arange(size), columns)), shape=(size, self._columns))
        return Form(matrix, np.zeros(size), np.zeros(size), plain=True)

    def _pick_rows(self, form: Form, rows: NDArray[np.int64]) -> Form:
        return Form(scipy.sparse.csr_array(form.matrix[rows]), form.constant[rows], form.error[rows], form.plain)

    def _wide(self, form: Form) -> Matrix:
        """The rows over all columns there are by now."""
        return scipy.sparse.csr_array(
            (form.matrix.data, form.matrix.indices, form.matrix.indptr), shape=(form.size, self._columns)
        )


def replace_plain(form: Form) -> Form:
    """The same values, no longer taken for columns."""
    return Form(form.matrix, form.constant, form.error)


def _total(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator_module.add, parts)


def _matrix(operator: Affine, which: int, zeros: list[torch.Tensor]) -> Matrix:
    """The linear map of one input as a sparse matrix (outputs × inputs), read off unit vectors, in chunks."""
    size = zeros[which].numel()
    parts = []
    for first in range(0, size, 512):
        count = min(512, size - first)
        units = torch.zeros((count, size), dtype=torch.float64)
        units[torch.arange(count), torch.arange(first, first + count)] = 1.0
        given = [z.expand(count, *z.shape[1:]) for z in zeros]
        given[which] = units.reshape(count, *zeros[which].shape[1:])
        parts.append(scipy.sparse.csr_array(operator.linear(*given).reshape(count, -1).numpy()))
    return scipy.sparse.csr_array(scipy.sparse.vstack(parts).T)


def _windows(pool: MaxPool, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """For each output of a max pooling, the flat positions it looks at; a short window repeats its first member."""
    spatial = len(pool.kernel)
    place = torch.arange(int(np.prod(shape)), dtype=torch.float64).reshape(1, *shape)
    columns = []
    for offset in np.ndindex(*pool.kernel):
        weight = torch.zeros((1, 1, *pool.kernel), dtype=torch.float64)
        weight[(0, 0, *offset)] = 1.0
        columns.append(_shifted(place, pool, weight, spatial))
    table = np.stack(columns, axis=1)
    first = table.max(axis=1)  # any member that is not padding (padding is −1)
    return np.where(table < 0, first[:, None], table)


def _shifted(place: torch.Tensor, pool: MaxPool, weight: torch.Tensor, spatial: int) -> NDArray[np.int64]:
    begin, end = pool.pads[:spatial], pool.pads[spatial:]
    size = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, d, k in zip(_pooled(place, pool), pool.stride, pool.dilation, pool.kernel)
    ]
    have = place.shape[2:]
    extra = [max(e, want - b - n) for b, e, want, n in zip(begin, end, size, have)]
    widths = [v for b, e in zip(reversed(begin), reversed(extra)) for v in (b, e)]
    padded = torch.nn.functional.pad(place + 1.0, widths)  # 0 marks padding
    channels = padded.shape[1]
    run = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}[spatial]
    kernel = weight.expand(channels, 1, *pool.kernel)
    found = run(padded, kernel, stride=pool.stride, dilation=pool.dilation, groups=channels)
    slices = tuple(slice(0, n) for n in _pooled(place, pool))
    return np.asarray(found[(slice(None), slice(None), *slices)].reshape(-1).numpy().round() - 1, dtype=np.int64)


def _pooled(place: torch.Tensor, pool: MaxPool) -> tuple[int, ...]:
    return tuple(pool(place).shape[2:])
