"""Architectures that recipes name: those of the papers, dense networks of any size, CNN7 of any width; batch norm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from radii._check import nearest
from radii._torch import torch
from radii.errors import InputError, ModelError
from radii.models.blocks import conv_relu, mlp
from radii.models.zoo import architecture, architectures
from radii.train.shi import initialise

Shape = tuple[int, ...]
FORMS = ("dense:WIDTHxDEPTH", "dense:WIDTHxDEPTH:tanh", "cnn7:WIDTH")
ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid"}  # names of torch.nn


def build(
    name: str, shape: Shape, classes: int, *, batch_norm: bool = False, initialisation: str = "torch", seed: int = 0
) -> torch.nn.Module:
    """An untrained module for inputs of this shape: mnist_nn, convSmall, …, dense:256x2, cnn7:8.

    `batch_norm` puts a batch normalisation behind every layer with weights but the last; the initialisation "ibp" is
    that of Shi et al. 2021. The seed fixes the weights and leaves torch's own generator as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = _bare(name, shape, classes)
        if batch_norm:
            module = with_batch_norm(module, name)
        if initialisation == "ibp":
            initialise(module)
    return module


def _bare(name: str, shape: Shape, classes: int) -> torch.nn.Module:
    form = re.fullmatch(r"(dense|cnn7):(\d+)(?:x(\d+)(?::(relu|tanh|sigmoid))?)?", name)
    if form is None:
        return _named(name, shape, classes)
    kind, width, depth = form[1], int(form[2]), int(form[3] or 1)
    if not (0 < width <= 2**14 and 0 < depth <= 100):
        raise InputError(f"architecture: expected a width up to {2**14} and a depth up to 100, got {name!r}")
    if kind == "dense":
        activation = getattr(torch.nn, ACTIVATIONS[form[4] or "relu"])
        return torch.nn.Sequential(*mlp(prod(shape), [width] * depth, classes, activation))
    if len(shape) != 3 or form[3] is not None:
        raise InputError(
            f"architecture: expected cnn7:WIDTH for images (channels, height, width), got {name!r} for {shape}"
        )
    return cnn7(shape, classes, width)


def cnn7(shape: Shape, classes: int, width: int) -> torch.nn.Module:
    """Five padded 3x3 convolutions, the third of stride 2, and a dense layer of 8 widths (CTBench's has width 64)."""
    channels, height, side = shape
    plan = ((width, 1), (width, 1), (2 * width, 2), (2 * width, 1), (2 * width, 1))
    layers: list[torch.nn.Module] = []
    for after, stride in plan:
        layers += conv_relu(channels, after, 3, stride, 1)
        channels, height, side = after, -(-height // stride), -(-side // stride)
    return torch.nn.Sequential(*layers, *mlp(channels * height * side, [8 * width], classes))


def with_batch_norm(module: torch.nn.Module, name: str = "the module") -> torch.nn.Module:
    """The same chain of layers with a batch normalisation behind every convolution and dense layer but the last."""
    if not isinstance(module, torch.nn.Sequential) or any(list(part.children()) for part in module):
        raise ModelError(f"batch_norm: expected a chain of layers, got {name}; leave batch_norm out")
    parts = list(module)
    last = max((k for k, part in enumerate(parts) if isinstance(part, (torch.nn.Linear, torch.nn.Conv2d))), default=-1)
    return torch.nn.Sequential(*(new for k, part in enumerate(parts) for new in _normed(part, k == last)))


def _normed(part: torch.nn.Module, last: bool) -> Iterator[torch.nn.Module]:
    yield part
    if isinstance(part, torch.nn.Conv2d) and not last:
        yield torch.nn.BatchNorm2d(part.out_channels)
    elif isinstance(part, torch.nn.Linear) and not last:
        yield torch.nn.BatchNorm1d(part.out_features)


def _named(name: str, shape: Shape, classes: int) -> torch.nn.Module:
    known = [item.name for item in architectures()]
    if name not in known:
        raise InputError(
            f"architecture: expected {', '.join(FORMS)} or a name that 'radii architectures' lists, got {name!r}"
            + nearest(name, known)
        )
    item = architecture(name)
    if item.input_shape != tuple(shape) or item.classes != classes:
        wanted, got = ("x".join(map(str, one)) for one in (item.input_shape, shape))
        raise ModelError(
            f"{name}: expected data of {wanted} in {item.classes} classes, got {got} in {classes}; "
            "choose another architecture, or options of the data such as resize and grayscale"
        )
    return item.build()
