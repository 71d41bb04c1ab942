"""Operators on images (channels, rows, columns): convolutions, pooling, padding, batch normalisation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from fuzzing.build import Array, Constant, root
from fuzzing.recipe import Recipe, activation, arithmetic, flatten

Pair = tuple[int, int]


def _window(r: Recipe, size: Pair) -> tuple[Pair, Pair, tuple[int, int, int, int]]:
    """A kernel, strides and pads (top, left, bottom, right) that fit the image."""
    rng = r.rng
    kernel = tuple(int(rng.integers(1, min(n, 2) + 1)) for n in size)
    stride = tuple(int(rng.integers(1, 3)) for _ in size)
    pads = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel))
    return kernel, stride, pads


def _sides(size: Pair, kernel: Pair, stride: Pair, pads: tuple[int, ...]) -> Pair:
    return tuple((n + pads[a] + pads[a + 2] - kernel[a]) // stride[a] + 1 for a, n in enumerate(size))


def _taps(size: Pair, kernel: Pair, stride: Pair, pads: tuple[int, ...]) -> list[tuple[Pair, Pair, Pair]]:
    """Every (output place, kernel place, input place) of a sliding window, the padding left out."""
    found = []
    for out in product(*(range(n) for n in _sides(size, kernel, stride, pads))):
        for tap in product(*(range(k) for k in kernel)):
            place = tuple(o * s + t - p for o, s, t, p in zip(out, stride, tap, pads))
            if all(0 <= v < n for v, n in zip(place, size)):
                found.append((out, tap, place))
    return found


def conv(r: Recipe) -> None:
    """Conv, one group or as many as there are channels."""
    b = r.b
    channels, *size = b.shape
    kernel, stride, pads = _window(r, tuple(size))
    group = channels if channels > 1 and r.coin(0.3) else 1
    outputs = group * int(r.rng.integers(1, 3))
    per = channels // group
    weight, bias = (b.rounded(v) for v in r.weights.layer(outputs, per * math.prod(kernel)))
    taps = weight.reshape(outputs, per, *kernel)
    sides = _sides(tuple(size), kernel, stride, pads)
    full = np.zeros((outputs, *sides, channels, *size))
    for c, k in product(range(outputs), range(per)):
        source = c // (outputs // group) * per + k
        for out, tap, place in _taps(tuple(size), kernel, stride, pads):
            full[(c, *out, source, *place)] = taps[(c, k, *tap)]
    names = b.node(
        "Conv", [b.at, b.constant(taps), b.constant(bias)],
        kernel_shape=list(kernel), strides=list(stride), pads=list(pads), group=group,
    )  # fmt: skip
    shape = (outputs, *sides)
    b.matrix(names, full.reshape(math.prod(shape), -1), np.repeat(bias, math.prod(sides)), shape)


def conv_transpose(r: Recipe) -> None:
    """ConvTranspose without padding."""
    b = r.b
    channels, *size = b.shape
    kernel, stride, _ = _window(r, tuple(size))
    outputs = int(r.rng.integers(1, 3))
    weight, bias = (b.rounded(v) for v in r.weights.layer(outputs, channels * math.prod(kernel)))
    taps = weight.reshape(outputs, channels, *kernel).swapaxes(0, 1)
    sides = tuple(s * (n - 1) + k for s, n, k in zip(stride, size, kernel))
    full = np.zeros((outputs, *sides, channels, *size))
    for c, k in product(range(outputs), range(channels)):
        for place in product(*(range(n) for n in size)):
            for tap in product(*(range(n) for n in kernel)):
                out = tuple(p * s + t for p, s, t in zip(place, stride, tap))
                full[(c, *out, k, *place)] = taps[(k, c, *tap)]
    names = b.node(
        "ConvTranspose", [b.at, b.constant(taps), b.constant(bias)], kernel_shape=list(kernel), strides=list(stride)
    )
    shape = (outputs, *sides)
    b.matrix(names, full.reshape(math.prod(shape), -1), np.repeat(bias, math.prod(sides)), shape)


def pool(r: Recipe) -> None:
    """MaxPool or AveragePool."""
    b = r.b
    channels, *size = b.shape
    kernel, stride, pads = _window(r, tuple(size))
    sides = _sides(tuple(size), kernel, stride, pads)
    shape, places = (channels, *sides), b.places
    windows: dict[tuple[int, ...], list[int]] = {p: [] for p in product(*(range(n) for n in shape))}
    for c in range(channels):
        for out, _, place in _taps(tuple(size), kernel, stride, pads):
            windows[(c, *out)].append(int(places[(c, *place)]))
    if any(not w for w in windows.values()):
        return
    given: dict[str, Any] = {"kernel_shape": list(kernel), "strides": list(stride), "pads": list(pads)}
    if r.coin(0.6):
        b.largest(b.node("MaxPool", [b.at], **given), list(windows.values()), shape)
        return
    include = r.coin()
    weight = np.zeros((len(windows), places.size))
    for row, window in enumerate(windows.values()):
        weight[row, window] = 1.0
    count = [math.prod(kernel) if include else len(w) for w in windows.values()]
    names = b.node("AveragePool", [b.at], **given, count_include_pad=int(include))
    b.matrix(names, weight, np.zeros(len(windows)), shape, count)


def whole_pool(r: Recipe) -> None:
    """GlobalAveragePool."""
    b = r.b
    channels, *size = b.shape
    per = math.prod(size)
    weight = np.kron(np.eye(channels), np.ones((1, per)))
    b.matrix(b.node("GlobalAveragePool", [b.at]), weight, np.zeros(channels), (channels, 1, 1), [per] * channels)


def normalised(r: Recipe) -> None:
    """BatchNormalization: plain, or with a mean and a bias that nearly cancel."""
    b, rng, channels = r.b, r.rng, r.b.shape[0]
    gamma, beta, mean = rng.uniform(0.5, 1.5, channels), rng.normal(size=channels), rng.normal(size=channels)
    variance = rng.uniform(0.5, 1.5, channels) * max(1e-20, min(1e20, r.weights.scale**2))
    if r.coin(0.3):
        mean = mean * 10.0 ** rng.uniform(1, 7)
        beta = beta + gamma * mean / np.sqrt(variance)
        r.raised = True
    epsilon = float(np.float32(1e-5))
    parts = [b.rounded(v) for v in (gamma, beta, mean, variance)]
    names = b.node("BatchNormalization", [b.at, *(b.constant(v) for v in parts)], epsilon=epsilon)
    shape = (-1, *(1 for _ in b.shape[1:]))
    g, s, m = (Constant(v.reshape(shape)) for v in parts[:3])
    exact = np.array([root(Fraction(float(v)) + Fraction(epsilon)) for v in parts[3]], dtype=object).reshape(shape)
    wide = Constant(np.sqrt(parts[3] + epsilon).reshape(shape), exact)
    b.step(names, lambda v: (v - m.of(v)) / wide.of(v) * g.of(v) + s.of(v))
    r.weights.scale = 1.0


def turned(r: Recipe) -> None:
    """Transpose, Slice of rows, or Pad by reflection, repetition or a constant."""
    b = r.b
    _, rows, columns = b.shape
    kind = int(r.rng.integers(3))
    if kind == 0:
        order = [int(v) for v in r.rng.permutation(3)]
        b.moved(b.node("Transpose", [b.at], perm=[0, *(v + 1 for v in order)]), b.places.transpose(order))
    elif kind == 1 and rows * columns > 1:
        axis = 3 if columns > 1 else 2
        if b.opset < 10:
            names = b.node("Slice", [b.at], axes=[axis], starts=[1], ends=[100])
        else:
            names = b.node("Slice", [b.at, *(b.whole([v]) for v in (1, 100, axis, 1))])
        b.moved(names, b.places[:, :, 1:] if axis == 3 else b.places[:, 1:])
    else:
        _padded(r)


def _padded(r: Recipe) -> None:
    b = r.b
    mode = ("edge", "reflect")[int(r.rng.integers(2))]
    wide = int(b.shape[2] > 1)
    pads = [0, 0, 0, wide, 0, 0, 0, 0]
    if b.opset < 11:
        names = b.node("Pad", [b.at], mode=mode, pads=pads)
    else:
        names = b.node("Pad", [b.at, b.whole(pads)], mode=mode)
    found: Array = np.pad(b.places, ((0, 0), (0, 0), (wide, 0)), mode=mode)
    b.moved(names, found)


IMAGE = (
    conv, conv, conv, activation, activation, activation, pool, pool, normalised, conv_transpose, whole_pool, turned,
    arithmetic, flatten,
)  # fmt: skip
