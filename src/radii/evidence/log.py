"""Logs: what the engine tells of its trees while it searches, kept small until it is known which of it is a proof."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from radii._torch import Tensor, torch

Columns = NDArray[np.int64]  # (n, 2): which ReLU, which value of it


class Nodes(Protocol):
    """What a log reads of a batch of nodes."""

    objective: Tensor
    sign: Tensor
    alpha: Tensor
    beta: Tensor


@dataclass(frozen=True, eq=False)
class _Batch:
    stage: int
    objective: NDArray[np.int64]
    keys: tuple[NDArray[np.int64], NDArray[np.int64]]  # node and 2·column + (1 for active), of every split
    alpha: NDArray[np.uint8]
    beta: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


@dataclass(eq=False)
class Step:
    """What is known of one node: slopes and multipliers of its first bound and of the one after its cut."""

    alpha: NDArray[np.uint8]
    beta: dict[int, float]


Key = tuple[int, ...]  # the splits that lead to a node, as 2·column + (1 for active), sorted


@dataclass(eq=False)
class TreeLog:
    """The nodes of one tree: `labels` say which objective is what, `where` which ReLU values the columns are."""

    where: Sequence[tuple[int, Tensor]]
    labels: list[Any]
    ball: float
    hulls: bool = False  # whether nodes were bounded through hulls of first-layer neurons
    batches: list[_Batch] = field(default_factory=list)

    def tell(self, stage: int, nodes: Nodes, signs: Tensor | None = None) -> None:
        """Keeps the slopes and multipliers of bounded nodes; `signs` are their splits where the nodes' own changed."""
        split = (nodes.sign if signs is None else signs).nonzero()
        sign = (nodes.sign if signs is None else signs)[split[:, 0], split[:, 1]]
        pull = nodes.beta.double() * nodes.sign
        held = pull.nonzero()
        self.batches.append(
            _Batch(
                stage,
                nodes.objective.numpy().copy(),
                (split[:, 0].numpy(), (2 * split[:, 1] + (sign > 0)).numpy()),
                (nodes.alpha * 255.0).round().clamp(0, 255).to(torch.uint8).numpy(),
                (held[:, 0].numpy(), held[:, 1].numpy(), pull[held[:, 0], held[:, 1]].numpy()),
            )
        )

    @property
    def columns(self) -> Columns:
        """Which ReLU and which value of it each column is."""
        parts = [np.stack([np.full(len(v), k), v.numpy()], 1) for k, v in self.where]
        return np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)

    @property
    def bytes(self) -> int:
        """About what the log occupies."""
        return sum(b.alpha.nbytes + b.keys[1].nbytes * 2 + b.beta[2].nbytes * 3 for b in self.batches)

    def steps(self, places: Collection[int] | None = None) -> dict[tuple[int, Key], dict[int, Step]]:
        """What is known of every node, by objective and splits, by stage; the last word counts.

        Of the objectives at some places of the labels only, if these are given: of a hidden tree few are of use.
        """
        found: dict[tuple[int, Key], dict[int, Step]] = {}
        for batch in self.batches:
            asked = np.isin(batch.objective, list(places)) if places is not None else batch.objective >= 0
            mine = asked.nonzero()[0]
            for i, key, beta in zip(mine.tolist(), _keys(batch, mine), _pulls(batch, mine)):
                found.setdefault((int(batch.objective[i]), key), {})[batch.stage] = Step(batch.alpha[i], beta)
        return found


def _keys(batch: _Batch, nodes: NDArray[np.int64]) -> Iterator[Key]:
    for part in _parts(batch.keys[0], nodes):
        yield tuple(sorted(batch.keys[1][part].tolist()))


def _pulls(batch: _Batch, nodes: NDArray[np.int64]) -> Iterator[dict[int, float]]:
    node, column, value = batch.beta
    for part in _parts(node, nodes):
        yield dict(zip(column[part].tolist(), value[part].tolist()))


def _parts(owner: NDArray[np.int64], nodes: NDArray[np.int64]) -> Iterator[slice]:
    """Where the entries of each node begin and end, among entries in the order of their owners."""
    ends = zip(np.searchsorted(owner, nodes).tolist(), np.searchsorted(owner, nodes + 1).tolist())
    return (slice(first, last) for first, last in ends)
