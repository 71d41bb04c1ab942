"""Chain: linear bounds of layers one after the other, over numpy arrays.

The same pass as `bounds/backward.py`, with the same charges for rounding, for networks without branches whose layers
are small enough to be matrices. It needs no torch, which takes longer to load than such a pass to run, so a query that
one pass settles does not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.bounds.rounding import TINY, U64, UP, gamma
from radii.models.arrays import VALUES
from radii.models.convolutions import Conv
from radii.models.graph import Graph, Node
from radii.models.operators import Affine, Dense, Operator, Pad, Relu, Reshape, Scale, Select, Transpose

Array = NDArray[np.float64]
Layer = tuple[Array, Array] | None  # weight (outputs, inputs) and bias of an affine layer; None is a ReLU


def layers_of(graph: Graph, most: int) -> list[Layer] | None:
    """The layers of a graph of arrays; None where it branches, has other operators or more than `most` weights."""
    layers: list[Layer] = []
    for index, node in enumerate(graph.nodes[1:], start=1):
        before = graph.nodes[index - 1]
        if node.inputs != (index - 1,):
            return None
        if isinstance(node.operator, Relu):
            layers.append(None)
        elif not isinstance(node.operator, Reshape):
            most -= before.size * node.size
            layer = _layer(node.operator, before, node) if most >= 0 else None
            if layer is None:
                return None
            layers.append(layer)
    return layers


def _layer(operator: Operator | None, before: Node, node: Node) -> Layer:
    """An operator as a matrix: its linear part at unit vectors, which multiplies by 1 and adds zeros, so exactly."""
    if not isinstance(operator, (Dense, Conv, Scale, Transpose, Select, Pad)) or operator.steps:
        return None
    if isinstance(operator, Scale) and operator.rounded:
        return None
    run = VALUES[type(operator)]
    bias = run(operator, np.zeros((1, *before.shape))).reshape(node.size)
    if isinstance(operator, Dense) and len(before.shape) == 1:
        weight = np.asarray(operator.weight).astype(np.float64)
    else:
        unit = np.eye(before.size).reshape(-1, *before.shape)
        weight = run(_linear(operator), unit).reshape(before.size, node.size).T
    return (weight, bias) if np.isfinite(weight).all() and np.isfinite(bias).all() else None


def _linear(operator: Affine) -> Affine:
    """The operator without its constant."""
    if isinstance(operator, (Dense, Conv)):
        return replace(operator, bias=None)
    if isinstance(operator, Scale):
        return replace(operator, shift=None)
    return replace(operator, value=0.0) if isinstance(operator, Pad) else operator


def values(layers: list[Layer], x: Array) -> list[Array]:
    """The inputs and the values after each layer, for a batch of flat inputs."""
    found = [x]
    for layer in layers:
        found.append(np.maximum(found[-1], 0.0) if layer is None else found[-1] @ layer[0].T + layer[1])
    return found


def gradient(layers: list[Layer], found: list[Array], rows: Array) -> Array:
    """The gradient of rows·outputs, one row per point, at the inputs whose `values` these are."""
    for layer, before in zip(reversed(layers), reversed(found[:-1])):
        rows = rows * (before > 0) if layer is None else rows @ layer[0]
    return rows


@dataclass(frozen=True, eq=False)
class _Lines:
    """Of one ReLU layer: below by slope_low·z, above by slope_high·z + offset (`ReluLines`)."""

    slope_low: Array
    slope_high: Array
    offset: Array

    @staticmethod
    def of(low: Array, high: Array) -> _Lines:
        unstable, width = (low < 0) & (high > 0), np.maximum(high - low, np.finfo(np.float64).tiny)
        steep = np.where(unstable, high / width, (low >= 0).astype(np.float64))
        steep = np.where(low <= high, steep, np.nan)  # an end that is no number says nothing, and proves nothing
        lift = np.maximum(-steep * low, high - steep * high) + 8 * U64 * width
        offset = np.where(unstable, np.maximum(lift, 0.0), 0.0)
        return _Lines(np.where(unstable, (high > -low).astype(np.float64), steep), steep, offset)


@dataclass(eq=False)
class Bounds:
    """Layer by layer: intervals, then backward bounds of the neurons that intervals leave undecided."""

    layers: list[Layer]
    low: Array
    high: Array
    _size: list[Array] = field(default_factory=list)  # of every layer and of the input before it: the largest |value|
    _product: list[Any] = field(default_factory=list)  # of an affine layer: |weight|·|inputs| + |bias|
    _lines: dict[int, _Lines] = field(default_factory=dict)

    def lowest(self) -> Array:
        """A lower bound of every output on the box."""
        with np.errstate(all="ignore"):
            low, high = self.low, self.high
            self._size.append(_largest(low, high))
            affine = 0
            for index, layer in enumerate(self.layers):
                if layer is None:
                    if affine > 1:  # behind one layer intervals say the same
                        low, high = self._tightened(index, low, high)
                        self._size[-1] = np.minimum(self._size[-1], _largest(low, high))
                    self._lines[index] = _Lines.of(low, high)
                    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
                    self._product.append(None)
                else:
                    affine += 1
                    self._product.append((np.abs(layer[0]) @ self._size[-1] + np.abs(layer[1])) * UP)
                    low, high = _through(layer, low, high)
                self._size.append(_largest(low, high))
            return np.maximum(low, self._least(len(self.layers), np.eye(len(low))))

    def _tightened(self, index: int, low: Array, high: Array) -> tuple[Array, Array]:
        which = np.flatnonzero((low < 0) & (high > 0))
        rows = np.zeros((len(which), len(low)))
        rows[np.arange(len(which)), which] = 1.0
        least = self._least(index, np.concatenate([rows, -rows]))
        low, high = low.copy(), high.copy()
        low[which] = np.maximum(low[which], least[: len(which)])
        high[which] = np.minimum(high[which], -least[len(which) :])
        return low, high

    def _least(self, end: int, rows: Array) -> Array:
        """A lower bound of rows·(the value before layer `end`) on the box."""
        constant, error, gross = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
        longest = max(len(size) for size in self._size[: end + 1])
        for index in range(end - 1, -1, -1):
            layer, size = self.layers[index], np.abs(rows)
            charge = 2 * U64 * self._size[index + 1]
            if layer is None:
                lines, above = self._lines[index], np.maximum(rows, 0.0)
                below = rows - above
                gain = below @ lines.offset
                charge = charge + 2 * U64 * self._size[index] + gamma(len(lines.offset)) * lines.offset
                rows = above * lines.slope_low + below * lines.slope_high
            else:
                weight, bias = layer
                gain = rows @ bias
                charge = charge + gamma(max(weight.shape) + 3) * self._product[index]
                charge = charge + gamma(len(bias)) * np.abs(bias)
                rows = rows @ weight
            constant, gross = constant + gain, gross + np.abs(gain)
            error = error + size @ charge
        error = (error + 2 * U64 * (end + 1) * gross) * (1.0 + 2 * gamma(longest + end)) * UP
        least = _on_box(rows, constant - error, self.low, self.high) - TINY
        return np.where(np.isnan(least), -np.inf, least)  # coefficients that overflowed say nothing


def _through(layer: tuple[Array, Array], low: Array, high: Array) -> tuple[Array, Array]:
    """The ends of an affine layer's values from the ends of its inputs."""
    weight, bias = layer
    size = np.abs(weight)
    middle = 0.5 * (low + high)
    spread = np.maximum(high - middle, middle - low) * UP
    charge = gamma(max(weight.shape) + 1) * (size @ (np.abs(middle) + spread) + np.abs(bias)) * UP
    value, reach = weight @ middle + bias, size @ spread + charge + TINY
    return value - reach, value + reach


def _on_box(a: Array, c: Array, low: Array, high: Array) -> Array:
    """A lower bound of a·x + c for low ≤ x ≤ high."""
    middle = np.minimum(np.maximum(0.5 * low + 0.5 * high, low), high)
    down, up = np.nextafter(middle - low, np.inf), np.nextafter(high - middle, np.inf)
    above = np.maximum(a, 0.0)
    reach = ((a - above) @ up - above @ down) * (1.0 + 2 * gamma(a.shape[1]))
    slack = gamma(a.shape[1] + 1) * (np.abs(a) @ np.abs(middle) + np.abs(c)) * UP
    value: Array = a @ middle + c - slack + reach - gamma(1) * (np.abs(c) + np.abs(reach))
    return value


def _largest(low: Array, high: Array) -> Array:
    return np.maximum(np.abs(low), np.abs(high)) * UP
