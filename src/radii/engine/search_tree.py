"""SearchTree: branch and bound under way towards a radius, whatever it splits; what a search needs of a tree."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Protocol, Self, TypeVar

from torch import Tensor


class Front(Protocol):
    """Open nodes, each with the radius below which it holds no violation."""

    radius: Tensor

    def __len__(self) -> int:
        """How many there are."""

    def pick(self, index: Tensor) -> Self:
        """These nodes of them."""


Open = TypeVar("Open", bound=Front)


class SearchTree(Generic[Open]):
    """No violation is closer than the least radius over open nodes; when none is open, the goal is proven."""

    goal: float
    visited: int
    open: Open | None  # None before the tree was started
    minimisers: Tensor | None  # where the last bounded nodes had their least values, from the centre

    @property
    def done(self) -> bool:
        """Whether no node is open: the goal is proven. A tree that was not started has proven nothing."""
        return self.open is not None and len(self.open) == 0

    @property
    def lower(self) -> float:
        """No violation is closer than this."""
        if self.open is None:
            return 0.0
        return self.goal if len(self.open) == 0 else min(self.goal, float(self.open.radius.min()))

    def relax_goal(self, goal: float) -> None:
        """A smaller goal: nodes that reach it are closed."""
        self.goal = min(self.goal, goal)
        if self.open is not None:
            self.open = self.open.pick((self.open.radius < self.goal).nonzero()[:, 0])

    @property
    def node_bytes(self) -> int:
        """What one open node occupies."""
        nodes = self.open
        return 0 if nodes is None or not len(nodes) else sum(t[0].nbytes for t in vars(nodes).values())

    @abstractmethod
    def step(self) -> bool:
        """Splits some nodes and bounds their parts; False when nothing is left to split."""
