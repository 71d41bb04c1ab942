"""Layers of a torch module as bounds see them: values, interval bounds and backward linear bounds, differentiable.

Everything here is differentiable in the weights, in the module's own floats. Rounding is not charged, as training only
needs to know which way is down: a figure that counts is proven by the engine afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from radii._torch import Tensor, functional, torch

Box = tuple[Tensor, Tensor]  # least and greatest value, (batch, *shape) each
Memo = dict[int, Box]  # the box before each layer that is not linear, by the layer's id


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer; `backward` carries rows (batch·rows, *shape) of a lower bound back, and what they add to it."""

    def __call__(self, x: Tensor) -> Tensor:
        """Its values."""
        raise TypeError(f"{type(self).__name__} has no values")

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        """The box of its values; layers that are not linear remember the box of their arguments."""
        raise TypeError(f"{type(self).__name__} has no interval bounds")

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        """Rows over its arguments that bound rows over its values from below, and the constant (batch·rows,)."""
        raise TypeError(f"{type(self).__name__} has no backward bounds")

    def detached(self) -> Self:
        """The same layer with constants instead of weights: attacks need no gradient of them."""
        return replace(self, **{f.name: _detach(getattr(self, f.name)) for f in fields(self) if f.init})


def _detach(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, tuple) and value and isinstance(value[0], Layer):
        return tuple(layer.detached() for layer in value)
    return value


class _Linear(Layer):
    """Layers y = Lx + c: the centre of a box goes through them, its half width through |L|."""

    def width(self, half: Tensor) -> Tensor:
        """|L| times a half width."""
        raise TypeError(f"{type(self).__name__} has no interval bounds")

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        middle, half = self((low + high) / 2), self.width((high - low) / 2)
        return middle - half, middle + half


@dataclass(frozen=True, eq=False)
class Dense(_Linear):
    """A fully connected layer."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)

    def width(self, half: Tensor) -> Tensor:
        return functional.linear(half, self.weight.abs())

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        constant = rows.new_zeros(len(rows)) if self.bias is None else rows @ self.bias
        return rows @ self.weight, constant


@dataclass(frozen=True, eq=False)
class Conv(_Linear):
    """A two-dimensional convolution; `shape` is that of its argument."""

    weight: Tensor
    bias: Tensor | None
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    shape: tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def width(self, half: Tensor) -> Tensor:
        return functional.conv2d(half, self.weight.abs(), None, self.stride, self.padding, self.dilation, self.groups)

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        constant = rows.new_zeros(len(rows)) if self.bias is None else rows.sum((2, 3)) @ self.bias
        kernel = self.weight.shape[2:]
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(rows.shape[2:], self.stride, self.padding, self.dilation, kernel)
        ]
        rest = [size - least for size, least in zip(self.shape[1:], smallest)]  # what the stride did not reach
        back = functional.conv_transpose2d(
            rows, self.weight, None, self.stride, self.padding, rest, self.groups, self.dilation
        )
        return back, constant


@dataclass(frozen=True, eq=False)
class Scale(_Linear):
    """Batch normalisation with given statistics: a factor and a shift per channel, in the shape of the channels."""

    factor: Tensor
    shift: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.factor + self.shift

    def width(self, half: Tensor) -> Tensor:
        return half * self.factor.abs()

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        return rows * self.factor, (rows * self.shift).flatten(1).sum(1)


@dataclass(frozen=True, eq=False)
class AvgPool(_Linear):
    """Mean pooling over windows; `shape` is that of its argument."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    shape: tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, self.kernel, self.stride, self.padding)

    def width(self, half: Tensor) -> Tensor:
        return self(half)

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        size = self.kernel[0] * self.kernel[1]
        channels = self.shape[0]
        kernel = rows.new_full((channels, 1, *self.kernel), 1.0 / size)
        conv = Conv(kernel, None, self.stride, self.padding, (1, 1), channels, self.shape)
        return conv.backward(rows, memo)


@dataclass(frozen=True, eq=False)
class Flatten(Layer):
    """All values in one row; `shape` is that of its argument."""

    shape: tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        return x.flatten(1)

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        return low.flatten(1), high.flatten(1)

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        return rows.reshape(-1, *self.shape), rows.new_zeros(len(rows))


