"""The papers' architectures as untrained torch modules: `architectures()` lists, `architecture(name)` finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import nn

from radii._check import choice
from radii.models.blocks import Clamp, Residual, conv_relu, mlp

Shape = tuple[int, ...]

JAIR = "Bosman et al., Robustness Distributions in Neural Network Verification, JAIR 2025"
ENSEMBLES = "Gross et al., Robustness Verification for Classifier Ensembles, ATVA 2020"
PROPERTY = "Casadio et al., Neural Network Robustness as a Verification Property, CAV 2022"
MNIST, COLOUR, SIGNS = (1, 28, 28), (3, 32, 32), (3, 64, 64)


@dataclass(frozen=True, slots=True)
class Architecture:
    """One architecture: its shape, where it comes from, and how to build it.

    `published` is the parameter count that the paper prints, in thousands (None where it prints none); `note` says
    where the build had to settle what the paper leaves open.
    """

    name: str
    dataset: str
    input_shape: Shape
    classes: int
    paper: str
    make: Callable[[], nn.Module] = field(repr=False)
    published: int | None = None
    note: str = ""

    def build(self, seed: int | None = None) -> nn.Module:
        """A fresh module with random weights; a seed fixes them and leaves torch's own generator as it was."""
        if seed is None:
            return self.make()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make()

    @property
    def parameters(self) -> int:
        """How many numbers training can change."""
        with torch.device("meta"):
            return sum(p.numel() for p in self.make().parameters())


def conv_small() -> nn.Module:
    """Two convolutions of stride 2, one hidden dense layer."""
    return nn.Sequential(*conv_relu(1, 16, 4, 2), *conv_relu(16, 32, 4, 2), *mlp(800, [100], 10))


def conv_med() -> nn.Module:
    """Two padded convolutions of stride 2, one wide dense layer."""
    return nn.Sequential(*conv_relu(1, 16, 4, 2, 1), *conv_relu(16, 32, 4, 2, 1), *mlp(1568, [1000], 10))


def conv_big() -> nn.Module:
    """Four convolutions, two of them of stride 2, two dense layers of 512."""
    front = [*conv_relu(3, 32, 3, 1, 1), *conv_relu(32, 32, 4, 2, 1)]
    back = [*conv_relu(32, 64, 3, 1, 1), *conv_relu(64, 64, 4, 2, 1)]
    return nn.Sequential(*front, *back, *mlp(4096, [512, 512], 10))


def resnet_4b() -> nn.Module:
    """Four residual blocks of two convolutions each."""
    blocks = [Residual(16, 32, 2), Residual(32, 32, 1), Residual(32, 32, 2), Residual(32, 32, 1)]
    return nn.Sequential(*conv_relu(3, 16, 3, 2, 1), *blocks, *mlp(512, [100], 10))


def deep_game() -> nn.Module:
    """Two pairs of convolutions, each followed by max-pooling, two dense layers of 256."""
    first = [*conv_relu(3, 64, 3, 1, 1), *conv_relu(64, 64, 3, 1, 1), nn.MaxPool2d(2)]
    second = [*conv_relu(64, 128, 3, 1, 1), *conv_relu(128, 128, 3, 1, 1), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, *mlp(8192, [256, 256], 43))


