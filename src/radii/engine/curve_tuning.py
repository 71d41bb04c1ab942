"""The numbers that steer trees of networks with curves, condensed ones and whole graphs: groups of `Tuning`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurvedTrees:
    """Branch and bound over intervals of neurons on condensed networks with curves."""

    most: int = 1000  # units: larger networks are bounded on the graph, some units at a time
    batch: int = 64  # nodes split at a time: more of them are not cheaper each
    first_steps: int = 16  # of ascent for the roots
    steps: int = 8  # of ascent for every other node
    hidden_steps: int = 4  # of ascent per node for hidden neurons, which are many
    refined: int = 32  # neurons of a node that its cut bounds anew, at least …
    refinement: int = 8000  # … or so many over the number of neurons, which is more where they are few
    candidates: int = 8  # neurons of a node, those that cost its bound most, that are tried before one is split
    lone_gain: float = 1e-3  # of the largest gain of a batch: what a part that gains nothing counts for
    narrow: float = 1e-6  # of the size of its ends: a float32 interval this thin is not split further
    parts: int = 8  # a tanh is split at a multiple of its interval's length over this, or at 0
    plain_nodes: int = 24  # of the tree of the margins, before hidden intervals are narrowed
    hidden_nodes: int = 5  # for each end of an interval of a hidden neuron: with 40 they are hardly narrower
    hidden_batch: int = 256  # nodes of hidden trees split at a time
    hidden_slack: float = 0.2  # of the way from the bound to the value seen, what need not be proven of a hidden neuron
    hidden_worth: float = 0.02  # of its interval's length: an end that could move by less is not branched for


@dataclass(frozen=True)
class IntervalTrees:
    """Branch and bound over intervals of pre-activations or inputs, on whole graphs with curves."""

    few_inputs: int = 12  # inputs up to which the ball is split instead of pre-activations
    first_steps: int = 16  # of ascent for the roots
    steps: int = 8  # of ascent for every other node
    work: int = 2**21  # operands × widest layer up to which every node bounds all its operands anew
    rows: int = 2**22  # operands × widest layer × nodes of a batch
    batch: int = 64  # nodes split at a time, at most
    least_batch: int = 4  # and at least, however wide the network
    flat: float = 1e-3  # how much an input's width counts beside the loss it causes
    thin: float = 2.0**-40  # of the size of its ends: a box this thin is not split further
    narrow: float = 1e-9  # of the size of its ends: an interval this thin is not split further
    parts: int = 8  # a tanh is split at a multiple of its interval's length over this, or at 0
