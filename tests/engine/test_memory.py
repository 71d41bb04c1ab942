"""Batches sized from free memory: what is free is read where it is told, and no answer depends on how much it is."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
import torch
from tests.bounds.balls import region

from radii import _memory as memory
from radii._memory import free_memory
from radii.attacks import nearest
from radii.attacks.nearest import attack_all
from radii.bounds.intermediate import bound_root
from radii.decide import Budget
from radii.engine import native, specification
from radii.engine.budget import Meter
from radii.engine.condensed import condense, objectives
from radii.engine.native import Native
from radii.engine.subproblem import Problem
from radii.engine.tree import Tree
from radii.problem import L1, L2, LINF, Classification, Clause, OutputSpec, Reason, SpecQuery, Verdict
from radii.testing import exact_radius, random_instance, relu_toy

NODES = Budget(None, nodes=20_000)  # the same steps every time


def group(folder, limit: str, used: int, files: int):
    """A container's files, as the kernel writes them."""
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used - files}\ninactive_file {files}\n")
    return (str(folder), "memory.max", "memory.current", "inactive_file")


def test_free_memory_is_that_of_the_container(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "GROUPS", (group(tmp_path, "10000000", 7_000_000, 2_000_000),))
    assert free_memory() == 5_000_000
    group(tmp_path, "10000000", 11_000_000, 0)
    assert free_memory() == 0


@pytest.mark.parametrize("files", ["no limit", "none"])
def test_free_memory_is_that_of_the_machine_where_no_container_confines_it(files, tmp_path, monkeypatch):
    known = group(tmp_path, "max", 7, 0) if files == "no limit" else (str(tmp_path / "absent"), "a", "b", "c")
    monkeypatch.setattr(memory, "GROUPS", (known,))
    assert free_memory() == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_a_batch_may_take_a_part_of_what_the_budget_leaves():
    held = psutil.Process().memory_info().rss
    assert Meter(Budget(memory=held + 2**30)).room == pytest.approx(2**27, rel=0.2)
    assert Meter(Budget(memory=1)).room == 0


def toy_tree(room: int | None) -> Tree:
    """A tree over all margins of a network with three hidden layers, not yet started."""
    graph = relu_toy(3, (5, 8, 8, 7, 4)).graph.to(torch.float64)
    root = bound_root(graph, region(torch.full((5,), 0.5), 0.4))
    net = condense(root)
    rows = torch.eye(4, dtype=torch.float64)
    return Tree(Problem.of(net, objectives(root, net, rows, rows.new_zeros(4))), 0.4, room=room)


def test_nodes_that_do_not_fit_are_bounded_in_parts_with_the_same_result():
    tree = toy_tree(None)
    small = toy_tree(2 * tree.problem.node_bytes)
    assert [tree.fitting(128), small.fitting(128), toy_tree(0).fitting(128)] == [128, 2, 1]
    tree.start()
    small.start()
    assert len(tree.open) == 4  # more than fit, so that parts were made
    torch.testing.assert_close(small.open.radius, tree.open.radius)
    torch.testing.assert_close(small.open.low, tree.open.low)
    assert len(small.minimisers) == len(tree.minimisers)
    assert small.visited == tree.visited


def test_no_nodes_fit_into_any_room():
    tree = toy_tree(0)
    assert len(tree.divide(tree.problem.roots().pick(torch.arange(0)))) == 0


@pytest.mark.parametrize("seed", range(6))
def test_radii_are_exact_with_room_for_a_single_node(seed, monkeypatch):
    network = relu_toy(seed, (4, 7, 6, 6, 3))
    instance = random_instance(network, seed, reach=0.4)
    norm = (LINF, L2, L1)[seed % 3]
    exact = exact_radius(network, instance.x, instance.label, norm)
    at_once = []
    whole = Tree._bound_at_once
    monkeypatch.setattr(Tree, "_bound_at_once", lambda t, nodes, n: at_once.append(len(nodes)) or whole(t, nodes, n))
    monkeypatch.setattr(Meter, "room", 0)
    native = Native(effort="fast")
    radius = native.measure(network, [instance], Classification(), norm, NODES, tolerance=1e-3, limit=3.0)[0]
    assert set(at_once) <= {0, 1}
    if exact > 0:
        assert radius.lower <= exact + 1e-9
        assert radius.upper is None or radius.upper >= exact - 1e-6
        assert norm is not LINF or min(exact, 3.0) - radius.lower <= 2e-3


TORCH = "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError(TORCH)])
def test_an_attack_that_does_not_fit_goes_on_with_fewer_inputs(error, monkeypatch):
    """Room for two inputs at a time, and none at all for the third: it has no witness, and the others have theirs."""
    net = relu_toy(0)
    inputs = [random_instance(net, seed) for seed in range(6)]
    expected = attack_all(net, inputs, Classification(), LINF)
    true, sizes = nearest.minimum_norm, []

    def scarce(classifier, x, *rest):
        sizes.append(len(x))
        if len(x) > 2 or any((one == inputs[2].x).all() for one in x):
            raise error
        return true(classifier, x, *rest)

    monkeypatch.setattr(nearest, "minimum_norm", scarce)
    found = attack_all(net, inputs, Classification(), LINF)
    assert found[2] is None
    assert max(sizes) == 6
    assert [one is None for one in found] == [i == 2 or one is None for i, one in enumerate(expected)]
    result = Native(effort="fast").measure(net, inputs[:3], Classification(), LINF, NODES, tolerance=0.01)
    assert result[2].lower is not None


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError(TORCH)])
def test_a_specification_that_does_not_fit_is_unknown(error, monkeypatch):
    def scarce(*_):
        raise error

    monkeypatch.setattr(specification, "_prove", scarce)
    monkeypatch.setattr(native, "first_look", lambda *_: None)  # which would settle so easy a query before
    spec = OutputSpec((Clause(np.array([[1.0, 0.0, 0.0]]), np.array([-1e9])),))
    query = SpecQuery(np.zeros(4), np.ones(4), spec)
    answer = Native(effort="fast").decide_spec(relu_toy(0), query, NODES)
    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, Reason.MEMORY)


def test_other_failures_are_not_taken_for_memory():
    assert memory.out_of_memory(MemoryError())
    assert memory.out_of_memory(RuntimeError(TORCH))
    assert not memory.out_of_memory(RuntimeError("shapes differ"))
    assert not memory.out_of_memory(ValueError("alloc"))
