"""Small MNIST networks of growing width and depth, trained in a few seconds, for the growth of cost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from radii.models import Classifier, load_classifier

IMAGES, EPOCHS, BATCH = 10_000, 3, 100


def widths(quick: bool) -> list[tuple[int, tuple[int, ...]]]:
    """(width, hidden layers) of networks with two hidden layers."""
    return [(n, (n, n)) for n in ((32, 64) if quick else (32, 64, 128, 256))]


def depths(quick: bool) -> list[tuple[int, tuple[int, ...]]]:
    """(depth, hidden layers) of networks 50 wide."""
    return [(n, (50,) * n) for n in ((1, 2) if quick else (1, 2, 3, 4, 5, 6))]


def trained(data: Any, hidden: tuple[int, ...], activation: str = "ReLU") -> Classifier:
    """A fully connected network after a short training with fixed seeds; the activation by its name in torch.nn."""
    torch.manual_seed(0)
    sizes = (784, *hidden, 10)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), getattr(torch.nn, activation)()]
    net = torch.nn.Sequential(*layers[:-1])
    x = torch.from_numpy(data.x[:IMAGES].reshape(IMAGES, 784).copy())
    y = torch.from_numpy(data.y[:IMAGES].copy())
    adam = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(IMAGES).split(BATCH):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            adam.step()
    name = "x".join(map(str, hidden)) + ("" if activation == "ReLU" else f" {activation.lower()}")
    return load_classifier(net.eval(), input_shape=(784,), name=name)
