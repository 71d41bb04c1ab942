"""Prover: what is done for one goal, whatever the trees split.

A goal of many (`attempt`) has a share of the budget and is left when that is used; the only goal (`decide`) has all of
it. Both start again on the smaller ball when a nearer witness is met: bounds are much tighter there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from radii.bounds.float32 import Bounded
from radii.bounds.intermediate import Root
from radii.bounds.intermediate_curves import Relaxed
from radii.engine.goals import Goal, Outcome
from radii.engine.search_tree import SearchTree
from radii.engine.state import RadiusState
from radii.problem import Reason


class End(Enum):
    """How a pass over the hidden layers ended."""

    PROVEN = "the goal is proven"
    LEFT = "no time, or a nearer witness"
    HOPELESS = "hardly any sign of a layer could be proven"
    AGAIN = "a bottleneck was met: the next pass has more nodes for it"
    SETTLED = "all layers are settled and the goal is open"


@dataclass(frozen=True)
class Limits:
    """When a goal is left."""

    until: float = math.inf  # the used share of the budget
    when_full: Reason | None = Reason.MEMORY  # why the whole search stops when open nodes do not fit; None: it does not


class Prover(ABC):
    """Tries goals of one search; what it proves, it tells the state."""

    def __init__(self, state: RadiusState) -> None:
        self.state = state

    def attempt(self, goal: Goal) -> Outcome:
        """What comes of one goal of many, within its share of the budget."""
        limits = Limits(self.state.meter.share + goal.share, when_full=None)
        return Outcome(self._follow(goal.radius, lambda radius: self._attempt(radius, goal, limits)))

    def decide(self, radius: float) -> bool:
        """Whether the only goal is proven, with all of the budget."""
        return self._follow(radius, self._decide)

    @abstractmethod
    def bounded(self, radius: float) -> Bounded:
        """The bounds of the ball of a radius, which its tree then starts from."""

    @abstractmethod
    def in_one_pass(self, radius: float, go_on: Callable[[], bool]) -> Root | Relaxed:
        """The bounds of a ball without any tree, from what is known of larger ones; once `go_on` says no, intervals."""

    @abstractmethod
    def _attempt(self, radius: float, goal: Goal, limits: Limits) -> bool:
        """Whether this radius, the goal's or that of a nearer witness, is proven within the limits."""

    @abstractmethod
    def _decide(self, radius: float) -> bool:
        """Whether this radius is proven with all of the budget."""

    def _follow(self, radius: float, prove: Callable[[float], bool]) -> bool:
        """Whether a radius is proven, or the one that a nearer witness leaves to be proven."""
        state = self.state
        if state.over():
            return False
        while not prove(radius):
            state.stopped = state.stopped or state.meter.over
            if state.stopped is not None or not state.shrank(radius):
                return False
            radius = state.goal()
        return True

    def _leave(self, radius: float, limits: Limits) -> bool:
        """Whether to leave a goal: no time for it, or a witness nearer than it."""
        state = self.state
        return state.stopped is not None or state.shrank(radius) or not state.within(limits.until)

    def _work(self, tree: SearchTree[Any], limits: Limits, nodes: float | None = None) -> bool:
        """Runs a tree until it is done or has reached a limit; learns from it what can be learnt."""
        state, memory, size = self.state, self.state.tuning.memory, tree.goal
        while True:
            state.learn(tree)
            if tree.done:
                return True
            if state.over() or state.meter.share >= limits.until or (nodes is not None and tree.visited > nodes):
                return False
            if tree.goal < state.tuning.goals.rebuild * size:
                return False
            held = tree.held
            if held > memory.always_held and held > min(memory.most_held, memory.held_rooms * state.meter.room):
                state.stopped = limits.when_full
                return False
            before = tree.visited
            moved = tree.step()
            state.meter.nodes += tree.visited - before
            if not state.strike(tree) and not moved:
                state.stopped = tree.incomplete
                return False
