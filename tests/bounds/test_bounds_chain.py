"""Bounds over arrays: as good as the torch pass, below every point, rounding charged, other networks refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tests.verifiers.nets import Net, convnet, f32, mlp

from radii.bounds.bound import bound_root
from radii.bounds.chain import Bounds, gradient, layers_of, values
from radii.bounds.lowering import lower
from radii.engine.input_split import region_of
from radii.models.classifier import Classifier
from radii.models.from_onnx import read_graph

MANY = 2**20


def layers(network: Classifier, most: int = MANY) -> Any:
    return layers_of(read_graph(network.onnx_bytes), most)


def windows(rng: np.random.Generator) -> Classifier:
    """A convolution with padding and stride, a constant, a permutation, two dense layers."""
    net = Net((2, 5, 5))
    net.add("Sub", f32(rng.normal(size=(2, 1, 1))))
    net.add("Conv", f32(rng.normal(size=(3, 2, 3, 3))), f32(rng.normal(size=3)), pads=[1, 0, 1, 0], strides=[2, 1])
    net.add("Relu")
    net.add("Transpose", perm=[0, 2, 3, 1])
    net.add("Flatten")
    net.add("Gemm", f32(rng.normal(size=(7, 27))), f32(rng.normal(size=7)), transB=1)
    net.add("Relu")
    net.add("Gemm", f32(rng.normal(size=(4, 7))), f32(rng.normal(size=4)), transB=1)
    return net.build(4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [windows, lambda rng: mlp(rng, [6, 9, 8, 7, 3])], ids=["windows", "dense"])
def test_the_same_as_the_torch_pass_and_below_every_point(make: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = make(rng)
    chain = layers(network)
    low = rng.normal(size=network.size)
    high = low + rng.uniform(0.0, 0.4, network.size)
    found = Bounds(chain, low, high).lowest()
    points = low + (high - low) * rng.random((500, network.size))
    there = values(chain, points)[-1]
    np.testing.assert_allclose(there, network(points.astype(np.float32)), rtol=1e-4, atol=1e-4)
    assert (there >= found).all()
    graph = lower(network.graph).to(torch.float64)
    region = region_of(torch.from_numpy(low)[None], torch.from_numpy(high)[None])
    linear = bound_root(graph, region).margins(torch.eye(network.classes, dtype=torch.float64)[None])
    expected = region.lowest(linear.a, linear.shifted())[0].numpy()
    assert (found >= expected - 1e-9).all()  # intervals of the outputs count here too
    assert (found <= there.min(0)).all()


@pytest.mark.parametrize("seed", range(10))
def test_rounding_is_charged(seed: int) -> None:
    """At a single point the exact value is known, and sums that cancel lose all their digits."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4)
    first, last = 1e15 * rng.normal(size=(6, 4)), rng.normal(size=(2, 6))
    last[:, 3:] = -last[:, :3]
    first[3:] = first[:3] + rng.normal(size=(3, 4))
    chain: Any = [(first, np.zeros(6)), None, (last, np.zeros(2))]
    found = Bounds(chain, x, x).lowest()
    hidden = [max(Fraction(0), sum(Fraction(w) * Fraction(v) for w, v in zip(row, x))) for row in first]
    exact = [sum(Fraction(w) * v for w, v in zip(row, hidden)) for row in last]
    assert all(Fraction(low) <= value for low, value in zip(found, exact))
    assert (found > -1e4).all()  # and not by a wide margin: the terms are of size 1e15


def test_ends_that_overflow_prove_nothing() -> None:
    chain: Any = [(np.full((3, 2), 1e200), np.zeros(3)), None, (np.full((2, 3), 1e200), np.zeros(2))]
    assert not (Bounds(chain, np.full(2, 1e5), np.full(2, 1e6)).lowest() > 0).any()


def test_gradients_are_those_of_differences() -> None:
    rng = np.random.default_rng(1)
    chain = layers(mlp(rng, [5, 8, 6, 3]))
    x, rows, step = rng.normal(size=(20, 5)), rng.normal(size=(20, 3)), 1e-7
    slope = gradient(chain, values(chain, x), rows)
    for axis in range(5):
        moved = x + step * np.eye(5)[axis]
        change = ((values(chain, moved)[-1] - values(chain, x)[-1]) * rows).sum(1) / step
        np.testing.assert_allclose(slope[:, axis], change, atol=1e-5)


def test_other_networks_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    assert layers(convnet(rng)) is None
    assert layers(mlp(rng, [5, 8, 3]), most=63) is None
    assert layers(mlp(rng, [5, 8, 3]), most=64) is not None
