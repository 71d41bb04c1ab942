"""Budgets in seconds: the attack keeps to its part, bounds always get a pass, and threads and wall time are right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import radii
from radii.attacks.effort import Effort
from radii.decide import Budget
from radii.engine import sign_prover
from radii.engine.native import Native
from radii.engine.prepare import affordable, working
from radii.engine.tuning import DEFAULT
from radii.errors import DataError
from radii.problem import LINF, Classification, Instance, Query, Verdict
from radii.testing import exact_radius, random_instance, relu_toy

LITTLE = Budget(seconds=1e-6)  # used up before the search begins


@pytest.fixture
def threads():
    """Torch with three threads, as many as a user's process may have; the number of before is set again."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_one_thread_while_the_engine_works_and_the_users_number_afterwards(threads):
    network = relu_toy(1, (4, 8, 7, 3))
    instances, seen = [random_instance(network, seed, reach=0.4) for seed in range(3)], []
    Native(effort="fast").measure(
        network, instances, Classification(), LINF, Budget(seconds=1), tolerance=1e-2,
        progress=lambda *_: seen.append(torch.get_num_threads()),
    )  # fmt: skip
    assert seen == [1, 1, 1]
    assert torch.get_num_threads() == threads
    wrong = Instance(instances[0].x[:2], 0, 0)
    with pytest.raises(DataError):
        Native().measure(network, [wrong], Classification(), LINF, Budget(seconds=1), tolerance=1e-2)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("options", [{"verifier": "envelope"}, {"verifier": "attack", "grid": (0.1, 0.3, 0.1)}])
def test_one_thread_for_every_verifier(options, threads):
    network, seen = relu_toy(1, (4, 8, 7, 3)), []
    data = [random_instance(network, seed, reach=0.4) for seed in range(2)]
    radii.distribution(network, data, progress=lambda *_: seen.append(torch.get_num_threads()), **options)
    assert seen == [1, 1]
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("seed", range(4))
def test_every_input_has_a_lower_end_however_small_the_budget(seed):
    network = relu_toy(seed, (4, 8, 7, 3))
    instance = random_instance(network, seed, reach=0.4)
    exact = exact_radius(network, instance.x, instance.label, LINF)
    radius = Native().measure(network, [instance], Classification(), LINF, LITTLE, tolerance=1e-3, limit=3.0)[0]
    if exact > 0:
        assert 0 < radius.lower <= exact + 1e-9
        assert radius.cost.timeouts == 1


@pytest.mark.parametrize("price", [0.05, 0.2, 1.0])
def test_no_ball_is_bounded_twice_and_no_tree_begun_that_the_budget_cannot_pay(price, monkeypatch):
    """A clock on which only bounds and condensing take time: with half a second the first ball may use it all up."""
    clock, bounded, condensed = [0.0], [], []

    def bound(graph, region, *args, **options):
        clock[0] += price
        bounded.append(float(region.box()[1].max()))
        return bound_root(graph, region, *args, **options)

    def condense(*args):
        condensed.append(clock[0])
        clock[0] += price
        return condensing(*args)

    bound_root, condensing = sign_prover.bound_root, sign_prover.condense
    network = relu_toy(0, (4, 8, 7, 3))
    instance = random_instance(network, 0, reach=0.4)
    monkeypatch.setattr(sign_prover, "bound_root", bound)
    monkeypatch.setattr(sign_prover, "condense", condense)
    monkeypatch.setattr("radii.engine.budget.cpu_seconds", lambda: clock[0])
    radius = Native().measure(network, [instance], Classification(), LINF, Budget(seconds=0.5), tolerance=1e-3)[0]
    assert 0 < radius.lower <= exact_radius(network, instance.x, instance.label, LINF) + 1e-9
    assert len(set(bounded)) == len(bounded)
    assert all(3 * price <= 0.5 - begun for begun in condensed)
    assert bool(condensed) == (price == 0.05)


def test_wall_seconds_hold_the_attack_too(threads):
    network = relu_toy(2, (4, 8, 7, 3))
    data = [random_instance(network, seed, reach=0.4) for seed in range(3)]
    frame = radii.distribution(network, data, seconds=5, progress=False).to_frame()
    assert bool((frame["wall_seconds"] >= 0.8 * frame["cpu_seconds"]).all())


def test_the_attack_is_cut_down_to_its_part_of_the_budget():
    network = relu_toy(1, (4, 8, 7, 3))
    standard, rule = Effort.of("standard"), DEFAULT.attacking
    with working(network):
        assert affordable(standard, network, 4, None, rule) is standard
        assert affordable(standard, network, 4, 1e6, rule) is standard
        least = affordable(standard, network, 4, 1e-9, rule)
        assert (least.rounds, least.polish, least.project) == (0, 1, 1)
        half = affordable(standard, network, 4, 1e6, replace(rule, share=0.0))
        assert half.scout < Effort.of("fast").scout


def test_decisions_keep_to_it_as_well():
    network = relu_toy(3, (4, 8, 7, 3))
    instance = random_instance(network, 3, reach=0.4)
    exact = exact_radius(network, instance.x, instance.label, LINF)
    answer = Native().decide(network, [Query(instance, 0.9 * exact)], LITTLE)[0]
    assert answer.verdict in (Verdict.ROBUST, Verdict.UNKNOWN)
