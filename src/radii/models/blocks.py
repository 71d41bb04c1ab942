"""Building blocks of the architectures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def mlp(inputs: int, widths: Sequence[int], classes: int, activation: type[nn.Module] = nn.ReLU) -> list[nn.Module]:
    """Flattening, hidden layers of these widths with an activation each, and a last linear layer."""
    layers: list[nn.Module] = [nn.Flatten()]
    for width in widths:
        layers += [nn.Linear(inputs, width), activation()]
        inputs = width
    return [*layers, nn.Linear(inputs, classes)]


def conv_relu(before: int, after: int, kernel: int, stride: int = 1, padding: int = 0) -> list[nn.Module]:
    """A convolution and a ReLU."""
    return [nn.Conv2d(before, after, kernel, stride, padding), nn.ReLU()]


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1)
        self.second = nn.Conv2d(after, after, 3, 1, 1)
        same = stride == 1 and before == after
        self.shortcut: nn.Module = nn.Identity() if same else nn.Conv2d(before, after, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        inner: Tensor = self.second(torch.relu(self.first(x)))
        return torch.relu(inner + self.shortcut(x))


class Clamp(nn.Module):
    """Values cut to an interval."""

    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        """The cut values."""
        return x.clamp(self.low, self.high)


class Scale(nn.Module):
    """x · factor + shift with constants: preprocessing, which training leaves as it is."""

    factor: Tensor
    shift: Tensor

    def __init__(self, factor: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.register_buffer("factor", factor)
        self.register_buffer("shift", shift)

    def forward(self, x: Tensor) -> Tensor:
        """The scaled values."""
        return x * self.factor + self.shift


class Branches(nn.Module):
    """Two chains of layers from one argument, added."""

    def __init__(self, first: nn.Sequential, second: nn.Sequential) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both."""
        found: Tensor = self.first(x) + self.second(x)
        return found
