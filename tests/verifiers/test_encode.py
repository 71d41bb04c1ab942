"""The encoding computes the network, its bounds hold, and what it cannot say is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.verifiers.nets import Net, convnet, f32, mlp

from radii.errors import UnsupportedOperator
from radii.verifiers._relax import box, crown, diamond, row_bounds
from radii.verifiers.encode import Builder, encode

RNG = np.random.default_rng(7)


def padded_pools():
    net = Net((2, 4, 4))
    net.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    net.add("Transpose", perm=[0, 2, 3, 1])
    net.add("Flatten")
    net.add("Gemm", f32(RNG.normal(size=(3, 8))), f32(RNG.normal(size=3)), transB=1)
    net.add("Relu")
    return net.build(3)


NETWORKS = [mlp(RNG, [3, 7, 6, 4]), mlp(RNG, [2, 3]), convnet(RNG), padded_pools()]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: f"{n.input_shape}")
@pytest.mark.parametrize("tight", [False, True])
def test_encoding_computes_the_network_within_its_bounds(network, tight):
    low, high = np.full(network.size, 0.2), np.full(network.size, 0.7)
    encoding = encode(network.graph, low, high, crown(box(low, high)) if tight else None)
    lows, highs = encoding.bounds
    points = np.concatenate([RNG.uniform(low, high, (100, low.size)), RNG.choice([0.2, 0.7], (100, low.size))])
    logits = network.graph.logits.to(torch.float64)
    outputs = logits(torch.tensor(points).reshape(-1, *network.input_shape)).flatten(1).numpy()
    for x, expected in zip(points, outputs):
        columns = encoding(x)
        assert np.all(columns >= lows)
        assert np.all(columns <= highs)
        np.testing.assert_allclose(columns[encoding.outputs], expected, rtol=1e-11, atol=1e-11)


def test_relaxation_is_tighter_than_intervals_and_still_sound_on_a_diamond():
    network, center, epsilon = NETWORKS[0], np.full(3, 0.5), 0.3
    low, high = center - epsilon, center + epsilon
    plain = encode(network.graph, low, high)
    tight = encode(network.graph, low, high, crown(diamond(center, epsilon, low, high)))
    assert np.sum(tight.bounds[1] - tight.bounds[0]) < 0.8 * np.sum(plain.bounds[1] - plain.bounds[0])
    moves = RNG.dirichlet(np.ones(3), 300) * RNG.choice([-1, 1], (300, 3)) * epsilon
    for x in center + moves:
        assert np.all(tight(x) >= tight.bounds[0] - 1e-15)
        assert np.all(tight(x) <= tight.bounds[1] + 1e-15)


def test_row_bounds_hold_for_differences_of_outputs():
    network = NETWORKS[0]
    low, high = np.full(3, 0.4), np.full(3, 0.6)
    encoding = encode(network.graph, low, high, crown(box(low, high)))
    rows = np.zeros((3, encoding.columns))
    for k in range(3):
        rows[k, encoding.outputs[0]], rows[k, encoding.outputs[k + 1]] = 1.0, -1.0
    bounds = row_bounds(encoding.blocks, rows, box(low, high), low, high)
    values = np.array([rows @ encoding(x) for x in RNG.uniform(low, high, (300, 3))])
    assert np.all(values.min(axis=0) >= bounds)
    assert np.all(values.min(axis=0) - bounds < 2.0)


def test_weights_stay_exact():
    network = NETWORKS[0]
    encoding = encode(network.graph, np.zeros(3), np.ones(3))
    stored = np.concatenate([block.matrix.data for block in encoding.blocks])
    assert np.array_equal(stored, stored.astype(np.float32).astype(np.float64))
    assert all(not block.error.any() for block in encoding.blocks)


def test_inexact_coefficients_carry_an_error():
    encoding = encode(convnet(RNG).graph, np.zeros(25), np.ones(25))
    assert any(block.error.any() for block in encoding.blocks)
    assert max(block.error.max() for block in encoding.blocks) < 1e-13


def test_two_networks_share_inputs_and_join_by_a_maximum():
    a, b = NETWORKS[0], mlp(RNG, [3, 4, 4])
    builder = Builder(np.zeros(3), np.ones(3))
    joined = builder.finish(builder.maximum(builder.add(a.graph), builder.add(b.graph)))
    for x in RNG.uniform(size=(50, 3)):
        expected = np.maximum(a(f32(x)), b(f32(x)))
        np.testing.assert_allclose(joined(f32(x))[joined.outputs], expected, rtol=1e-4, atol=1e-5)


def test_smooth_activations_are_refused_by_name():
    net = Net((2,))
    net.add("Gemm", f32(np.eye(2)), transB=1)
    net.add("Sigmoid")
    net.add("Tanh")
    with pytest.raises(UnsupportedOperator, match=r"Sigmoid.*Tanh"):
        encode(net.build(2).graph, np.zeros(2), np.ones(2))
