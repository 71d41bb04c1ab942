"""Bounds in training are those of `radii.bounds`, to rounding, and hold at points of the ball."""

from __future__ import annotations

import copy

import pytest
import torch
from tests.train.nets import KINDS, LOOSER, inputs, net
from torch import Tensor, nn

from radii.bounds.activations import ReluLines
from radii.bounds.backward import Magnitudes, backward
from radii.bounds.interval import enclose
from radii.bounds.lowering import lower
from radii.bounds.region import Region
from radii.errors import ModelError
from radii.models import load_classifier
from radii.models.operators import Relu
from radii.problem import LINF, Domain
from radii.train.from_torch import hindrances, read, refuse
from radii.train.methods.base import box

SIZE = 0.17


def both(kind: str, seed: int = 0) -> tuple[nn.Module, Tensor, Tensor, Tensor, Tensor]:
    module, shape = net(kind, seed)
    x, y = inputs(shape)
    size = torch.full((1, *(1 for _ in shape)), SIZE, dtype=torch.float64)
    return module, x, y, *box(x, size, Domain())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_intervals_and_backward_bounds_are_those_of_the_verifier(kind: str, seed: int) -> None:
    module, x, y, low, high = both(kind, seed)
    mine = read(module, x)
    classifier = load_classifier(copy.deepcopy(module).float(), input_shape=tuple(x.shape[1:]))
    graph = lower(classifier.graph.logits).to(torch.float64)
    ball = Region.around(x, torch.full((len(x),), SIZE), LINF, Domain())
    theirs = enclose(graph, ball)
    for ours, end in zip(mine.outputs(low, high), (theirs.low[-1], theirs.high[-1])):
        assert torch.allclose(ours, end.flatten(1), atol=1e-9)
    lines, sizes = {}, Magnitudes([], [])
    for index, node in enumerate(graph.nodes):
        sizes.grow(graph, theirs.low[index], theirs.high[index])
        if isinstance(node.operator, Relu):
            before = node.inputs[0]
            lines[index] = ReluLines.of(theirs.low[before].flatten(1), theirs.high[before].flatten(1))
    unit = torch.eye(3, dtype=torch.float64)
    rows = unit[y][:, None] - unit[None]
    found = backward(graph, len(graph.nodes) - 1, rows, lines, sizes)
    least = ball.lowest(found.a, found.shifted())
    memo: dict[int, tuple[Tensor, Tensor]] = {}
    mine.worst(low, high, y, memo)
    assert torch.allclose(-mine.worst_linear(low, high, y, memo), least, atol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, *LOOSER])
def test_worst_outputs_are_worse_than_those_of_any_point(kind: str) -> None:
    module, x, y, low, high = both(kind)
    mine = read(module, x)
    memo: dict[int, tuple[Tensor, Tensor]] = {}
    worst = [mine.worst(low, high, y, memo), mine.worst_linear(low, high, y, memo)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(100):
        share = torch.rand(x.shape, generator=generator, dtype=torch.float64).round()
        outputs = mine(low + share * (high - low))
        behind = outputs - outputs.gather(1, y[:, None])
        assert all(bool((behind <= bound + 1e-12).all()) for bound in worst)


def test_a_network_reads_as_the_module() -> None:
    for kind in KINDS:
        module, shape = net(kind)
        x, _ = inputs(shape)
        assert torch.allclose(read(module, x)(x), module(x), atol=1e-12)
        assert torch.allclose(read(module, x).clean, module(x), atol=1e-12)


def test_batch_norm_takes_clean_statistics_for_every_point() -> None:
    module, shape = net("batch_norm")
    x, _ = inputs(shape)
    module.train()
    assert torch.allclose(read(module, x).clean, module(x), atol=1e-12)
    moved = read(module, x)(x + 0.3)
    assert not torch.allclose(moved, module(x + 0.3), atol=1e-3)  # torch takes the statistics of the points


def test_what_cannot_be_bounded_is_refused_by_name() -> None:
    bad = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 3))
    assert hindrances(bad) == ("2 (GELU)",)
    with pytest.raises(ModelError, match=r"ibp: expected layers that it can bound .* got 2 \(GELU\); use another"):
        refuse(bad, "ibp")
    pooled = nn.Sequential(nn.Conv2d(1, 2, 2), nn.MaxPool2d(2), nn.Flatten())
    assert hindrances(pooled) == ()
    assert hindrances(pooled, backward=True) == ("1 (MaxPool2d)",)
    assert hindrances(nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"))) == ("0 (Conv2d)",)
    assert hindrances(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))) == ("1 (Dropout)",)
