"""Branching rules: one function plugs another one in, radii stay those of the closed form, and misuse is an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from radii.decide import Budget
from radii.engine.branching import largest_loss, widest
from radii.engine.budget import Meter
from radii.engine.native import Native
from radii.engine.nodes import Nodes
from radii.engine.tuning import DEFAULT, Tuning
from radii.problem import LINF, Classification, Status
from radii.problem.property import parse
from radii.testing import exact_radius, random_instance, relu_toy

NODES = Budget(None, nodes=20_000)  # the same steps every time
TREES = replace(DEFAULT, trees=replace(DEFAULT.trees, hull_neurons=0))  # hulls close small networks at their roots


def last_undecided(nodes: Nodes) -> Tensor:
    """The undecided neuron nearest to the outputs: no good rule, but one."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    return undecided.shape[1] - 1 - undecided.flip(1).to(torch.int8).argmax(1)


def radius_of(seed: int, native: Native):
    """The measured and the exact radius of a small network."""
    network = relu_toy(seed, (4, 8, 7, 3))
    instance = random_instance(network, seed, reach=0.4)
    found = native.measure(network, [instance], Classification(), LINF, NODES, tolerance=1e-3, limit=3.0)[0]
    return found, exact_radius(network, instance.x, instance.label, LINF)


@pytest.mark.parametrize("rule", [last_undecided, widest])
def test_a_rule_of_ones_own_is_used_and_radii_stay_valid(rule):
    asked, costs = [], []

    def counted(nodes: Nodes) -> Tensor:
        asked.append(len(nodes))
        return rule(nodes)

    for seed in range(4):
        found, exact = radius_of(seed, Native(effort="fast", tuning=replace(TREES, branching=counted)))
        if exact == 0:
            continue
        assert found.status in (Status.CLOSED, Status.ROBUST)
        assert found.lower <= exact + 1e-9
        assert found.upper is None or found.upper >= exact - 1e-6
        costs.append((found.cost.nodes, radius_of(seed, Native(effort="fast", tuning=TREES))[0].cost.nodes))
    assert sum(asked) > 0
    assert any(own != default for own, default in costs)  # another rule takes other nodes


def test_a_rule_that_splits_decided_neurons_is_an_answer_with_its_name():
    seen = []

    def stubborn(nodes: Nodes) -> Tensor:
        decided = (nodes.low >= 0) | (nodes.high <= 0)
        seen.append(bool(decided.any(1).all()))
        return decided.to(torch.int8).argmax(1) if seen[-1] else largest_loss(nodes)

    for seed in range(8):
        found, exact = radius_of(seed, Native(effort="fast", tuning=replace(TREES, branching=stubborn)))
        assert found.lower is None or found.lower <= exact + 1e-9
        if any(seen):
            assert "branching rule" in found.note
            assert "stubborn" in found.note
            return
    raise AssertionError("no node with a decided neuron was met")


def test_identity_tells_another_tuning_from_the_default():
    assert Native(tuning=Tuning()).identity == Native().identity
    deeper = replace(DEFAULT, settling=replace(DEFAULT.settling, plain_deep=1))
    assert Native(tuning=deeper).identity == "native 1 (attack standard, seed 0, real, settling.plain_deep=1)"
    assert "branching=last_undecided" in Native(tuning=Tuning(branching=last_undecided)).identity


@pytest.mark.parametrize("text", ["standard:0.5", "lipschitz:2", "probability:0.2"])
def test_a_tuning_steers_every_property_and_parts_of_a_budget(text):
    asked = []

    def counted(nodes: Nodes) -> Tensor:
        asked.append(len(nodes))
        return last_undecided(nodes)

    network = relu_toy(1, (4, 16, 12, 3))
    instance = random_instance(network, 1, reach=0.4)
    tuning = replace(TREES, branching=counted)
    Native(effort="fast", tuning=tuning).reach(network, [instance], parse(text), LINF, 0.5, NODES, tolerance=1e-4)
    assert asked
    small = replace(DEFAULT.memory, batch_part=2**60)
    assert Meter(Budget(seconds=1.0), memory=small).part(0.5).room == 0
