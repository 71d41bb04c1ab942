"""Several torch networks as one: the mean of their outputs, by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn import Linear, Module, ReLU, Sequential

from radii.errors import ModelError
from radii.models.merge import mean_of, mean_probability_of

X = torch.rand((6, 3), generator=torch.Generator().manual_seed(0))


def chains(classes: int = 2) -> list[Module]:
    """Chains of layers: one that ends in a dense layer, one without a bias there, one that ends in a ReLU."""
    torch.manual_seed(1)
    return [
        Sequential(Linear(3, 5), ReLU(), Linear(5, classes)),
        Sequential(Linear(3, 4), ReLU(), Linear(4, classes, bias=False)),
        Sequential(Linear(3, classes), ReLU()),
    ]


@pytest.mark.parametrize("shares", [None, [0.5, 0.2, 0.3]])
def test_the_mean_is_that_of_the_outputs(shares: list[float] | None) -> None:
    nets = chains()
    by_hand = sum(share * net(X) for share, net in zip(shares or [1 / 3] * 3, nets))
    merged = mean_of(nets, 2, torch.float32, shares)
    torch.testing.assert_close(merged(X), by_hand)


def test_last_dense_layers_go_into_the_mean() -> None:
    merged = mean_of(chains()[:2], 2, torch.float32)
    assert [tuple(one.weight.shape) for one in merged.modules() if isinstance(one, Linear)] == [(5, 3), (4, 3), (2, 9)]
    one = chains()[0]
    assert mean_of([one], 2, torch.float32) is one


def test_the_mean_of_probabilities() -> None:
    nets, shares = chains()[:2], [0.25, 0.75]
    by_hand = sum(share * torch.softmax(net(X), 1) for share, net in zip(shares, nets))
    torch.testing.assert_close(mean_probability_of(nets, torch.float32, shares)(X), by_hand)


def test_networks_of_other_outputs_have_no_mean() -> None:
    with pytest.raises(ModelError, match="expected networks of 2 outputs, got one of 3"):
        mean_of([*chains(), *chains(3)], 2, torch.float32)
