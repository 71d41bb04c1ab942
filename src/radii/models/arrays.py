"""Graphs over numpy arrays: how the importer builds them, and their values without torch.

An imported operator holds its constants as arrays until `with_tensors`. So a plan learns shapes, classes and operators
of a network, and whether it was read rightly, without loading torch. Nothing but this check computes with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from radii._cpu import keep_time
from radii._torch import Tensor, torch
from radii.models.convolutions import AveragePool, Conv, ConvTranspose, MaxPool
from radii.models.graph import Graph
from radii.models.operators import (
    Add,
    Clip,
    Concat,
    Dense,
    LeakyRelu,
    Operator,
    Pad,
    Product,
    Relu,
    Reshape,
    Scale,
    Select,
    Sigmoid,
    Softmax,
    Sum,
    Tanh,
    Transpose,
)

Array = NDArray[Any]
Shape = tuple[int, ...]
CHUNK_VALUES = 2**20  # values of the largest node in one chunk: windows hold each of them several times


def as_constant(array: Array) -> Tensor:
    """An operator's constant before `with_tensors`: the array itself, in the place of the tensor that it becomes."""
    return cast(Tensor, np.ascontiguousarray(array))


def with_tensors(graph: Graph) -> Graph:
    """The graph with tensors, each in its own memory, in the place of arrays."""
    nodes = (n if n.operator is None else replace(n, operator=_with_tensors(n.operator)) for n in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def _with_tensors(operator: Operator) -> Operator:
    changed: dict[str, Any] = {}
    for item in fields(operator):
        value = getattr(operator, item.name)
        if isinstance(value, np.ndarray):
            changed[item.name] = torch.tensor(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Operator):
            changed[item.name] = tuple(_with_tensors(step) for step in value)
    return replace(operator, **changed) if changed else operator


def outputs(graph: Graph, x: Array) -> Array:
    """The outputs of a batch, each flattened, in the graph's precision; its constants are arrays."""
    step = max(1, CHUNK_VALUES // max(node.size for node in graph.nodes))
    parts = [_outputs(graph, x[start : start + step].astype(graph.computes)) for start in range(0, len(x), step)]
    return np.concatenate(parts).reshape(len(x), -1)


def _outputs(graph: Graph, x: Array) -> Array:
    results: list[Array] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            keep_time()
            if node.operator is None:
                results.append(x)
                continue
            value = VALUES[type(node.operator)](node.operator, *(results[i] for i in node.inputs))
            if isinstance(node.operator, (MaxPool, AveragePool)):
                value = value[(slice(None), *(slice(n) for n in node.shape))]
            results.append(np.asarray(value, dtype=x.dtype))
    return results[-1]


def _weights(operator: Any, x: Array) -> tuple[Array, Array | None]:
    """Weight and bias in the precision of the values."""
    bias = None if operator.bias is None else np.asarray(operator.bias).astype(x.dtype)
    return np.asarray(operator.weight).astype(x.dtype), bias


def _dense(operator: Any, x: Array) -> Array:
    weight, bias = _weights(operator, x)
    axis = operator.axis + 1 if operator.axis >= 0 else operator.axis
    value = np.moveaxis(x, axis, -1) @ weight.T
    return np.moveaxis(value if bias is None else value + bias, -1, axis)


def _scale(operator: Any, x: Array) -> Array:
    value = x if operator.scale is None else x * np.asarray(operator.scale).astype(x.dtype)
    return value if operator.shift is None else value + np.asarray(operator.shift).astype(x.dtype)


def _pad(operator: Any, x: Array) -> Array:
    return _padded(x, operator.pads, operator.value)


def _padded(x: Array, pads: Shape, fill: float = 0.0) -> Array:
    """The last axes padded by (begin…, end…); a negative number cuts off."""
    half = len(pads) // 2
    rest = x.ndim - half
    widths = [(0, 0)] * rest + list(zip(pads[:half], pads[half:]))
    cut = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths))
    return np.pad(x[cut], [(max(0, a), max(0, b)) for a, b in widths], constant_values=fill)


def _windows(x: Array, kernel: Shape, stride: Shape, dilation: Shape) -> Array:
    """(batch, channels, *places, *kernel) of padded values."""
    spatial = len(kernel)
    size = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation))
    view = sliding_window_view(x, size, axis=tuple(range(2, 2 + spatial)))
    steps = tuple(slice(None, None, s) for s in stride)
    return view[(slice(None), slice(None), *steps, *(slice(None, None, d) for d in dilation))]


def _conv(operator: Any, x: Array) -> Array:
    weight, bias = _weights(operator, x)
    spatial, groups = weight.ndim - 2, operator.groups
    places = _windows(_padded(x, operator.pads), weight.shape[2:], operator.stride, operator.dilation)
    mine, axes = weight.shape[1], list(range(2, 2 + spatial))
    parts = [
        np.tensordot(places[:, g * mine : (g + 1) * mine], part, ([1, *(a + spatial for a in axes)], [1, *axes]))
        for g, part in enumerate(np.split(weight, groups))
    ]
    return _with_bias(np.moveaxis(np.concatenate(parts, axis=-1), -1, 1), bias)


