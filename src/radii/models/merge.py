"""Several networks of the same inputs as one network: the mean of their outputs, or of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from radii._torch import Tensor, torch
from radii.errors import ModelError


class SideBySide(torch.nn.Module):
    """The layers of every network side by side, their values one after the other, and what is made of them.

    A mean needs no operator of its own then: verifiers see branches, a concatenation and a dense layer.
    """

    def __init__(self, bodies: Sequence[torch.nn.Module], last: torch.nn.Module) -> None:
        super().__init__()
        self.bodies = torch.nn.ModuleList(bodies)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(torch.cat([body(x) for body in self.bodies], 1))
        return found


def mean_of(
    networks: Sequence[torch.nn.Module], classes: int, dtype: torch.dtype, shares: Sequence[float] | None = None
) -> torch.nn.Module:
    """The network whose outputs (logits) are the mean of theirs, with shares that add up to 1, equal unless given.

    The last dense layer of a chain of layers goes into the mean: the merged network is no deeper than its parts.
    """
    if len(networks) == 1:
        return networks[0]
    parts = _shares(networks, shares)
    bodies, weight, bias = [], [], torch.zeros(classes, dtype=torch.float64)
    for network, share in zip(networks, parts):
        *body, last = list(network) if isinstance(network, torch.nn.Sequential) else [network]
        if not body or not isinstance(last, torch.nn.Linear):
            bodies.append(network)
            weight.append(share * torch.eye(classes, dtype=torch.float64))
            continue
        if last.out_features != classes:
            raise ModelError(f"mean: expected networks of {classes} outputs, got one of {last.out_features}")
        bodies.append(torch.nn.Sequential(*body))
        weight.append(share * last.weight.detach().double())
        bias += 0.0 if last.bias is None else share * last.bias.detach().double()
    return SideBySide(bodies, _dense(torch.cat(weight, 1), bias, dtype))


def mean_probability_of(
    networks: Sequence[torch.nn.Module], dtype: torch.dtype, shares: Sequence[float] | None = None
) -> torch.nn.Module:
    """The network of the mean probabilities of networks of two classes: a softmax of two is a sigmoid of their lead."""
    parts = torch.tensor(_shares(networks, shares), dtype=torch.float64)
    lead = torch.kron(torch.eye(len(parts)), torch.tensor([[-1.0, 1.0]]))  # the second logit less the first
    mean = _dense(torch.stack([-parts, parts]), torch.tensor([1.0, 0.0]), dtype)
    steps = [_dense(lead, torch.zeros(len(parts)), dtype), torch.nn.Sigmoid(), mean]
    return SideBySide(networks, torch.nn.Sequential(*steps))


def _shares(networks: Sequence[torch.nn.Module], shares: Sequence[float] | None) -> list[float]:
    return [1.0 / len(networks)] * len(networks) if shares is None else list(shares)


def _dense(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> torch.nn.Linear:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0]).to(dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer
