"""SearchTree: branch and bound under way towards a radius, whatever it splits; all that a search needs of a tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, Self, TypeVar

from radii._torch import Tensor
from radii.evidence.log import TreeLog
from radii.problem import Reason


class Front(Protocol):
    """Open nodes, each with the radius below which it holds no violation."""

    radius: Tensor

    def __len__(self) -> int:
        """How many there are."""

    def pick(self, index: Tensor) -> Self:
        """These nodes of them."""


Open = TypeVar("Open", bound=Front)


class SearchTree(ABC, Generic[Open]):
    """No violation is closer than the least radius over open nodes; when none is open, the goal is proven.

    A tree implements `step` and `incomplete`; the rest is the same for all of them.
    """

    goal: float  # the radius to prove
    visited: int  # nodes bounded so far
    open: Open
    minimisers: Tensor | None  # where the last bounded nodes had their least values, from the centre: to attack from
    log: TreeLog | None = None  # hears of every bounded node, for evidence; not all trees can be recorded

    @abstractmethod
    def step(self) -> bool:
        """Splits some nodes and bounds their parts; False when nothing is left to split."""

    @property
    @abstractmethod
    def incomplete(self) -> Reason | None:
        """Why the whole search must stop when nothing is left to split; None when only this tree must."""

    @property
    def done(self) -> bool:
        """Whether no node is open: the goal is proven."""
        return len(self.open) == 0

    @property
    def lower(self) -> float:
        """No violation is closer than this."""
        return self.goal if self.done else min(self.goal, float(self.open.radius.min()))

    def relax_goal(self, goal: float) -> None:
        """A smaller goal: nodes that reach it are closed."""
        self.goal = min(self.goal, goal)
        self.open = self.open.pick((self.open.radius < self.goal).nonzero()[:, 0])

    @property
    def held(self) -> int:
        """Bytes that the open nodes occupy."""
        return 0 if self.done else len(self.open) * sum(t[0].nbytes for t in vars(self.open).values())
