"""Matrix products, convolutions and batch normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor
from radii.models.arrays import as_constant
from radii.models.convolutions import Conv, ConvTranspose
from radii.models.importer.builder import Builder, Refused, Step, Value, inverse
from radii.models.importer.call import Call, Handler
from radii.models.importer.window_shapes import window_node
from radii.models.importer.windows import padding
from radii.models.operators import Add, Transpose

Shape = tuple[int, ...]


def _factors(call: Call) -> tuple[Value, NDArray[Any], bool]:
    """The computed factor, the constant one, and whether the constant is on the right."""
    left, right = call.input(0), call.input(1)
    if isinstance(left, Value) and isinstance(right, np.ndarray):
        return left, right, True
    if isinstance(left, np.ndarray) and isinstance(right, Value):
        return right, left, False
    raise Refused("a product of two computed values; only products with constants are affine")


def matmul(b: Builder, call: Call) -> Value:
    """x @ W contracts the last axis, W @ x the last but one."""
    x, constant, on_right = _factors(call)
    matrix = _matrix(constant)
    if constant.ndim > max(2, x.rank) and x.rank > 1:
        x = b.expand(x, (1,) * (constant.ndim - x.rank) + x.shape)
    axis = -1 if on_right or x.rank == 1 else -2
    if constant.ndim > 1:
        return b.contract(x, axis, matrix.T if on_right else matrix)
    result = b.contract(x, axis, matrix.reshape(1, -1))  # a vector contracts an axis away
    shape = list(result.shape)
    del shape[axis]
    return b.reshape(result, tuple(shape))


def _matrix(constant: NDArray[Any]) -> NDArray[Any]:
    if constant.ndim > 2:
        if any(n != 1 for n in constant.shape[:-2]):
            raise Refused(f"a stack of matrices of shape {constant.shape}; only a single matrix is supported")
        return constant.reshape(constant.shape[-2:])
    return constant


def gemm(b: Builder, call: Call) -> Value:
    """alpha · A' B' + beta · C, with A or B constant; alpha comes after the product, which may overflow before it."""
    x, matrix, on_right = _factors(call)
    c, alpha, beta = call.input(2), call.get("alpha", 1.0), call.get("beta", 1.0)
    if call.get("transA" if on_right else "transB", 0):
        x = transposed(b, x, (1, 0))
    matrix = matrix.T if call.get("transB" if on_right else "transA", 0) else matrix
    weight = matrix.T if on_right else matrix
    bias = _times(c, beta) if isinstance(c, np.ndarray) else None
    axis = 1 if on_right else 0
    vector = _vector(bias, axis, weight.shape[0]) if alpha == 1.0 else None
    result = b.contract(x, axis, weight, vector)
    if alpha != 1.0:
        result = b.scale(result, np.asarray(alpha))
    if bias is not None and vector is None:
        result = b.scale(result, shift=bias)
    if isinstance(c, Value):
        scaled = c if beta == 1.0 else b.scale(c, np.asarray(beta))
        both = b.aligned([result, b.expand(scaled, result.shape)])
        result = b.emit(Add(), both, result.shape, both[0].batch)
    return result


def _times(array: NDArray[Any], factor: float) -> NDArray[Any]:
    """The array scaled; the product of two float32 numbers is exact in float64."""
    return array if factor == 1.0 else array.astype(np.float64) * factor


def _vector(bias: NDArray[Any] | None, axis: int, size: int) -> NDArray[Any] | None:
    """A bias that only varies along the contracted axis of a matrix, as a vector; None for any other."""
    if bias is None:
        return None
    full = bias.reshape((1,) * (2 - bias.ndim) + bias.shape)
    if full.shape[1 - axis] != 1:
        return None
    return np.broadcast_to(full.reshape(-1), (size,)).copy() if full.shape[axis] in (1, size) else None


def transposed(b: Builder, x: Value, order: Shape) -> Value:
    """The axes permuted; the batch is followed to where it goes."""
    shape = tuple(x.shape[axis] for axis in order)
    batch = None if x.batch is None else order.index(x.batch)
    core = tuple(axis - (x.batch is not None and axis > x.batch) for axis in order if axis != x.batch)
    if core == tuple(range(len(core))):
        return Value(x.node, shape, batch, x.softmax)
    moved = b.emit(Transpose(core), [x], shape, batch)
    return Value(moved.node, shape, batch, x.softmax)


def _windows(b: Builder, call: Call) -> tuple[Value, NDArray[Any], Tensor | None, Shape, Shape]:
    """What a convolution and its transpose share: input, weight, bias, stride and dilation."""
    x, weight, bias = b.rebatch(call.value(), 0), call.required(1), call.constant(2)
    spatial = weight.ndim - 2
    if spatial not in (1, 2, 3) or x.rank != weight.ndim:
        raise Refused(f"expected 1 to 3 spatial dimensions, got weights of shape {weight.shape} for {x.shape}")
    ones = (1,) * spatial
    added = None if bias is None else as_constant(bias)
    return x, weight, added, call.ints("strides") or ones, call.ints("dilations") or ones


def conv(b: Builder, call: Call) -> Value:
    """A convolution with constant weights."""
    x, weight, bias, stride, dilation = _windows(b, call)
    pads = padding(call, x.shape[2:], weight.shape[2:], stride, dilation)
    return window_node(b, Conv(as_constant(weight), bias, stride, pads, dilation, int(call.get("group", 1))), x)


def conv_transpose(b: Builder, call: Call) -> Value:
    """A transposed convolution; padding that differs at both ends is cut off afterwards."""
    x, weight, bias, stride, dilation = _windows(b, call)
    spatial = len(stride)
    extra = call.ints("output_padding") or (0,) * spatial
    full = [
        s * (n - 1) + e + (k - 1) * d + 1
        for s, n, e, k, d in zip(stride, x.shape[2:], extra, weight.shape[2:], dilation)
    ]
    pads = _transpose_pads(call, x.shape[2:], stride, full)
    begin, end = pads[:spatial], pads[spatial:]
    symmetric = begin == end and min(pads) >= 0
    operator = ConvTranspose(
        as_constant(weight),
        bias,
        stride,
        begin if symmetric else (0,) * spatial,
        extra,
        dilation,
        int(call.get("group", 1)),
    )
    result = window_node(b, operator, x)
    if not symmetric:
        if min(pads) < 0:
            raise Refused(f"expected an output no larger than {tuple(full)}, got pads {pads}")
        for axis, (first, last, size) in enumerate(zip(begin, end, full)):
            result = b.select(result, axis + 2, np.arange(first, size - last))
    return result


def _transpose_pads(call: Call, size: Shape, stride: Shape, full: list[int]) -> Shape:
    mode, wanted = call.get("auto_pad", "NOTSET"), call.ints("output_shape")
    if wanted is None and mode in ("NOTSET", "VALID"):
        return (call.ints("pads") or (0,) * (2 * len(size))) if mode == "NOTSET" else (0,) * (2 * len(size))
    shape = wanted[-len(size) :] if wanted else tuple(n * s for n, s in zip(size, stride))
    total = [max(0, f - w) for f, w in zip(full, shape)]
    small = [t // 2 for t in total]
    large = [t - s for t, s in zip(total, small)]
    return tuple(small + large) if mode == "SAME_UPPER" else tuple(large + small)


def batch_normalization(b: Builder, call: Call) -> Value:
    """Running statistics make it a scale and a shift, computed in float64."""
    call.only_first()
    if call.get("training_mode", 0):
        raise Refused("batch normalisation in training mode; export the network in evaluation mode")
    if not call.get("spatial", 1):
        raise Refused("batch normalisation over all values (spatial=0); only per-channel statistics are supported")
    x = call.value()
    shape = (1, -1, *(1 for _ in x.shape[2:]))
    gamma, beta, mean, variance = (call.required(i).astype(np.float64).reshape(shape) for i in range(1, 5))
    total = variance + (epsilon := call.get("epsilon", 1e-5))
    scale = gamma / np.sqrt(total)
    # A variance below 0 cancels with ε, so that the rounding of their sum counts for more.
    spread = inverse(total, 0.5) * (np.abs(variance) + epsilon) / total
    steps = (Step(shift=-mean), Step(spread, rounded=True), Step(gamma), Step(shift=beta))
    return b.scale(x, scale, beta - mean * scale, rounded=True, steps=steps)


TABLE: dict[str, Handler] = {
    "MatMul": matmul,
    "Gemm": gemm,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "BatchNormalization": batch_normalization,
}
