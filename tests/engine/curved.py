"""Small networks with operators that are not piecewise linear, and radii of two-input networks from a dense grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from radii.models import load_classifier
from radii.models.classifier import Classifier
from radii.problem import Norm
from radii.testing._build import Builder

KINDS = ("tanh", "sigmoid", "gate", "square", "mixed", "broadcast", "clipped", "squashed")


def curved(seed: int, kind: str, inputs: int = 2, width: int = 5) -> Classifier:
    """A random network of three classes over [0, 1]."""
    b = Builder(seed, (inputs,)).dense(width)
    if kind in ("tanh", "sigmoid"):
        name = kind.capitalize()
        b = b.apply(name).dense(width).apply(name).dense(3).balance()
    elif kind == "gate":  # a(x) · sigmoid(b(x))
        left, shape = b.at, b.shape
        b = b.back("x", (inputs,)).dense(width).apply("Sigmoid").apply("Mul", left, shape=shape).dense(3).balance()
    elif kind == "square":
        b = b.apply("Mul", b.at).dense(3).balance()
    elif kind == "mixed":
        b = b.apply("Relu").dense(width).apply("Tanh").dense(width).apply("LeakyRelu", alpha=0.1).dense(3).balance()
    elif kind == "broadcast":  # every value times one of them
        left, shape = b.at, b.shape
        b = b.dense(1).apply("Tanh").apply("Mul", left, shape=shape).dense(3).balance()
    elif kind == "clipped":
        b = b.apply("Tanh").dense(3).balance().clip(-0.25, 0.3)
    else:  # a Sigmoid on the outputs
        b = b.apply("Tanh").dense(3).balance().apply("Sigmoid")
    return load_classifier(b.model(), name=f"{kind}-{seed}")


def conv_tanh(seed: int) -> Classifier:
    """Convolution, tanh, max pooling, a sigmoid and a product on 36 inputs."""
    b = Builder(seed, (1, 6, 6)).conv(2).apply("Tanh").pool("MaxPool").flatten().dense(6)
    left, shape = b.at, b.shape
    return load_classifier(b.apply("Sigmoid").apply("Mul", left, shape=shape).dense(3).balance().model(), name="conv")


def gap(network: Classifier, x: Any, label: int) -> torch.Tensor:
    """The label's output less the best other one, in float64."""
    outputs = network.graph(torch.as_tensor(x, dtype=torch.float64).reshape(-1, *network.input_shape)).flatten(1)
    others = torch.cat([outputs[:, :label], outputs[:, label + 1 :]], 1).amax(1)
    return outputs[:, label] - others


def grid_radius(network: Classifier, x: Any, label: int, norm: Norm, cells: int = 240) -> tuple[float, float]:
    """An interval that holds the radius of a network of two inputs over [0, 1]: a grid, and how steep it is there."""
    line = torch.linspace(0, 1, cells + 1, dtype=torch.float64)
    at = torch.cartesian_prod(line, line).requires_grad_(True)
    margin = gap(network, at, label)
    (slopes,) = torch.autograd.grad(margin.sum(), at)
    reach = 0.5 / cells  # of a cell, from its corner's nearest point, in L∞
    steep = 1.3 * float(slopes.abs().sum(1).max())
    offset = (at.detach() - torch.as_tensor(np.asarray(x, dtype=np.float64))).numpy()
    distance = np.linalg.norm(offset, ord=norm.order, axis=1)
    values = margin.detach().numpy()
    cell = reach * {"linf": 1.0, "l2": 2**0.5, "l1": 2.0}[norm.name]
    maybe, surely = distance[values <= steep * reach], distance[values <= 0]
    low = max(float(maybe.min()) - cell, 0.0) if len(maybe) else np.inf
    return low, float(surely.min()) if len(surely) else np.inf