def vnncomp23() -> nn.Module:
    """Three convolutions with max-pooling and batch normalisation, then 1024; without biases, as in the original."""
    layers: list[nn.Module] = []
    for before, after, kernel in ((3, 32, 5), (32, 64, 5), (64, 64, 3)):
        layers += [nn.Conv2d(before, after, kernel, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(after)]
    dense = [nn.Linear(1600, 1024, bias=False), nn.ReLU(), nn.BatchNorm1d(1024), nn.Linear(1024, 43, bias=False)]
    return nn.Sequential(*layers, nn.Flatten(), *dense)


def small_convs(side: int, convs: int, channels: int = 1) -> nn.Module:
    """A binary classifier of tiny images: some 3x3 convolutions of 4 filters, max-pooling, a dense layer of 10."""
    layers: list[nn.Module] = []
    for _ in range(convs):
        layers += conv_relu(channels, 4, 3)
        channels, side = 4, side - 2
    if convs:
        layers, side = [*layers, nn.MaxPool2d(2, ceil_mode=True)], -(-side // 2)
    return nn.Sequential(*layers, *mlp(channels * side * side, [10], 2))


def clamped(inputs: int, hidden: int) -> nn.Module:
    """One hidden layer, outputs clamped to [−100, 100]."""
    return nn.Sequential(*mlp(inputs, [hidden], 10), Clamp(-100.0, 100.0))


def _dense(inputs: int, widths: list[int], classes: int, last: bool = False) -> nn.Module:
    return nn.Sequential(*mlp(inputs, widths, classes), *([nn.ReLU()] if last else []))


def architectures() -> tuple[Architecture, ...]:
    """All of them, in the order of the papers."""
    return (*_mnist(), *_colour(), *_ensembles(), *_clamped())


def architecture(name: str) -> Architecture:
    """The architecture of this name; the message names the nearest one."""
    known = {item.name: item for item in architectures()}
    return known[choice(name, "architecture", known)]


def _mnist() -> list[Architecture]:
    plain = {"net": ([512] * 2, 669), "nn": ([256] * 2, 269)}
    plain |= {f"net_256x{n}": ([256] * n, k) for n, k in ((2, 269), (4, 400), (6, 532))}
    sizes = ((3, 50, 42), (3, 100, 89), (4, 1024, 2913), (6, 100, 119), (6, 200, 319), (9, 100, 150), (9, 200, 440))
    found = [
        Architecture(f"mnist_{name}", "MNIST", MNIST, 10, JAIR, partial(_dense, 784, widths, 10), count)
        for name, (widths, count) in plain.items()
    ]
    last = "the outputs end in a ReLU, as in the published files"
    found += [
        Architecture(
            f"mnist_relu_{d}_{w}", "MNIST", MNIST, 10, JAIR, partial(_dense, 784, [w] * (d - 1), 10, True), count, last
        )
        for d, w, count in sizes
    ]
    scaled = "the published file starts with a further 1x1 convolution that normalises the pixels"
    found.append(Architecture("convSmall", "MNIST", MNIST, 10, JAIR, conv_small, 89, scaled))
    found.append(Architecture("convMedG", "MNIST", MNIST, 10, JAIR, conv_med, 1587))
    return found


def _colour() -> list[Architecture]:
    twice = "the paper prints 8438 thousand parameters, the count of the row above it; the neurons agree"
    return [
        Architecture("cifar_7_1024", "CIFAR-10", COLOUR, 10, JAIR, partial(_dense, 3072, [1024] * 6, 10), 8405),
        Architecture("convBig", "CIFAR-10", COLOUR, 10, JAIR, conv_big, 2466),
        Architecture("resnet_4b", "CIFAR-10", COLOUR, 10, JAIR, resnet_4b, 123),
        Architecture("gtsrb_6_256", "GTSRB", COLOUR, 43, JAIR, partial(_dense, 3072, [256] * 5, 43), 1060),
        Architecture("gtsrb_7_1024", "GTSRB", COLOUR, 43, JAIR, partial(_dense, 3072, [1024] * 6, 43), 8438),
        Architecture("gtsrb_cnn_deep_game", "GTSRB", COLOUR, 43, JAIR, deep_game, None, twice),
        Architecture("gtsrb_cnn_vnncomp23", "GTSRB", SIGNS, 43, JAIR, vnncomp23, 1775),
    ]


def _ensembles() -> list[Architecture]:
    free = "the paper gives the input size and the number of convolutions, not the widths"
    tasks = (("mnist_0_1", 8, 0), ("mnist_0_1_2convs", 8, 2), ("mnist_0_1_3convs", 8, 3), ("mnist_7_8", 6, 0))
    found = [
        Architecture(
            f"ensemble_{name}", "MNIST", (1, side, side), 2, ENSEMBLES, partial(small_convs, side, convs), None, free
        )
        for name, side, convs in (*tasks, ("mnist_0_2", 9, 0))
    ]
    signs = partial(small_convs, 10, 1)
    return [*found, Architecture("ensemble_traffic_signs", "GTSRB", (1, 10, 10), 2, ENSEMBLES, signs, None, free)]


def _clamped() -> list[Architecture]:
    data = (("fashion", "Fashion-MNIST", MNIST, 784), ("gtsrb", "GTSRB", (1, 48, 48), 2304))
    return [
        Architecture(f"{short}_clamp_{n}", name, shape, 10, PROPERTY, partial(clamped, inputs, n))
        for short, name, shape, inputs in data
        for n in (100, 30)
    ]
