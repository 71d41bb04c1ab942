"""The ladder on made-up costs: it stays within its limits, reaches what is cheap and comes near what is not."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from radii.engine.ladder import Ladder


def climb(cost: Callable[[float], float], lower: float, top: float) -> float:
    """What is proven when every goal costs what `cost` says and the whole budget is 1."""
    ladder, spent = Ladder.above(lower), 0.0
    for _ in range(1000):
        if lower >= top or spent >= 1.0:
            return lower
        goal, share = ladder.next_goal(lower, top, 1.0 - spent)
        assert lower < goal <= top
        assert 0.0 < share <= 1.0 - spent
        needed = cost(goal)
        spent += min(needed, share) + 1e-6
        ladder.tell(goal, needed <= share, min(needed, share), share)
        lower = goal if needed <= share else lower
    raise AssertionError("a thousand goals and no end")


@settings(max_examples=300)
@given(st.floats(0.001, 0.05), st.floats(6.0, 40.0), st.floats(1.0, 1.1))
def test_it_comes_near_what_the_whole_budget_could_prove(first: float, power: float, bend: float) -> None:
    def cost(goal: float) -> float:
        return first * math.exp(min(power * bend ** (10 * (goal - 1.0)) * math.log(goal), 100.0))

    best = max(k / 1000 for k in range(1000, 4000) if cost(k / 1000) <= 1.0)
    found = climb(cost, 1.0, 10.0)
    # All of it in one goal cannot be had without knowing the cost; a good part of it can.
    assert found >= max(k / 1000 for k in range(1000, 4000) if cost(k / 1000) <= 0.07)
    assert found <= best + 1e-3


@given(st.floats(1.01, 3.0), st.floats(0.0, 0.02))
def test_a_top_that_is_cheap_is_reached(top: float, price: float) -> None:
    assert climb(lambda _: price, 1.0, top) == top


def test_a_cheap_goal_below_one_that_failed_says_nothing_about_those_beyond() -> None:
    ladder = Ladder()
    ladder.tell(1.0, True, 0.02, 0.1)
    ladder.tell(1.1, True, 0.06, 0.1)
    ladder.tell(1.3, False, 0.3, 0.3)
    ladder.tell(1.2, True, 0.001, 0.1)  # bounds of the ball of 1.3 were known
    assert ladder.cost(1.2) > 0.06
    assert ladder.next_goal(1.2, 5.0, 0.6)[0] < 1.4


def test_a_goal_that_failed_just_above_a_proven_one_gets_what_is_left() -> None:
    ladder = Ladder([(1.0, 0.1)], failed=(1.003, 0.2))
    assert ladder.next_goal(1.0, 1.5, 0.7) == (1.003, 0.7)


def test_where_trees_of_the_margins_alone_prove_goals_costs_are_taken_to_grow_faster() -> None:
    steps = [(1.0, 0.02), (1.1, 0.05)]
    usual, plain = Ladder(list(steps)), Ladder(list(steps), plain=True)
    assert plain.growth == plain.rule.plain_growth > usual.growth
    assert usual.next_goal(1.1, 5.0, 0.9)[0] > plain.next_goal(1.1, 5.0, 0.9)[0] > 1.1
