"""Merged: several networks of one architecture as one network whose outputs are the mean of theirs."""

from __future__ import annotations

from collections.abc import Sequence

from radii._torch import Tensor, torch
from radii.errors import ModelError


class Merged(torch.nn.Module):
    """The layers of every network side by side, and one last dense layer: its rows are theirs over their number.

    The mean needs no operator of its own then: verifiers see branches, a concatenation and a dense layer.
    """

    def __init__(self, bodies: Sequence[torch.nn.Module], last: torch.nn.Linear) -> None:
        super().__init__()
        self.bodies = torch.nn.ModuleList(bodies)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(torch.cat([body(x) for body in self.bodies], 1))
        return found


def mean_of(networks: Sequence[torch.nn.Module]) -> torch.nn.Module:
    """The network whose outputs (logits) are the mean of those of chains of layers that end in a dense layer."""
    if len(networks) == 1:
        return networks[0]
    bodies, weights, biases = [], [], []
    for one in networks:
        *body, last = list(one) if isinstance(one, torch.nn.Sequential) else [one]
        if not body or not isinstance(last, torch.nn.Linear):
            raise ModelError("mean: expected chains of layers that end in a dense layer, got another network")
        bodies.append(torch.nn.Sequential(*body))
        weights.append(last.weight.detach().double())
        biases.append(torch.zeros(len(last.weight)).double() if last.bias is None else last.bias.detach().double())
    kind = networks[0].get_parameter(next(name for name, _ in networks[0].named_parameters())).dtype
    merged = torch.nn.Linear(sum(one.shape[1] for one in weights), len(weights[0])).to(kind)
    with torch.no_grad():
        merged.weight.copy_(torch.cat(weights, 1) / len(networks))
        merged.bias.copy_(torch.stack(biases).mean(0))
    return Merged(bodies, merged)
