"""Goals: which radius to try next, from what earlier ones cost; a generator that is sent the outcome of each.

The first goal is the final one, tried briefly. If it does not close, goals that root bounds prove are found by
bisection, and from there a ladder goes up: what trees cost grows about exponentially with the goal, so the next goal is
the one whose predicted cost fits the budget that is left. In deep networks a frontier may tell a better one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from radii.engine.frontier import Frontier
from radii.engine.ladder import Ladder
from radii.engine.state import RadiusState
from radii.engine.tuning import Tuning


@dataclass(frozen=True)
class Goal:
    """A radius to try, and what it may cost."""

    radius: float
    share: float  # of the budget
    tree_nodes: int | None = None  # of the tree of the margins; None: as many as the share allows
    nodes: float = 0.0  # per neuron, in networks that are not deep
    deep_nodes: float = 0.0  # per neuron, in the first pass over a deep network


@dataclass(frozen=True)
class Outcome:
    """What came of a goal."""

    proven: bool
    deep_nodes: float = 0.0  # per neuron, in the last pass over a deep network that was begun; 0: there was none
    settled: tuple[int, int] = (0, 0)  # how many layers that pass settled, and of how many
    bottleneck: bool = False  # whether the network has a bottleneck: the frontier says nothing of such networks
    plain: bool = False  # whether hidden layers are left alone: most of their neurons really take both signs


Goals = Generator[Goal, Outcome, None]


def choose_goals(state: RadiusState) -> Goals:
    """The goals of a search, until the radius is closed or the search has stopped."""
    tuning = state.tuning
    rule, nodes = tuning.goals, (tuning.settling.first_nodes, tuning.frontier.first)
    outcome = yield Goal(state.goal(), rule.first_share, None, *nodes)
    if outcome.proven:
        return
    failed, until, tries = state.goal(), state.meter.share + rule.root_share, 0
    while state.stopped is None and failed - state.lower > rule.root_gap * failed:
        if tries >= rule.root_tries and state.meter.share >= until:
            break
        middle, tries = 0.5 * (state.lower + failed), tries + 1
        outcome = yield Goal(middle, rule.root_share, rule.root_nodes, *nodes)
        failed = min(failed if outcome.proven else middle, state.goal())
    yield from climb(state, Frontier(tuning.frontier), outcome.bottleneck, outcome.plain)


def climb(state: RadiusState, frontier: Frontier, bottleneck: bool = False, plain: bool = False) -> Goals:
    """Goals of growing cost, each predicted from the ones before."""
    tuning: Tuning = state.tuning
    ladder = Ladder.above(state.lower, tuning.ladder)
    ladder.plain = plain
    nodes, deep_nodes = tuning.settling.first_nodes, tuning.frontier.first
    while not state.finished and state.stopped is None:
        before = state.meter.share
        radius, share = ladder.next_goal(state.lower, state.goal(), 1.0 - before)
        leap = None if bottleneck else frontier.leap(state.lower, state.goal(), 1.0 - before)
        if leap is not None:
            radius, share = leap[0], 1.0 - before
        outcome = yield Goal(radius, share, None, nodes, deep_nodes if leap is None else leap[1])
        cost, bottleneck, ladder.plain = state.meter.share - before, outcome.bottleneck, outcome.plain
        ladder.tell(radius, outcome.proven, cost, share)
        if outcome.settled[0] and not bottleneck:
            frontier.tell(radius, outcome.proven, outcome.deep_nodes, cost, outcome.settled, state.lower)
        elif leap is not None and not outcome.proven:
            # No layer was settled: the frontier learnt nothing and would propose the same goal again.
            frontier = Frontier(tuning.frontier)
        if outcome.proven:
            deep_nodes = max(deep_nodes, outcome.deep_nodes)
            nodes = min(nodes * tuning.settling.growth, tuning.settling.most_nodes)
