"""Padding and pooling: what slides over spatial axes."""

from __future__ import annotations

from radii.models.convolutions import AveragePool, MaxPool
from radii.models.importer.builder import Builder, Refused, Value
from radii.models.importer.call import Call, Handler
from radii.models.importer.window_shapes import window_node
from radii.models.operators import Sum

Shape = tuple[int, ...]


def padding(call: Call, size: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> Shape:
    """The pads (begin…, end…) of a window operator, its auto_pad worked out for this input size."""
    mode = call.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return call.ints("pads") or (0,) * (2 * len(size))
    if mode == "VALID":
        return (0,) * (2 * len(size))
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise Refused(f"expected auto_pad NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {mode}")
    small, large = [], []
    for n, k, s, d in zip(size, kernel, stride, dilation):
        total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        small.append(total // 2)
        large.append(total - total // 2)
    return tuple(small + large) if mode == "SAME_UPPER" else tuple(large + small)


def _window(b: Builder, call: Call) -> tuple[Value, Shape, Shape, Shape, Shape]:
    x = b.rebatch(call.value(), 0)
    kernel = call.ints("kernel_shape")
    if kernel is None or len(kernel) not in (1, 2, 3) or x.rank != len(kernel) + 2:
        raise Refused(f"expected a window of 1 to 3 dimensions over shape {x.shape}, got {kernel}")
    stride = call.ints("strides") or (1,) * len(kernel)
    dilation = call.ints("dilations") or (1,) * len(kernel)
    return x, kernel, stride, dilation, padding(call, x.shape[2:], kernel, stride, dilation)


def max_pool(b: Builder, call: Call) -> Value:
    """The largest value of each window."""
    call.only_first()
    x, kernel, stride, dilation, pads = _window(b, call)
    return window_node(b, MaxPool(kernel, stride, pads, dilation, bool(call.get("ceil_mode", 0))), x)


def average_pool(b: Builder, call: Call) -> Value:
    """The mean of each window."""
    x, kernel, stride, dilation, pads = _window(b, call)
    if any(d != 1 for d in dilation):
        raise Refused("average pooling with dilations; use a convolution with constant weights instead")
    include, ceil = bool(call.get("count_include_pad", 0)), bool(call.get("ceil_mode", 0))
    return window_node(b, AveragePool(kernel, stride, pads, include, ceil), x)


def global_average_pool(b: Builder, call: Call) -> Value:
    """The mean over all spatial axes, which stay with size 1."""
    x = b.rebatch(call.value(), 0)
    length = 1
    for n in x.shape[2:]:
        length *= n
    shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
    return b.emit(Sum(tuple(range(1, x.rank - 1)), True, True, length), [x], shape, 0)


def reduce(b: Builder, call: Call) -> Value:
    """The sum or mean over axes; the batch, being one input, is only renamed."""
    x, listed = call.value(), call.listed("axes", 1)
    if not listed:
        if call.get("noop_with_empty_axes", 0):
            return x
        listed = tuple(range(x.rank))
    axes = tuple(sorted({axis % x.rank for axis in listed}))
    keep = bool(call.get("keepdims", 1))
    places = tuple(axis - (x.batch is not None and axis > x.batch) for axis in axes if axis != x.batch)
    full = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    if places:
        length = 1
        for axis in axes:
            length *= x.shape[axis]
        x = b.emit(Sum(places, call.operator == "ReduceMean", True, length), [x], full, x.batch)
    if keep:
        return x
    return b.reshape(x, tuple(n for axis, n in enumerate(full) if axis not in axes))


TABLE: dict[str, Handler] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
}
