"""Branching rules: which neuron of each node is split next. A rule is one function from nodes to neurons.

`Tuning(branching=my_rule)` plugs another one in. A rule may read everything that a node has (`low`, `high`, `sign`,
`score`, `alpha`, …) and must name an undecided neuron (low < 0 < high) of every node; it changes how many nodes a proof
takes, never whether it is one.
"""

from __future__ import annotations

from collections.abc import Callable

from radii._torch import Tensor, torch
from radii.engine.nodes import Nodes

Rule = Callable[[Nodes], Tensor]  # (nodes,) int64


def largest_loss(nodes: Nodes) -> Tensor:
    """The undecided neuron whose lines cost the node's bound most (`score`), in the spirit of BaBSR.

    Bunel et al. 2020, "Branch and Bound for Piecewise Linear Neural Network Verification", score splits by what the
    relaxation of each neuron costs the bound. Filtered smart branching (De Palma et al. 2021) also bounds children of
    the best candidates; here the score comes free with each step of the ascent, and one more node is cheaper.
    """
    undecided = (nodes.low < 0) & (nodes.high > 0)
    return torch.where(undecided, nodes.score + 1e-30, torch.full_like(nodes.score, -1.0)).argmax(1)


def widest(nodes: Nodes) -> Tensor:
    """The undecided neuron with the widest interval: a plain rule to compare with."""
    undecided = (nodes.low < 0) & (nodes.high > 0)
    return torch.where(undecided, nodes.high - nodes.low, torch.full_like(nodes.low, -1.0)).argmax(1)


def splits(rule: Rule, nodes: Nodes) -> Tensor:
    """The neurons that a rule names, checked: splitting a decided neuron would go on for ever."""
    at = rule(nodes)
    low, high = (ends.gather(1, at[:, None]) for ends in (nodes.low, nodes.high))
    if not bool(((low < 0) & (high > 0)).all()):
        raise ValueError(f"branching rule {rule.__qualname__}: expected an undecided neuron of every node, got others")
    return at
