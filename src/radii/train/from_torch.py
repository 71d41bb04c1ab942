"""From a torch module to the layers that training bounds, and what of a module cannot be bounded."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from radii.errors import ModelError
from radii.models.blocks import Branches, Clamp, Residual, Scale
from radii.train import layers
from radii.train.layers import Layer
from radii.train.network import Network

_RISING = (nn.Sigmoid, nn.Tanh, nn.MaxPool2d, nn.LeakyReLU, nn.Softplus)
_NOTHING = (nn.Identity, nn.Dropout)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
_EXACT = (nn.Linear, nn.Conv2d, nn.ReLU, nn.Flatten, nn.AvgPool2d, Clamp, Scale, *_NORMS, *_NOTHING)


def read(module: nn.Module, x: Tensor) -> Network:
    """The module as layers, at these clean inputs: in training mode their statistics are those of the step."""
    found: list[Layer] = []
    value = _walk(module, x, found)
    return Network(tuple(found), value)


def hindrances(module: nn.Module, backward: bool = False) -> tuple[str, ...]:
    """The parts of a module that cannot be bounded, by interval bounds or also backwards; empty when all can."""
    bounded = _EXACT if backward else (*_EXACT, *_RISING)
    return tuple(
        f"{name or 'the module'} ({type(part).__name__})"
        for name, part in _leaves(module)
        if _odd(part) or not isinstance(part, bounded)
    )


def _odd(part: nn.Module) -> bool:
    """Whether a layer of a known kind has settings that its bounds do not know."""
    if isinstance(part, nn.Conv2d):
        return part.padding_mode != "zeros" or isinstance(part.padding, str)
    if isinstance(part, nn.AvgPool2d):
        return bool(part.ceil_mode or not part.count_include_pad or part.divisor_override)
    return isinstance(part, nn.Dropout) and part.p > 0


def refuse(module: nn.Module, method: str, backward: bool = False) -> None:
    """Raises where a method that needs bounds cannot have them; said before training starts."""
    bad = hindrances(module, backward)
    if bad:
        kinds = "Linear, Conv2d, BatchNorm, AvgPool2d, ReLU, Flatten" + (
            "" if backward else ", MaxPool2d, Sigmoid, Tanh"
        )
        raise ModelError(
            f"{method}: expected layers that it can bound ({kinds}), got {', '.join(bad)}; "
            "use another architecture, or a method without bounds such as pgd"
        )


def _leaves(module: nn.Module, name: str = "") -> list[tuple[str, nn.Module]]:
    if isinstance(module, (nn.Sequential, Residual, Branches)):
        parts = module.named_children()
        return [leaf for key, part in parts for leaf in _leaves(part, f"{name}.{key}" if name else key)]
    return [(name, module)]


def _walk(module: nn.Module, x: Tensor, found: list[Layer]) -> Tensor:
    """Appends the module's layers and gives its values at the clean inputs."""
    if isinstance(module, nn.Sequential):
        for part in module:
            x = _walk(part, x, found)
        return x
    if isinstance(module, Residual):
        inner = nn.Sequential(module.first, nn.ReLU(), module.second)
        return _walk(nn.ReLU(), _walk(Branches(inner, nn.Sequential(module.shortcut)), x, found), found)
    if isinstance(module, Branches):
        first, second = list[Layer](), list[Layer]()
        value = _walk(module.first, x, first) + _walk(module.second, x, second)
        found.append(layers.Sum(tuple(first), tuple(second)))
        return value
    if isinstance(module, _NOTHING):
        return x
    layer = _layer(module, x)
    found.append(layer)
    return layer(x)


def _layer(module: nn.Module, x: Tensor) -> Layer:
    shape = tuple(x.shape[1:])
    if isinstance(module, nn.Linear):
        return layers.Dense(module.weight, module.bias)
    if isinstance(module, nn.Conv2d):
        padding: Any = module.padding
        return layers.Conv(
            module.weight, module.bias, _two(module.stride), _two(padding), _two(module.dilation), module.groups, shape
        )
    if isinstance(module, _NORMS):
        return _scale(module, x)
    if isinstance(module, nn.ReLU):
        return layers.Relu()
    if isinstance(module, nn.Flatten):
        return layers.Flatten(shape)
    if isinstance(module, nn.AvgPool2d):
        stride = module.kernel_size if module.stride is None else module.stride
        return layers.AvgPool(_two(module.kernel_size), _two(stride), _two(module.padding), shape)
    if isinstance(module, Scale):
        return layers.Scale(module.factor, module.shift)
    if isinstance(module, Clamp):
        return layers.Clamp(module.low, module.high)
    if isinstance(module, _RISING):
        return layers.Monotone(module)
    return layers.Opaque(module)


def _scale(module: nn.BatchNorm1d | nn.BatchNorm2d, x: Tensor) -> layers.Scale:
    over = [0, *range(2, x.ndim)]
    if module.training or module.running_mean is None or module.running_var is None:
        spread, mean = torch.var_mean(x, over, correction=0)
    else:
        mean, spread = module.running_mean, module.running_var
    factor = (spread + module.eps).rsqrt()
    if module.affine:
        factor = factor * module.weight
    shift = -mean * factor
    if module.affine:
        shift = shift + module.bias
    shape = (-1, *(1 for _ in x.shape[2:]))
    return layers.Scale(factor.reshape(shape), shift.reshape(shape))


def _two(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))
