"""Convolutions and pooling: the operators that look at windows of their input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any

from radii._torch import Tensor, torch
from radii._torch import functional as F
from radii.models.operators import Affine, Operator, Shape, Weighted, padded


@dataclass(frozen=True, eq=False)
class _Convolution(Weighted, ABC):
    """What a convolution and its transpose share: the bias is added by the convolution itself."""

    @abstractmethod
    def _run(self, value: Tensor, bias: Tensor | None) -> Tensor:
        """The windows' sums, with a bias or without."""

    def linear(self, *x: Tensor) -> Tensor:
        return self._run(x[0], None)

    def __call__(self, *x: Tensor) -> Tensor:
        return self._run(x[0], self.bias)


@dataclass(frozen=True, eq=False)
class Conv(_Convolution):
    """A convolution of 1, 2 or 3 spatial dimensions; `pads` are (begin…, end…) as in ONNX."""

    stride: Shape = (1, 1)
    pads: Shape = (0, 0, 0, 0)
    dilation: Shape = (1, 1)
    groups: int = 1

    def _run(self, value: Tensor, bias: Tensor | None) -> Tensor:
        given, padding = _pad_for(value, self.pads)
        run = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[self.weight.dim() - 2]
        return run(given, self.weight, bias, self.stride, padding, self.dilation, self.groups)

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        spatial = self.weight.dim() - 2
        run = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[spatial]
        full = run(y, self.weight, None, self.stride, 0, 0, self.groups, self.dilation)
        begin, size = self.pads[:spatial], shapes[0][1:]
        missing = [max(0, b + s - n) for b, s, n in zip(begin, size, full.shape[2:])]
        full = F.pad(full, [v for m in reversed(missing) for v in (0, m)])
        for axis, (b, s) in enumerate(zip(begin, size)):
            full = full.narrow(axis + 2, b, s)
        return (full,)

    @property
    def terms(self) -> int:
        kernel = prod(self.weight.shape[2:])
        return max(self.weight.shape[1], self.weight.shape[0] // self.groups) * kernel + 1


def _pad_for(value: Tensor, pads: Shape) -> tuple[Tensor, Any]:
    """The value padded by hand where begin and end differ, and the symmetric padding left for the convolution."""
    spatial = len(pads) // 2
    begin, end = pads[:spatial], pads[spatial:]
    return (value, tuple(begin)) if begin == end else (padded(value, pads), 0)


def _inside(pooled: Tensor, value: Tensor, stride: Shape, begin: Shape) -> Tensor:
    """The windows that start before the end padding: rounding up may have added one that does not."""
    for axis, (s, b) in enumerate(zip(stride, begin), start=2):
        pooled = pooled.narrow(axis, 0, min(pooled.shape[axis], -(-(value.shape[axis] + b) // s)))
    return pooled


@dataclass(frozen=True, eq=False)
class ConvTranspose(_Convolution):
    """A transposed convolution; symmetric `padding`."""

    stride: Shape = (1, 1)
    padding: Shape = (0, 0)
    output_padding: Shape = (0, 0)
    dilation: Shape = (1, 1)
    groups: int = 1

    def _run(self, value: Tensor, bias: Tensor | None) -> Tensor:
        run = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[self.weight.dim() - 2]
        return run(value, self.weight, bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)

    @property
    def terms(self) -> int:
        kernel = prod(self.weight.shape[2:])
        return max(self.weight.shape[0] // self.groups, self.weight.shape[1]) * kernel + 1


@dataclass(frozen=True, eq=False)
class AveragePool(Affine):
    """The mean over windows; `include_pad` counts the padding in the mean."""

    kernel: Shape
    stride: Shape
    pads: Shape
    include_pad: bool = False
    ceil: bool = False

    def linear(self, *x: Tensor) -> Tensor:
        spatial = len(self.kernel)
        run = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[spatial]
        begin, end = self.pads[:spatial], self.pads[spatial:]
        if begin == end and all(2 * b <= k for b, k in zip(begin, self.kernel)):
            return run(x[0], self.kernel, self.stride, begin, self.ceil, self.include_pad)
        total = run(padded(x[0], self.pads), self.kernel, self.stride, 0, self.ceil, True)
        if not self.include_pad:
            ones = padded(torch.ones_like(x[0][:1, :1]), self.pads)
            # A window that lies in the padding alone averages nothing; it is cut off below.
            total = total / run(ones, self.kernel, self.stride, 0, self.ceil, True).clamp(min=1e-30)
        return _inside(total, x[0], self.stride, begin)

    def __call__(self, *x: Tensor) -> Tensor:
        return self.linear(*x)

    @property
    def terms(self) -> int:
        return prod(self.kernel) + 2

    @property
    def divisor(self) -> int:
        return prod(self.kernel)


@dataclass(frozen=True, eq=False)
class MaxPool(Operator):
    """The largest value of each window; padding never wins."""

    kernel: Shape
    stride: Shape
    pads: Shape
    dilation: Shape
    ceil: bool = False

    def __call__(self, *x: Tensor) -> Tensor:
        spatial = len(self.kernel)
        run = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[spatial]
        begin, end = self.pads[:spatial], self.pads[spatial:]
        value: Tensor = x[0]
        if begin == end and all(2 * b <= k for b, k in zip(begin, self.kernel)):
            return run(value, self.kernel, self.stride, begin, self.dilation, self.ceil)
        filled = padded(value, self.pads, -torch.inf)
        return _inside(run(filled, self.kernel, self.stride, 0, self.dilation, self.ceil), value, self.stride, begin)
