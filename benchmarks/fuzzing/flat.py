"""Operators on vectors: layers, branches, products, and entries picked, repeated or renamed."""

from __future__ import annotations

import numpy as np

from fuzzing.build import Constant
from fuzzing.recipe import Recipe, activation, arithmetic, dense


def layer(r: Recipe) -> None:
    """A fully connected layer with an activation: what most networks are made of."""
    dense(r)
    activation(r)


def cancel(r: Recipe) -> None:
    """A large constant added and taken away again: nothing over the reals, lost digits in float32."""
    b = r.b
    c = b.rounded(10.0 ** r.rng.uniform(1, 5) * r.weights.scale)
    k = Constant(c)
    up = b.node("Add", [b.at, b.constant(c)])
    b.step(up, lambda v: v + k.of(v))
    b.step(b.node("Sub", [b.at, b.constant(c)]), lambda v: v - k.of(v))


def residual(r: Recipe) -> None:
    """A branch of the same size added to or taken from where it began."""
    b, start, size = r.b, r.b.at, r.b.shape
    before = r.weights.scale
    dense(r, size[0])
    activation(r)
    if r.weights.scale != before:
        dense(r, size[0])
    form = int(r.rng.integers(3))
    names = b.node(("Add", "Sum", "Sub")[form], [b.at, start])
    b.step(names, (lambda v, w: v + w) if form < 2 else (lambda v, w: v - w), inputs=(b.at, start))


def product(r: Recipe) -> None:
    """Two branches multiplied, or a value with itself."""
    b, start = r.b, r.b.at
    if not 1e-8 < r.weights.scale < 1e8:
        return
    if r.coin(0.7):
        dense(r, b.shape[0])
    b.step(b.node("Mul", [b.at, start]), lambda v, w: v * w, inputs=(b.at, start), curved=True)
    r.weights.scale *= r.weights.scale


def joined(r: Recipe) -> None:
    """Two branches, or a branch and constants, one after the other."""
    b, start, size = r.b, r.b.at, r.b.shape[0]
    if r.coin(0.3) and b.single:
        extra = b.rounded(r.rng.normal(size=int(r.rng.integers(1, 3))) * r.weights.scale)
        k = Constant(extra)
        names = b.node("Concat", [b.at, b.constant(extra[None])], axis=1)
        b.step(names, lambda v: np.concatenate([v, np.repeat(k.of(v)[None], len(v), 0)], 1), (size + len(extra),))
        return
    dense(r, int(r.rng.integers(1, 4)))
    activation(r)
    shape = (b.shape[0] + size,)
    b.step(
        b.node("Concat", [b.at, start], axis=-1 if r.b.opset >= 11 else 1),
        lambda v, w: np.concatenate([v, w], 1),
        shape,
        (b.at, start),
    )


def moved(r: Recipe) -> None:
    """Entries picked, turned round or repeated: Slice, Gather, Split and Concat, Pad, Expand."""
    b, size = r.b, r.b.shape[0]
    places, kind = b.places, int(r.rng.integers(4))
    if kind == 0 and b.opset >= 10:
        ends = [b.whole([v]) for v in (size - 1, -size - 1, 1, -1)]
        b.moved(b.node("Slice", [b.at, *ends]), places[::-1])
    elif kind == 1:
        order = r.rng.integers(-size if b.opset >= 11 else 0, size, int(r.rng.integers(1, size + 2)))
        b.moved(b.node("Gather", [b.at, b.whole(order)], axis=1), places[order])
    elif kind == 2 and size > 1:
        cut = int(r.rng.integers(1, size))
        attribute = {"split": [cut, size - cut]} if b.opset < 13 else {}
        sizes = [b.whole([cut, size - cut])] if b.opset >= 13 else []
        first, second = b.node("Split", [b.at, *sizes], outputs=2, axis=1, **attribute)
        b.moved(b.node("Concat", [second, first], axis=1), np.roll(places, -cut))
    else:
        wide = [0, int(r.rng.integers(0, 2)), 0, int(r.rng.integers(0, 3))]
        fill = float(b.rounded(r.pick(0.0, 0.5, -1.0) * r.weights.scale))
        if b.opset < 11:
            names = b.node("Pad", [b.at], pads=wide, value=fill)
        else:
            names = b.node("Pad", [b.at, b.whole(wide), b.constant(np.asarray(fill))])
        weight = np.pad(np.eye(size), ((wide[1], wide[3]), (0, 0)))
        bias = np.pad(np.zeros(size), (wide[1], wide[3]), constant_values=fill)
        b.matrix(names, weight, bias, (len(bias),))


def reduced(r: Recipe) -> None:
    """The sum or the mean, by ReduceSum or ReduceMean, beside the values or taken from each of them."""
    b, start, size = r.b, r.b.at, r.b.shape[0]
    mean = r.coin()
    newer = b.opset >= (18 if mean else 13)
    operator = "ReduceMean" if mean else "ReduceSum"
    names = b.node(operator, [b.at, b.whole([1])], keepdims=1) if newer else b.node(operator, [b.at], axes=[1])
    b.matrix(names, np.ones((1, size)), np.zeros(1), (1,), [size] if mean else None)
    if r.coin():
        b.moved(b.node("Expand", [b.at, b.whole([1, size])]), np.zeros(size, dtype=np.int64))
        b.step(b.node("Sub", [start, b.at]), lambda v, w: v - w, inputs=(start, b.at))
        return
    b.step(b.node("Concat", [start, b.at], axis=1), lambda v, w: np.concatenate([v, w], 1), (size + 1,), (start, b.at))


def renamed(r: Recipe) -> None:
    """Operators that change nothing: Identity, Dropout, Cast to the same type, Unsqueeze and Squeeze."""
    b, kind = r.b, int(r.rng.integers(4))
    if kind == 0:
        b.moved(b.node("Identity", [b.at]), b.places)
    elif kind == 1:
        b.moved(b.node("Dropout", [b.at]), b.places)
    elif kind == 2:
        b.moved(b.node("Cast", [b.at], to=11 if b.double else 1), b.places)
    elif b.opset < 13:
        up = b.node("Unsqueeze", [b.at], axes=[2])
        b.moved(b.node("Squeeze", up, axes=[2]), b.places)
    else:
        up = b.node("Unsqueeze", [b.at, b.whole([2])])
        b.moved(b.node("Squeeze", [*up, b.whole([2])]), b.places)


FLAT = (
    layer, layer, layer, layer, layer, activation, residual, residual, joined, product, arithmetic, arithmetic, cancel,
    moved, moved, reduced, renamed,
)  # fmt: skip