@dataclass(frozen=True, eq=False)
class Relu(Layer):
    """max(x, 0)."""

    def __call__(self, x: Tensor) -> Tensor:
        return functional.relu(x)

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        memo[id(self)] = (low, high)
        return functional.relu(low), functional.relu(high)

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        return relax(rows, *memo[id(self)])


@dataclass(frozen=True, eq=False)
class Clamp(Layer):
    """Values cut to [low, high]: low + relu(x − low) − relu(x − high)."""

    low: float
    high: float

    def __call__(self, x: Tensor) -> Tensor:
        return x.clamp(self.low, self.high)

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        memo[id(self)] = (low, high)
        return self(low), self(high)

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        low, high = memo[id(self)]
        total = rows.flatten(1).sum(1)
        first, one = relax(rows, low - self.low, high - self.low)
        second, two = relax(-rows, low - self.high, high - self.high)
        shifts = first.flatten(1).sum(1) * self.low + second.flatten(1).sum(1) * self.high
        return first + second, one + two + self.low * total - shifts


@dataclass(frozen=True, eq=False)
class Monotone(Layer):
    """A function that rises in every argument (sigmoid, tanh, max pooling): its box is exact; it has no lines here."""

    function: Any

    def __call__(self, x: Tensor) -> Tensor:
        value: Tensor = self.function(x)
        return value

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        return self(low), self(high)


@dataclass(frozen=True, eq=False)
class Opaque(Layer):
    """Any other module: it can be trained against attacks, and not be bounded."""

    module: Any

    def __call__(self, x: Tensor) -> Tensor:
        value: Tensor = self.module(x)
        return value


@dataclass(frozen=True, eq=False)
class Sum(Layer):
    """Two branches of layers from one argument, added: a residual block before its last ReLU."""

    first: tuple[Layer, ...]
    second: tuple[Layer, ...] = field(default=())

    def __call__(self, x: Tensor) -> Tensor:
        return values(self.first, x) + values(self.second, x)

    def interval(self, low: Tensor, high: Tensor, memo: Memo) -> Box:
        a, b = (intervals(branch, low, high, memo) for branch in (self.first, self.second))
        return a[0] + b[0], a[1] + b[1]

    def backward(self, rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
        a, b = (back(branch, rows, memo) for branch in (self.first, self.second))
        return a[0] + b[0], a[1] + b[1]


def values(layers: Sequence[Layer], x: Tensor) -> Tensor:
    """The values of layers one after the other."""
    for layer in layers:
        x = layer(x)
    return x


def intervals(layers: Sequence[Layer], low: Tensor, high: Tensor, memo: Memo) -> Box:
    """The box of the last layer's values (interval bound propagation)."""
    for layer in layers:
        low, high = layer.interval(low, high, memo)
    return low, high


def back(layers: Sequence[Layer], rows: Tensor, memo: Memo) -> tuple[Tensor, Tensor]:
    """Rows over the first layer's arguments that bound rows over the last layer's values, and the constant."""
    constant = rows.new_zeros(len(rows))
    for layer in reversed(layers):
        rows, gain = layer.backward(rows, memo)
        constant = constant + gain
    return rows, constant


def relax(rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Rows over relu(x) bounded from below by rows over x, for x in a box (CROWN, Zhang et al. 2018).

    A ReLU of unknown sign lies above slope·x, with the slope 0 or 1 that loses less, and below the line through its
    ends. Both slopes are constants of the descent where the ReLU is stable.
    """
    batch = len(low)
    unstable = (low < 0) & (high > 0)
    active = (low >= 0).to(low.dtype)
    width = torch.where(unstable, high - low, torch.ones_like(low))
    steep = torch.where(unstable, high / width, active)
    offset = torch.where(unstable, -steep * low, torch.zeros_like(low))
    gentle = torch.where(unstable, (high > -low).to(low.dtype), active)
    wide = rows.reshape(batch, -1, *low.shape[1:])
    above, below = wide.clamp_min(0.0), wide.clamp_max(0.0)
    through = above * gentle[:, None] + below * steep[:, None]
    gain = (below * offset[:, None]).flatten(2).sum(2)
    return through.reshape(rows.shape), gain.reshape(-1)
