"""Slopes: shells of a ball, and the largest slope of networks as they are trained, not only of tiny ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import radii
from radii.bounds.region import Region
from radii.bounds.shell import Shell
from radii.problem import Domain, Norm


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("slope", [0.5, 2.0, 8.0])
def test_no_point_of_a_shell_is_below_its_minimiser_and_none_below_the_bound(norm: str, slope: float) -> None:
    torch.manual_seed(0)
    size, d = Norm.of(norm), 5
    ball = Region.around(torch.full((1, d), 0.5), torch.tensor([0.2]), size, Domain(-9.0, 9.0))
    shell = Shell.of(ball, 0.1, slope)
    a, c = torch.randn(1, 7, d, dtype=torch.float64), torch.randn(1, 7, dtype=torch.float64)
    way = torch.randn(20_000, d, dtype=torch.float64)
    far = 0.1 + 0.1 * torch.rand(len(way), 1, dtype=torch.float64)
    points = 0.5 + far * way / torch.linalg.vector_norm(way, ord=size.order, dim=1, keepdim=True)
    values = (points @ a[0].T + c[0] + slope * (far - 0.1)).min(0).values
    at = shell.value(a, c, shell.minimiser(a))[0]
    lowest = shell.lowest(a, c)[0]
    assert (at <= values + 1e-9).all()
    assert (lowest <= at + 1e-12).all()
    assert (lowest >= at - 1e-6).all()


def test_the_largest_slope_closes_on_a_layer_of_thirty_neurons() -> None:
    # The ascent used to climb the bound of the whole ball instead of the shell's: 3,000 nodes left a gap of .2.
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(60, 30), torch.nn.ReLU(), torch.nn.Linear(30, 4), torch.nn.Hardtanh(-9, 9)
    )
    classifier = radii.load_classifier(net, input_shape=(60,))
    x = np.random.default_rng(1).uniform(0.2, 0.8, 60).astype(np.float32)
    found = radii.reach(classifier, x, property="lipschitz", epsilon=0.15, nodes=3000, seconds=None, tolerance=0.03)
    assert found.status == "closed", found
    assert found.witness is not None
    assert found.lower is not None
    moved = np.abs(classifier.reference(found.witness.x[None])[0] - classifier.reference(x[None])[0]).max()
    assert moved / found.witness.distance >= found.lower - 1e-5
