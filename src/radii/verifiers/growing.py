"""Growing: what a pursuit needs of a tree, whatever it splits."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from torch import Tensor


class Growing(Protocol):
    """Branch and bound under way towards a radius, the goal."""

    goal: float
    visited: int
    minimisers: Tensor | None  # where the last bounded nodes had their least values, from the centre

    @property
    def open(self) -> Sized | None:
        """The nodes that are left."""

    @property
    def done(self) -> bool:
        """Whether the goal is proven."""

    @property
    def lower(self) -> float:
        """No violation is closer than this."""

    @property
    def node_bytes(self) -> int:
        """What one open node occupies."""

    def relax_goal(self, goal: float) -> None:
        """Takes a smaller goal."""

    def step(self) -> bool:
        """Splits some nodes; False when nothing is left to split."""
