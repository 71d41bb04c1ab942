"""Builder: grows a graph while the nodes of an ONNX file are read.

An ONNX value keeps its full shape here, traced for one input, and remembers which axis of size 1 is the batch (None
when no axis is). Its shape in the graph is the full shape without that axis. So files with a free batch, a fixed batch
of one, a batch that was moved by a transpose, and no batch at all are read in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor
from radii.models.arrays import as_constant
from radii.models.graph import Graph, Node
from radii.models.operators import Dense, Operator, Reshape, Scale, Select, Softmax

Shape = tuple[int, ...]
MOST_VALUES = 2**28  # numbers of one value for one input: 1 GiB in float32


class Refused(Exception):
    """This node cannot be handled; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that depends on the input: a node of the graph, its ONNX shape, and the batch axis in it.

    `softmax` is set once a softmax was read: it stays pending, as only the end of a network may have one.
    """

    node: int
    shape: Shape
    batch: int | None
    softmax: Softmax | None = None

    @property
    def core(self) -> Shape:
        """The shape without the batch: that of the node."""
        return tuple(n for axis, n in enumerate(self.shape) if axis != self.batch)

    @property
    def rank(self) -> int:
        """The number of axes, the batch included."""
        return len(self.shape)


def refuse_huge(shape: Shape) -> None:
    """Refuse a value that no bound could be computed for; a file of a few bytes can ask for any size."""
    if prod(shape) > MOST_VALUES:
        raise Refused(f"expected values of at most {MOST_VALUES} numbers, got shape {shape}")


@dataclass(frozen=True, slots=True)
class Step:
    """One of the operators that a scale and shift were folded from; `rounded` says that its constant was computed."""

    scale: NDArray[Any] | None = None
    shift: NDArray[Any] | None = None
    rounded: bool = False


def inverse(array: NDArray[Any], power: float = 1.0) -> NDArray[np.float64]:
    """What 1 / array^power comes out as in floats: beyond all of float32 where the array may be flushed to 0."""
    exact: NDArray[np.float64] = 1.0 / array.astype(np.float64) ** power
    return np.where(np.abs(array) < 2.0**-126, 1e39, exact)


class Builder:
    """The nodes so far, and the moves that every operator needs."""

    def __init__(self, shape: Shape, batch: int | None, name: str, mixed: bool = False) -> None:
        refuse_huge(shape)
        self.input = Value(0, shape, batch)
        self.mixed = mixed  # whether the file computes in more than float32, so that casts round
        self.nodes = [Node(None, (), self.input.core, name)]
        self.name = ""

    def graph(self, last: Value) -> Graph:
        """The graph that ends in a value, flattened, its softmax last."""
        flat = self.reshape(replace(last, softmax=None), (1, int(np.prod(last.shape))))
        if last.softmax is not None:
            flat = self.emit(last.softmax, [flat], flat.shape, flat.batch)
        return Graph(tuple(self.nodes)).upto(flat.node)

    def emit(self, operator: Operator, inputs: Sequence[Value], shape: Shape, batch: int | None) -> Value:
        """A new node whose ONNX shape is known."""
        refuse_huge(shape)
        value = Value(len(self.nodes), shape, batch)
        self.nodes.append(Node(operator, tuple(v.node for v in inputs), value.core, self.name))
        return value

    def rebatch(self, x: Value, batch: int | None) -> Value:
        """The same value with another axis of size 1 (or none) read as the batch."""
        if x.batch == batch:
            return x
        if batch is not None and (batch >= x.rank or x.shape[batch] != 1):
            raise Refused(f"expected a batch of one in axis {batch}, got shape {x.shape}")
        moved = replace(x, batch=batch)
        if moved.core == x.core:
            return moved
        return replace(self.emit(Reshape(moved.core), [x], x.shape, batch), softmax=x.softmax)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """The same numbers in another ONNX shape; a leading 1 becomes the batch."""
        if int(np.prod(shape)) != int(np.prod(x.shape)):
            raise Refused(f"expected a shape of {int(np.prod(x.shape))} values, got {shape}")
        moved = replace(x, shape=shape, batch=0 if len(shape) > 1 and shape[0] == 1 else None)
        if moved.core == x.core:
            return moved
        return replace(self.emit(Reshape(moved.core), [x], shape, moved.batch), softmax=x.softmax)

    def axis(self, x: Value, axis: int) -> tuple[Value, int]:
        """The value and the place of an ONNX axis in its graph shape; the batch, if asked for, becomes one of them."""
        axis = axis + x.rank if axis < 0 else axis
        if not 0 <= axis < x.rank:
            raise Refused(f"expected an axis of shape {x.shape}, got {axis}")
        if axis == x.batch:
            x = self.rebatch(x, None)
        return x, axis - (x.batch is not None and axis > x.batch)

    def select(self, x: Value, axis: int, indices: NDArray[np.int64]) -> Value:
        """Entries of one ONNX axis; all of them in order is the value itself."""
        if len(indices) == 0:
            raise Refused("expected at least one entry, got an empty slice")
        axis = axis + x.rank if axis < 0 else axis
        if np.array_equal(indices, np.arange(x.shape[axis])):
            return x
        x, place = self.axis(x, axis)
        shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
        return self.emit(Select(as_constant(indices.astype(np.int64)), place), [x], shape, x.batch)

    def expand(self, x: Value, shape: Shape) -> Value:
        """The value repeated along its axes of size 1 to an ONNX shape of the same or a higher rank."""
        refuse_huge(shape)
        if len(shape) > x.rank:
            x = self.reshape(x, (1,) * (len(shape) - x.rank) + x.shape)
        for axis, (have, want) in enumerate(zip(x.shape, shape)):
            if have != want:
                x = self.select(x, axis, np.zeros(want, np.int64))
        return x

    def contract(self, x: Value, axis: int, weight: NDArray[Any], bias: NDArray[Any] | None = None) -> Value:
        """The matrix weight (out, in) applied along one ONNX axis."""
        axis = axis + x.rank if axis < 0 else axis
        x, place = self.axis(x, axis)
        if x.shape[axis] != weight.shape[1]:
            raise Refused(f"expected a weight for {x.shape[axis]} values, got one for {weight.shape[1]}")
        operator = Dense(as_constant(weight), None if bias is None else as_constant(bias), place)
        shape = (*x.shape[:axis], weight.shape[0], *x.shape[axis + 1 :])
        return self.emit(operator, [x], shape, x.batch)

    def scale(
        self,
        x: Value,
        scale: NDArray[Any] | None = None,
        shift: NDArray[Any] | None = None,
        *,
        rounded: bool = False,
        steps: Sequence[Step] = (),
    ) -> Value:
        """x · scale + shift with ONNX broadcasting; `steps` say what a runtime computes in its place."""
        given = [c.shape for c in (scale, shift) if c is not None]
        try:
            shape = np.broadcast_shapes(x.shape, *given)
        except ValueError:
            raise Refused(f"expected a constant that fits shape {x.shape}, got {given[0]}") from None
        x = self.expand(x, shape)
        folded = tuple(Scale(_local(s.scale, x), _local(s.shift, x), s.rounded) for s in steps)
        operator = Scale(_local(scale, x), _local(shift, x), rounded, steps=folded)
        return self.emit(operator, [x], x.shape, x.batch)

    def aligned(self, values: Sequence[Value], *, batch: bool = True) -> list[Value]:
        """The values with the same rank and the same batch axis."""
        rank = max(v.rank for v in values)
        same = [v if v.rank == rank else self.reshape(v, (1,) * (rank - v.rank) + v.shape) for v in values]
        if len({v.batch for v in same}) == 1 and batch:
            return same
        first = 0 if batch and all(v.shape[0] == 1 for v in same) else None
        return [self.rebatch(v, first) for v in same]


def _local(constant: NDArray[Any] | None, x: Value) -> Tensor | None:
    """A constant without the batch axis of the value it meets."""
    if constant is None:
        return None
    full = constant.reshape((1,) * (x.rank - constant.ndim) + constant.shape)
    return as_constant(full if x.batch is None else np.squeeze(full, axis=x.batch))