def _conv_transpose(operator: Any, x: Array) -> Array:
    weight, bias = _weights(operator, x)
    kernel, stride = weight.shape[2:], operator.stride
    each = zip(x.shape[2:], kernel, stride, operator.dilation, operator.output_padding)
    size = [(n - 1) * s + (k - 1) * d + 1 + extra for n, k, s, d, extra in each]
    total = np.zeros((len(x), weight.shape[1] * operator.groups, *size), x.dtype)
    for place in product(*(range(k) for k in kernel)):
        part = np.split(np.moveaxis(weight, (0, 1), (-2, -1))[place], operator.groups)
        inputs = np.split(x, operator.groups, axis=1)
        moved = [np.moveaxis(np.tensordot(v, w, ([1], [0])), -1, 1) for v, w in zip(inputs, part)]
        first = [p * d for p, d in zip(place, operator.dilation)]
        at = (slice(f, f + s * (n - 1) + 1, s) for f, s, n in zip(first, stride, x.shape[2:]))
        total[(slice(None), slice(None), *at)] += np.concatenate(moved, axis=1)
    inside = (slice(p, n - p) for p, n in zip(operator.padding, size))
    return _with_bias(total[(slice(None), slice(None), *inside)], bias)


def _with_bias(value: Array, bias: Array | None) -> Array:
    return value if bias is None else value + bias.reshape(-1, *([1] * (value.ndim - 2)))


def _places(operator: Any, x: Array, pads: Shape, dilation: Shape, fill: float = 0.0) -> Array:
    """The windows of a pooling operator over padded values, and perhaps some more at the end, which are cut off."""
    spatial = len(operator.kernel)
    more = [s * operator.ceil for s in operator.stride]  # rounding up may add a window that looks beyond the padding
    wide = (*pads[:spatial], *(end + m for end, m in zip(pads[spatial:], more)))
    return _windows(_padded(x, wide, fill), operator.kernel, operator.stride, dilation)


def _max_pool(operator: Any, x: Array) -> Array:
    places = _places(operator, x, operator.pads, operator.dilation, -np.inf)
    return np.asarray(places.max(axis=tuple(range(-len(operator.kernel), 0))))


def _average_pool(operator: Any, x: Array) -> Array:
    """The padding counts in a mean or not; what rounding up adds beyond it never does."""
    pads, once, axes = operator.pads, (1,) * len(operator.kernel), tuple(range(-len(operator.kernel), 0))
    counted, left = np.ones_like(x[:1, :1]), pads
    if operator.include_pad:
        counted, left = _padded(counted, pads, 1.0), (0,) * len(pads)
    count = _places(operator, counted, left, once).sum(axis=axes)
    return np.asarray(_places(operator, x, pads, once).sum(axis=axes) / count.clip(min=1e-30))


def _sum(operator: Any, x: Array) -> Array:
    axes = tuple(axis + 1 for axis in operator.axes)
    return np.asarray((x.mean if operator.mean else x.sum)(axis=axes, keepdims=operator.keep))


def _softmax(operator: Any, x: Array) -> Array:
    flat = x.reshape(len(x), -1)
    moved = flat - flat.max(axis=1, keepdims=True)
    total = np.exp(moved).sum(axis=1, keepdims=True)
    value = moved - np.log(total) if operator.log else np.exp(moved) / total
    return np.asarray(value).reshape(x.shape)


VALUES: dict[type[Operator], Callable[..., Array]] = {
    Dense: _dense,
    Conv: _conv,
    ConvTranspose: _conv_transpose,
    Scale: _scale,
    AveragePool: _average_pool,
    MaxPool: _max_pool,
    Sum: _sum,
    Pad: _pad,
    Reshape: lambda operator, x: x.reshape(len(x), *operator.shape),
    Transpose: lambda operator, x: x.transpose(0, *(a + 1 for a in operator.order)),
    Select: lambda operator, x: np.take(x, np.asarray(operator.indices), axis=operator.axis + 1),
    Add: lambda operator, x, y: x + y,
    Product: lambda operator, x, y: x * y,
    Concat: lambda operator, *x: np.concatenate(x, axis=operator.axis + 1),
    Relu: lambda operator, x: np.maximum(x, 0),
    LeakyRelu: lambda operator, x: np.where(x > 0, x, x * x.dtype.type(operator.slope)),
    Clip: lambda operator, x: np.clip(x, operator.low, operator.high),
    Sigmoid: lambda operator, x: 1 / (1 + np.exp(-x)),
    Tanh: lambda operator, x: np.tanh(x),
    Softmax: _softmax,
}
