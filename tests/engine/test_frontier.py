"""The frontier on a made-up engine: it goes no farther than there is time for, and gains on small steps."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.engine.frontier import Frontier
from radii.engine.ladder import Ladder
from radii.engine.tuning import DEFAULT

LAYERS = 7
RULE = DEFAULT.frontier
FIRST = RULE.first
Attempt = Callable[[float, float], tuple[bool, float, int]]


def engine(gain: float, cost: float, power: float) -> Attempt:
    """Passes whose frontier is 1 with the first nodes: whether a goal is proven, its cost, the layers it takes."""
    known = [math.inf, 0.0]  # a ball that all layers were settled for, and the frontier then

    def attempt(goal: float, nodes: float) -> tuple[bool, float, int]:
        times = nodes / FIRST
        frontier = times**gain
        if goal <= min(known[0], known[1]):
            return True, 0.03, 0  # by bounds of the larger ball
        part = goal / frontier
        layers = min(LAYERS, max(1, math.ceil(LAYERS * (1.0 - 4.0 * (1.0 - part)))))
        if part > 1.0:
            known[:] = goal, max(known[1], 0.98 * frontier)
        return part <= 1.0, cost * times**power * (layers / LAYERS) ** 1.4, layers

    return attempt


def climb(attempt: Attempt, leaps: bool) -> float:
    """What is proven with a budget of 1, from 0.6 on."""
    lower, spent = 0.6, 0.0
    ladder, frontier = Ladder.above(lower), Frontier()
    while spent < 1.0:
        left = 1.0 - spent
        goal, share = ladder.next_goal(lower, 3.0, left)
        nodes = frontier.nodes
        leap = frontier.leap(lower, 3.0, left) if leaps else None
        if leap is not None:
            (goal, nodes), share = leap, left
            assert lower < goal <= 3.0
            assert FIRST <= nodes <= RULE.farthest * frontier.nodes * (1 + 1e-9)
        proven, cost, layers = attempt(goal, nodes)
        proven, cost = proven and cost <= share, min(cost, share)
        spent += cost + 1e-4
        ladder.tell(goal, proven, cost, share)
        lower = goal if proven else lower
        if layers:
            frontier.tell(goal, proven, nodes, cost, (layers, LAYERS), lower)
    return lower


@settings(max_examples=300)
@given(st.floats(0.01, 0.1), st.floats(0.02, 0.3), st.floats(0.5, 1.2))
def test_it_ends_and_leaps_prove_what_small_steps_nearly_would(gain: float, cost: float, power: float) -> None:
    assert climb(engine(gain, cost, power), leaps=True) >= 0.9 * climb(engine(gain, cost, power), leaps=False)


@pytest.mark.parametrize("gain", [0.035, 0.042, 0.05])
@pytest.mark.parametrize("power", [0.7, 0.8, 0.9])
def test_leaps_come_near_what_half_of_the_budget_could_prove(gain: float, power: float) -> None:
    # 0.1 and 7 layers are about what networks of the benchmark show.
    assert climb(engine(gain, 0.1, power), leaps=True) >= 0.95 * (0.5 / 0.1) ** (gain / power)
    assert climb(engine(gain, 0.1, power), leaps=False) <= 1.0


def test_nothing_is_known_before_a_pass_comes_near() -> None:
    frontier = Frontier()
    assert frontier.leap(1.0, 2.0, 1.0) is None
    frontier.tell(1.0, True, FIRST, 0.01, (2, LAYERS), 1.0)
    assert frontier.leap(1.0, 2.0, 1.0) is None
    frontier.tell(1.1, True, FIRST, 0.05, (LAYERS, LAYERS), 1.1)
    goal, nodes = frontier.leap(1.1, 2.0, 1.0) or (0.0, 0.0)
    assert goal > 1.1
    assert nodes > FIRST


def test_there_is_no_leap_once_the_budget_is_used_up() -> None:
    frontier = Frontier()
    frontier.tell(1.1, True, FIRST, 0.05, (LAYERS, LAYERS), 1.1)
    assert frontier.leap(1.1, 2.0, -0.001) is None


def test_a_pass_that_fails_tells_where_the_frontier_is() -> None:
    frontier = Frontier()
    frontier.tell(1.0, True, FIRST, 0.05, (2, LAYERS), 1.0)
    frontier.tell(1.1, False, FIRST, 0.1, (LAYERS, LAYERS), 1.0)
    goal, nodes = frontier.leap(1.0, 2.0, 0.8) or (0.0, 0.0)
    assert goal > 1.05
    assert nodes > FIRST


def missed(layers: int) -> tuple[Frontier, float, float]:
    """A frontier whose first leap failed after so many layers, and that leap."""
    frontier = Frontier()
    frontier.tell(1.0, True, FIRST, 0.05, (LAYERS, LAYERS), 1.0)
    far, many = frontier.leap(1.0, 2.0, 0.9) or (0.0, 0.0)
    frontier.tell(far, False, many, 0.2, (layers, LAYERS), 1.0)
    return frontier, far, many


def test_after_a_leap_that_ended_too_far_goals_below_it_are_tried_with_few_nodes() -> None:
    frontier, far, many = missed(LAYERS)
    assert frontier.leap(1.0, 2.0, 0.7) == (0.5 * (1.0 + far), FIRST)
    # Proven by bounds of the larger ball, up to just below it: the next leap goes beyond, with more nodes.
    goal, nodes = frontier.leap(0.995 * far, 2.0, 0.7) or (0.0, 0.0)
    assert goal > far
    assert nodes > many


def test_after_a_leap_that_did_not_end_the_next_is_shorter_and_cheaper() -> None:
    frontier, far, many = missed(3)
    near, fewer = frontier.leap(1.0, 2.0, 0.7) or (0.0, 0.0)
    assert 1.0 < near < far
    assert FIRST < fewer < many


def test_too_little_time_is_no_leap() -> None:
    frontier = Frontier()
    frontier.tell(1.0, True, FIRST, 0.5, (LAYERS, LAYERS), 1.0)
    assert frontier.leap(1.0, 2.0, 0.5) is None


def test_the_top_is_the_last_goal() -> None:
    frontier = Frontier()
    frontier.tell(1.0, True, FIRST, 0.01, (LAYERS, LAYERS), 1.0)
    assert (frontier.leap(1.0, 1.02, 0.9) or (0.0, 0.0))[0] == 1.02


def test_a_pass_that_the_clock_did_not_see_is_cheap_and_no_error() -> None:
    frontier = Frontier()
    frontier.tell(1.0, True, FIRST, 0.0, (LAYERS, LAYERS), 1.0)
    assert (frontier.leap(1.0, 2.0, 0.9) or (0.0, 0.0))[1] == pytest.approx(RULE.farthest * FIRST)


def test_from_many_nodes_a_leap_is_shorter_because_costs_grow_faster_there() -> None:
    few, many = (Frontier(nodes=n, reach=0.8, cost=0.15, near=True) for n in (RULE.many, 2 * RULE.many))
    short, long = many.leap(0.8, 3.0, 0.9), few.leap(0.8, 3.0, 0.9)
    assert short is not None
    assert long is not None
    assert short[0] < long[0]
    assert 0.15 * (short[1] / (2 * RULE.many)) ** RULE.power_many == pytest.approx(RULE.fills_many * 0.9)
