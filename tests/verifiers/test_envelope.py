"""Envelopes bracket exact radii; the deployed arithmetic's error bound holds for onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from radii.bounds.float32 import float32_error
from radii.bounds.intermediate import bound_root
from radii.bounds.lowering import lower
from radii.bounds.region import Region
from radii.decide import Budget
from radii.engine.native import Native
from radii.problem import L1, L2, LINF, Classification, Status
from radii.testing.exact import exact_radius
from radii.testing.toys import KINDS, linear_toy, random_instance, random_network
from radii.verifiers.envelope import Envelope


@pytest.mark.parametrize("norm", [LINF, L2, L1], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_an_envelope_holds_the_exact_radius(kind, norm):
    net = random_network(3, kind)
    instances = [random_instance(net, seed) for seed in range(4)]
    radii = Envelope().measure(net, instances, Classification(), norm, Budget(), tolerance=1e-3, limit=1.0)
    assert len(radii) == len(instances)
    for instance, radius in zip(instances, radii):
        exact = exact_radius(net, instance.x, instance.label, norm)
        assert radius.lower is None or radius.lower <= exact + 1e-9
        assert radius.upper is None or radius.upper >= exact - 1e-6


@pytest.mark.parametrize("norm", [LINF, L2, L1], ids=str)
def test_linear_networks_need_no_branching(norm):
    toy = linear_toy(5)
    instances = [random_instance(toy.classifier, seed) for seed in range(6)]
    found = Envelope().measure(toy.classifier, instances, Classification(), norm, Budget(), tolerance=0.05)
    assert all(radius.lower is not None and radius.status is Status.CLOSED for radius in found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_deployed_error_bound_holds_in_onnxruntime(kind):
    net = random_network(11, kind)
    instance = random_instance(net, 1)
    graph = lower(net.graph).to(torch.float64)
    center = torch.from_numpy(instance.x[None].copy())
    region = Region.around(center, torch.tensor([0.2]), LINF, net.domain)
    allowed = float32_error(bound_root(graph, region))[0].numpy()
    rng = np.random.default_rng(0)
    x = np.clip(instance.x + rng.uniform(-0.2, 0.2, (500, *instance.x.shape)), 0, 1).astype(np.float32)
    inside = np.abs(x.astype(np.float64) - instance.x).reshape(500, -1).max(1) <= 0.2
    real = graph(torch.from_numpy(x[inside]).double()).numpy()
    off = np.abs(net.reference(x[inside]) - real)
    assert (off <= allowed + 1e-12).all()
    assert allowed.max() < 1e-2  # a bound that says something


def test_proofs_for_the_deployed_network_are_named_and_not_larger():
    net = random_network(2, "dense")
    instance = random_instance(net, 0)
    ask = ([instance], Classification(), LINF, Budget(10))
    real, deployed = (Native(arithmetic=name).measure(net, *ask, tolerance=1e-3)[0] for name in ("real", "float32"))
    assert deployed.proof is not None
    assert deployed.proof.arithmetic == "float32"
    assert deployed.lower is not None
    assert real.lower is not None
    assert deployed.lower <= exact_radius(net, instance.x, instance.label)
    assert deployed.lower <= real.lower + 1e-3
