"""Radii and reaches of every property on random tiny networks hold the truth; exam_properties.py asks 300 of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import radii
from radii.decide import Budget
from radii.engine.native import Native
from radii.problem import Instance, Lipschitz, Norm, Probability, Standard, StrongClassification
from radii.testing._property_cases import COMBINATIONS, examine, network, stated

SEEDS = (0, 1, 7, 8, 9, 11, 14, 16, 22, 27)  # every kind, norm, domain and number of outputs is among them


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_hold_the_truth_and_close(seed: int) -> None:
    for found in examine(seed, *COMBINATIONS[seed % 6]):
        assert found.true, (found.network, found.question, found.detail)
        assert found.closed or stated(found.question), (found.network, found.question, found.detail)


def test_the_networks_of_the_exam_are_of_all_kinds() -> None:
    names = {network(seed).name.rsplit("-", 1)[0] for seed in SEEDS}
    kinds, inputs, outputs = (set(part) for part in zip(*(name.split("-") for name in names)))
    assert kinds == {"relu", "leaky", "clip", "maxpool", "residual"}
    assert inputs == {"1", "2", "3", "4"}
    assert outputs == {"1", "2", "3"}
    assert {COMBINATIONS[seed % 6] for seed in SEEDS} == set(COMBINATIONS)


@settings(max_examples=5, deadline=None)
@given(slope=st.floats(0.25, 4.0), epsilon=st.floats(0.01, 0.3), norm=st.sampled_from(["linf", "l2", "l1"]))
def test_a_linear_toy_has_closed_forms(slope: float, epsilon: float, norm: str) -> None:
    """f(x) = (s·x₁, 0): in every norm the largest move is s·ε, the slope s, and p₀ the logistic function."""
    module = torch.nn.Linear(2, 2)
    module.weight.data = torch.tensor([[slope, 0.0], [0.0, 0.0]])
    module.bias.data.zero_()
    s = float(module.weight.data[0, 0])
    net = radii.load_classifier(torch.nn.Sequential(module), input_shape=(2,))
    x, size = np.array([0.5, 0.5], dtype=np.float32), Norm.of(norm)
    low = 1.0 / (1.0 + math.exp(-s * (0.5 - epsilon)))
    change = 1.0 / (1.0 + math.exp(-s * 0.5)) - low  # the logistic function is steeper on this side
    for asked, value in (
        (Standard(1.0), s * epsilon),
        (Lipschitz(1.0), s),
        (StrongClassification(0.0), s * (0.5 - epsilon)),
        (StrongClassification(0.5, "probability"), low),
        (Probability(0.5), change),
    ):
        found = Native().reach(net, [Instance(x, 0)], asked, size, epsilon, Budget(nodes=400), tolerance=0.02)[0]
        assert found.lower is not None
        assert found.upper is not None
        loss = 1e-5 * (1.0 + abs(value)) / (epsilon if isinstance(asked, Lipschitz) else 1.0)
        assert found.lower - loss <= value <= found.upper + loss, (asked, found, value)
        assert found.status == "closed", (asked, found)
    radius = Native().measure(net, [Instance(x, 0)], Standard(s * 0.2), size, Budget(nodes=400), tolerance=1e-4)[0]
    assert radius.lower is not None
    assert radius.upper is not None
    assert radius.lower - 1e-6 <= 0.2 <= radius.upper + 1e-6
