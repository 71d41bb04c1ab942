"""The papers' architectures have the published sizes, build, and become classifiers."""

from __future__ import annotations

import pytest
import torch
from tests.shared import DATA, needs_data

from radii.errors import InputError
from radii.models import architectures, load_classifier
from radii.models.zoo import architecture

ALL = {item.name: item for item in architectures()}


@pytest.mark.parametrize("name", ALL)
def test_parameter_counts_are_those_the_papers_print(name):
    item = ALL[name]
    if item.published is not None:
        assert item.parameters // 1000 == item.published


@pytest.mark.parametrize("name", ALL)
def test_builds_and_runs(name):
    item = ALL[name]
    module = item.build(seed=0).eval()
    assert sum(p.numel() for p in module.parameters()) == item.parameters
    with torch.no_grad():
        assert module(torch.zeros(2, *item.input_shape)).shape == (2, item.classes)


def test_a_seed_fixes_the_weights_and_leaves_torch_alone():
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    one, two = (architecture("mnist_relu_3_50").build(seed=3) for _ in range(2))
    assert torch.rand(1) == wanted
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))


@pytest.mark.parametrize(
    "name", ["mnist_relu_3_50", "convSmall", "resnet_4b", "fashion_clamp_30", "ensemble_mnist_0_1_3convs"]
)
def test_becomes_a_classifier(name):
    item = architecture(name)
    net = load_classifier(item.build(seed=0), input_shape=item.input_shape, name=name)
    assert (net.input_shape, net.classes) == (item.input_shape, item.classes)


@needs_data
def test_the_residual_network_has_the_layers_of_the_published_file():
    item = architecture("resnet_4b")
    ours = load_classifier(item.build(seed=0), input_shape=item.input_shape).graph
    theirs = load_classifier(DATA / "jair" / "networks" / "resnet_4b_standard.onnx").graph

    def layers(graph):
        found = [(type(n.operator).__name__, n.shape) for n in graph.nodes if hasattr(n.operator, "weight")]
        return sorted(found)

    assert layers(ours) == layers(theirs)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(InputError, match="did you mean 'resnet_4b'"):
        architecture("resnet4b")
