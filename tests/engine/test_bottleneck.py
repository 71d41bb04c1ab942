"""Bottlenecks: whatever breaks a margin breaks a direction too, and radii found through them are right."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.bounds.balls import points, region
from tests.engine.tuned import SETTLING

from radii.bounds.intermediate import bound_root
from radii.decide import Budget
from radii.engine import bottleneck, sign_prover
from radii.engine.bottleneck import Bottleneck, forbidden
from radii.engine.native import Native
from radii.engine.output_rows import margins
from radii.engine.tuning import DEFAULT
from radii.evidence import check
from radii.problem import L1, L2, LINF, Classification, Status
from radii.testing import exact_radius, random_instance, relu_toy

NODES = Budget(None, nodes=5000)  # the same steps every time
SHAPES = ((5, 8, 2, 8, 3), (5, 7, 1, 9, 3), (4, 8, 3, 6, 6, 3))


def ends_of(root, neck):
    """The box of the live values."""
    lines = root.lines[neck.relu]
    return lines.low[0, neck.live].clamp_min(0), lines.high[0, neck.live]


def root_of(seed, share=1.2, norm=LINF):
    """Bounds of a network with a narrow layer on a ball around its radius, and what must hold there."""
    network = relu_toy(seed, SHAPES[seed % len(SHAPES)])
    instance = random_instance(network, seed, reach=0.4)
    exact = exact_radius(network, instance.x, instance.label, norm)
    asked = margins(network, instance.label, Classification())
    size = share * exact if 0 < exact < 10 else 0.3
    inside = points(instance.x, size, norm.name, None, 4000, seed)
    return bound_root(asked.graph, region(instance.x, size, norm.name)), asked, torch.from_numpy(inside).double()


def test_parts_hold_every_value_that_breaks_a_margin():
    """On balls beyond the radius, where points do break margins: their values lie in parts that are left open."""
    seen = 0
    for seed in range(30):
        root, asked, x = root_of(seed, norm=(LINF, L2, L1)[seed // 3 % 3])
        neck = Bottleneck.of(root)
        if neck is None:
            continue
        assert len(neck.live) <= DEFAULT.bottlenecks.live
        values = root.graph.values(x.reshape(-1, *root.graph.input_shape))
        broken = (values[-1].flatten(1) @ asked.rows.T <= asked.shift).any(1)
        y = values[neck.relu].flatten(1)[broken][:, neck.live]
        low, high = ends_of(root, neck)
        parts = bottleneck._unsafe(neck.after(root.graph, asked.rows, asked.shift), low, high).open
        inside = (y[:, None] >= parts.low - 1e-9) & (y[:, None] <= parts.high + 1e-9)
        assert bool(inside.all(2).any(1).all()), seed
        seen += bool(broken.any())
    assert seen >= 10


def test_all_values_of_the_box_that_break_a_margin_are_forbidden():
    """Not only those that points of the ball reach: random points of the live values' box, in and out of reach."""
    seen = 0
    for seed in range(30):
        root, asked, _ = root_of(seed, 0.9)
        neck = Bottleneck.of(root)
        found = None if neck is None else forbidden(root, neck, asked.rows, asked.shift)
        if neck is None or found is None:
            continue
        low, high = ends_of(root, neck)
        y = low + (high - low) * torch.rand((20000, len(low)), generator=torch.Generator().manual_seed(seed)).double()
        broken = (neck.after(root.graph, asked.rows, asked.shift)(y) <= 0).any(1)
        assert bool((y[broken] @ found[0].T <= found[1]).any(1).all()), seed
        seen += bool(broken.any())
    assert seen >= 8


def test_a_layer_that_others_pass_by_is_none():
    """A residual branch around the narrow layer: what comes after is no function of it alone."""
    root = next(root for root in (root_of(seed, 0.9)[0] for seed in range(12)) if Bottleneck.of(root) is not None)
    graph, relu = root.graph, Bottleneck.of(root).relu
    passed = type(graph)((*graph.nodes[: relu + 1], *(_around(n, relu) for n in graph.nodes[relu + 1 :])))
    found = Bottleneck.of(replace(root, graph=passed))
    assert found is None or found.relu != relu


def _around(node, relu):
    """The node with its first input taken from before the layer."""
    return replace(node, inputs=tuple(0 if i == relu else i for i in node.inputs))


@pytest.mark.parametrize("seed", range(3, 15))
def test_radii_found_through_bottlenecks_hold_the_exact_ones(seed):
    """With plain trees switched off, the margins are asked at the bottleneck; every norm, real and float32."""
    network = relu_toy(seed, SHAPES[seed % len(SHAPES)])
    instance = random_instance(network, seed, reach=0.4)
    norm = (LINF, L2, LINF, L1)[seed % 4]
    exact = exact_radius(network, instance.x, instance.label, norm)
    native = Native(effort="fast", arithmetic="float32" if seed % 6 == 0 else "real", tuning=SETTLING)
    radius = native.measure(network, [instance], Classification(), norm, Budget(20), tolerance=1e-3, limit=3.0)[0]
    if exact == 0:
        assert radius.status is Status.MISCLASSIFIED
        return
    if norm is LINF and native.arithmetic == "real":
        assert radius.status in (Status.CLOSED, Status.ROBUST), radius
    assert radius.lower <= exact * (1 + 1e-9) + 1e-9
    assert radius.upper is None or radius.upper >= exact * (1 - 1e-5) - 1e-6


def test_the_path_through_bottlenecks_is_taken(monkeypatch):
    asked = []
    whole = sign_prover.forbidden
    monkeypatch.setattr(sign_prover, "forbidden", lambda *a: asked.append(whole(*a)) or asked[-1])
    for seed in (4, 5, 9, 12, 16, 20):
        network = relu_toy(seed, SHAPES[seed % len(SHAPES)])
        instance = random_instance(network, seed, reach=0.4)
        Native(effort="fast", tuning=SETTLING).measure(
            network, [instance], Classification(), LINF, NODES, tolerance=1e-3
        )
    assert sum(found is not None for found in asked) >= 3


def test_evidence_goes_without_them(monkeypatch):
    """Evidence holds trees of margins only, so a run that keeps it does not ask bottlenecks, and the checker agrees."""
    asked = []
    whole = sign_prover.forbidden
    monkeypatch.setattr(sign_prover, "forbidden", lambda *a: asked.append(a) or whole(*a))
    network = relu_toy(4, SHAPES[1])
    instance = random_instance(network, 4, reach=0.4)
    options = ([instance], Classification(), LINF, NODES)
    Native(effort="fast", tuning=SETTLING).measure(network, *options, tolerance=1e-3)
    without = len(asked)
    radius = Native(effort="fast", evidence=True, tuning=SETTLING).measure(network, *options, tolerance=1e-3)[0]
    assert 0 < without == len(asked)
    assert radius.evidence is not None
    assert check(radius.evidence, network).radius == radius.lower
