"""The output shapes of window operators, by the formulas of ONNX; what no runtime takes is refused."""

from __future__ import annotations

from typing import Any

from radii.models.convolutions import AveragePool, Conv, ConvTranspose, MaxPool
from radii.models.importer.builder import Builder, Refused, Value

Shape = tuple[int, ...]


def window_node(b: Builder, operator: Conv | ConvTranspose | MaxPool | AveragePool, x: Value) -> Value:
    """A new node of an operator on (batch, channels, …)."""
    x = b.rebatch(x, 0)
    return b.emit(operator, [x], (1, *window_shape(operator, x.core)), 0)


def window_shape(operator: Conv | ConvTranspose | MaxPool | AveragePool, shape: Shape) -> Shape:
    """The shape (channels, …) that the operator makes of values of shape (channels, …)."""
    if isinstance(operator, ConvTranspose):
        return _transposed(operator, shape)
    if isinstance(operator, Conv):
        _check_channels(operator, shape[0], operator.weight.shape[1] * operator.groups, operator.weight.shape[0])
        return operator.weight.shape[0], *_sizes(operator, tuple(operator.weight.shape[2:]), shape[1:])
    return shape[0], *_sizes(operator, operator.kernel, shape[1:])


def _sizes(operator: Conv | MaxPool | AveragePool, kernel: Shape, size: Shape) -> list[int]:
    """How many windows fit, per spatial axis; pooling starts none in the padding at the end."""
    spatial, pools = len(size), not isinstance(operator, Conv)
    dilation = (1,) * spatial if isinstance(operator, AveragePool) else operator.dilation
    up = not isinstance(operator, Conv) and operator.ceil
    _check_numbers(spatial, kernel=kernel, strides=operator.stride, dilations=dilation)
    if len(operator.pads) != 2 * spatial or min(operator.pads) < 0:
        raise Refused(f"expected pads of at least 0 for both ends of {spatial} axes, got {operator.pads}")
    found = []
    for axis, (n, k, s, d) in enumerate(zip(size, kernel, operator.stride, dilation)):
        begin, end = operator.pads[axis], operator.pads[axis + spatial]
        room = n + begin + end - (k - 1) * d - 1
        count = (-(-room // s) if up else room // s) + 1
        found.append(min(count, -(-(n + begin) // s)) if pools else count)
        if found[-1] < 1:
            raise Refused(f"expected a window that fits into {n + begin + end} values, got one of {(k - 1) * d + 1}")
    return found


def _transposed(operator: ConvTranspose, shape: Shape) -> Shape:
    kernel, spatial = tuple(operator.weight.shape[2:]), len(shape) - 1
    _check_channels(operator, shape[0], operator.weight.shape[0], operator.weight.shape[1] * operator.groups)
    _check_numbers(spatial, kernel=kernel, strides=operator.stride, dilations=operator.dilation)
    found = []
    parts = zip(shape[1:], kernel, operator.stride, operator.dilation, operator.padding, operator.output_padding)
    for n, k, s, d, pad, extra in parts:
        if not 0 <= extra < max(s, d):
            raise Refused(f"expected output_padding below the stride or the dilation, got {operator.output_padding}")
        found.append((n - 1) * s - 2 * pad + (k - 1) * d + extra + 1)
    if min(found) < 1:
        raise Refused(f"expected an output of at least one value per axis, got {tuple(found)}")
    return operator.weight.shape[1] * operator.groups, *found


def _check_channels(operator: Conv | ConvTranspose, given: int, wanted: int, out: int) -> None:
    if operator.groups < 1 or operator.weight.shape[0] % operator.groups:
        raise Refused(f"expected groups that divide {operator.weight.shape[0]} channels, got {operator.groups}")
    if given != wanted:
        raise Refused(f"expected {wanted} input channels as the weights have, got {given}")
    if operator.bias is not None and tuple(operator.bias.shape) != (out,):
        raise Refused(f"expected a bias of {out} values, got shape {tuple(operator.bias.shape)}")


def _check_numbers(spatial: int, **numbers: Any) -> None:
    for name, values in numbers.items():
        if len(values) != spatial or min(values) < 1:
            raise Refused(f"expected {name} of at least 1 for each of {spatial} axes, got {tuple(values)}")
