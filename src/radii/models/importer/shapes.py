"""Operators that move, cut, join or rename values without computing on them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from radii.models.importer.builder import Builder, Refused, Value
from radii.models.importer.call import Call, Handler
from radii.models.importer.linear import transposed
from radii.models.operators import Concat, Pad

Shape = tuple[int, ...]
FLOATS = (1, 11)  # ONNX's numbers for float32 and float64


def flatten(b: Builder, call: Call) -> Value:
    """Two axes: those before `axis` and those from it on."""
    x = call.value()
    axis = int(call.get("axis", 1))
    axis = axis + x.rank if axis < 0 else axis
    return b.reshape(x, (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:]))))


def reshape(b: Builder, call: Call) -> Value:
    """Another shape; 0 copies a size and −1 takes what is left."""
    x, wanted = call.value(), [int(n) for n in call.required(1).ravel()]
    if not call.get("allowzero", 0):
        wanted = [x.shape[i] if n == 0 and i < x.rank else n for i, n in enumerate(wanted)]
    if -1 in wanted:
        rest = -int(np.prod(wanted))
        total = int(np.prod(x.shape))
        if rest <= 0 or total % rest:
            raise Refused(f"expected a shape that {total} values fit, got {wanted}")
        wanted[wanted.index(-1)] = total // rest
    return b.reshape(x, tuple(wanted))


def transpose(b: Builder, call: Call) -> Value:
    """The axes permuted, reversed when no order is given."""
    x = call.value()
    return transposed(b, x, call.ints("perm") or tuple(reversed(range(x.rank))))


def squeeze(b: Builder, call: Call) -> Value:
    """Axes of size 1 dropped."""
    x, listed = call.value(), call.listed("axes", 1)
    axes = {a % x.rank for a in listed} if listed else {a for a, n in enumerate(x.shape) if n == 1}
    if any(x.shape[a] != 1 for a in axes):
        raise Refused(f"expected axes of size 1 in shape {x.shape}, got {sorted(axes)}")
    return b.reshape(x, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def unsqueeze(b: Builder, call: Call) -> Value:
    """Axes of size 1 put in."""
    x, listed = call.value(), call.listed("axes", 1) or ()
    rank = x.rank + len(listed)
    axes, rest = {a % rank for a in listed}, iter(x.shape)
    return b.reshape(x, tuple(1 if a in axes else next(rest) for a in range(rank)))


def slice_(b: Builder, call: Call) -> Value:
    """A range of some axes, backwards for a negative step."""
    x, starts, ends = call.value(), call.listed("starts", 1), call.listed("ends", 2)
    if starts is None or ends is None:
        raise Refused("expected constant starts and ends, got none")
    axes = call.listed("axes", 3) or tuple(range(len(starts)))
    steps = call.listed("steps", 4) or (1,) * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        x = b.select(x, axis, np.arange(x.shape[axis])[slice(start, end, step)])
    return x


def split(b: Builder, call: Call) -> tuple[Value, ...]:
    """Pieces of one axis, equal ones when no sizes are given."""
    x, sizes, count = call.value(), call.listed("split", 1), len(call.outputs)
    axis = int(call.get("axis", 0)) % x.rank
    total = x.shape[axis]
    if sizes is None:
        step = -(-total // count)
        sizes = tuple(min(step, total - i * step) for i in range(count))
    if sum(sizes) != total or len(sizes) != count or min(sizes) < 1:
        raise Refused(f"expected {count} pieces of {total} entries, got {sizes}")
    ends = np.cumsum(sizes)
    return tuple(b.select(x, axis, np.arange(end - size, end)) for size, end in zip(sizes, ends))


def gather(b: Builder, call: Call) -> Value:
    """Entries of one axis by constant indices; a single index drops the axis."""
    x, indices = call.value(), call.required(1)
    axis = int(call.get("axis", 0)) % x.rank
    size = x.shape[axis]
    if np.any((indices < -size) | (indices >= size)):
        raise Refused(f"expected indices below {size}, got {indices.max()}")
    picked = b.select(x, axis, np.where(indices < 0, indices + size, indices).ravel().astype(np.int64))
    return b.reshape(picked, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])) if indices.ndim != 1 else picked


def pad(b: Builder, call: Call) -> Value:
    """Constant padding, or a repetition of entries for the other modes."""
    x, pads, mode = call.value(), call.listed("pads", 1), call.get("mode", "constant")
    if pads is None:
        raise Refused("expected constant pads, got none")
    array = call.constant(2)
    fill = float(call.get("value", 0.0)) if array is None or array.size == 0 else float(array.reshape(-1)[0])
    axes = call.listed("axes", 3) or tuple(range(x.rank))
    widths = [(0, 0)] * x.rank
    for place, axis in enumerate(axes):
        widths[axis % x.rank] = (pads[place], pads[place + len(axes)])
    if mode != "constant":
        for axis, width in enumerate(widths):
            x = b.select(x, axis, _repeated(x.shape[axis], width, mode))
        return x
    if x.batch is not None and widths[x.batch] != (0, 0):
        x = b.rebatch(x, None)
    return padded(b, x, widths, fill)


def padded(b: Builder, x: Value, widths: list[tuple[int, int]], fill: float = 0.0) -> Value:
    """Constant padding (negative cuts off) by ONNX axes."""
    if all(width == (0, 0) for width in widths):
        return x
    core = [width for axis, width in enumerate(widths) if axis != x.batch]
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, widths))
    if min(shape) < 1:
        raise Refused(f"expected something to be left of shape {x.shape}, got pads {widths}")
    operator = Pad((*(before for before, _ in core), *(after for _, after in core)), fill)
    return b.emit(operator, [x], shape, x.batch)


def _repeated(size: int, width: tuple[int, int], mode: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    kinds: dict[str, Literal["reflect", "edge", "wrap"]] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in kinds or min(width) < 0:
        raise Refused(f"expected padding of mode constant, reflect, edge or wrap, got {mode} by {width}")
    return np.asarray(np.pad(np.arange(size), width, mode=kinds[mode]), dtype=np.int64)


def concat(b: Builder, call: Call) -> Value:
    """IntervalNodes and constants one after the other."""
    values = [v for v in call.inputs if isinstance(v, Value)]
    rank = values[0].rank
    axis = int(call.get("axis", 1)) % rank
    moved = b.aligned(values, batch=all(v.batch not in (None, axis) for v in values))
    first, place = b.axis(moved[0], axis)
    shape = list(first.shape)
    shape[axis] = sum(v.shape[axis] for v in moved)
    joined = b.emit(Concat(place), moved, tuple(shape), first.batch) if len(moved) > 1 else first
    return joined if len(values) == len(call.inputs) else _with_constants(b, call, joined, axis)


def _with_constants(b: Builder, call: Call, joined: Value, axis: int) -> Value:
    """Constants among the branches: room made by padding and a reordering, then filled by a shift."""
    parts = [v for v in call.inputs if v is not None]
    room = sum(v.shape[axis] for v in parts if not isinstance(v, Value))
    widths = [(0, 0)] * joined.rank
    widths[axis] = (0, room)
    size = joined.shape[axis]
    order: list[int] = []
    next_value, next_room = 0, size
    for part in parts:
        count = part.shape[axis]
        start = next_value if isinstance(part, Value) else next_room
        order.extend(range(start, start + count))
        next_value += count if isinstance(part, Value) else 0
        next_room += 0 if isinstance(part, Value) else count
    placed = b.select(padded(b, joined, widths), axis, np.asarray(order, np.int64))
    fill = [np.zeros(part.shape, np.float32) if isinstance(part, Value) else part for part in parts]
    return b.scale(placed, shift=np.concatenate(fill, axis=axis))


def same(b: Builder, call: Call) -> Value:
    """The value itself."""
    call.only_first()
    return call.value()


def cast(b: Builder, call: Call) -> Value:
    """The value itself for floating-point types: over the reals nothing, in floats a rounding."""
    if int(call.get("to", 1)) not in FLOATS:
        raise Refused("a cast of a computed value to a type other than float32 or float64")
    x = call.value()
    return x if x.softmax is not None or not b.mixed else b.scale(x)


def dropout(b: Builder, call: Call) -> Value:
    """The value itself, outside training."""
    mode = call.constant(2)
    if mode is not None and bool(np.any(mode)):
        raise Refused("dropout in training mode; export the network in evaluation mode")
    return same(b, call)


def expand(b: Builder, call: Call) -> Value:
    """The value repeated to a constant shape."""
    x = call.value()
    return b.expand(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in call.required(1).ravel())))


TABLE: dict[str, Handler] = {
    "Flatten": flatten,
    "Reshape": reshape,
    "Transpose": transpose,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Slice": slice_,
    "Split": split,
    "Gather": gather,
    "Pad": pad,
    "Concat": concat,
    "Identity": same,
    "Cast": cast,
    "Dropout": dropout,
    "Expand": expand,
}

# What may follow a softmax: it only renames values, so the softmax can be moved behind it.
RENAMING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "Dropout"})
