"""The attacker by multiplicative weights: near the value on toys, never above it, and every point of it replayed."""

from __future__ import annotations

import math

import pytest
from tests.ensembles.toys import between, exact_joint_radii, exact_value, random_game, two_lines

from radii.ensembles.members import fools
from radii.ensembles.multiplicative_weights import multiplicative_weights
from radii.errors import InputError
from radii.problem import Norm


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_two_lines_get_nearly_one_half(norm: str) -> None:
    """No input fools both members: with best answers the regret of 50 rounds is at most √(ln 2 / 100) < 0.084."""
    members, instance = two_lines()
    attack = multiplicative_weights(members, [instance], Norm.of(norm), 2)
    assert 0.5 - math.sqrt(math.log(2) / 100) <= attack.value <= 0.5
    assert len(attack.probabilities) == 2
    assert attack.probabilities.sum() == pytest.approx(1)
    assert multiplicative_weights(members, [instance], Norm.of(norm), 1).value == 0.0


@pytest.mark.parametrize(("seed", "norm"), [(1, "l1"), (2, "l2"), (3, "linf"), (4, "linf"), (5, "l1")])
def test_never_above_the_value_and_near_it_on_toys(seed: int, norm: str) -> None:
    members, data = random_game(seed)
    kind = Norm.of(norm)
    exact = [exact_joint_radii(members, one, kind) for one in data]
    sizes = between([r for known in exact for r in known.values()])
    size = sizes[len(sizes) // 2]
    attack = multiplicative_weights(members, data, kind, size)
    true = exact_value(exact, len(members), size)
    assert attack.value <= true + 1e-9
    assert attack.value >= true - math.sqrt(math.log(len(members)) / 100)  # the regret of 50 rounds
    for i, row in enumerate(attack.points):
        for j, (x, one) in enumerate(zip(row, data)):
            assert kind.distance(x, one.x) == attack.distances[i, j] <= size
            said = [bool(fools(m.reference(x.reshape(1, *m.input_shape))[0], one.label)) for m in members]
            assert said == attack.fooled[i, j].tolist()


def test_at_size_zero_only_members_that_are_wrong_lose() -> None:
    members, data = random_game(3)
    attack = multiplicative_weights(members, data, Norm.of("linf"), 0)
    assert attack.distances.max() == 0
    wrong = [[m.predict(one.x[None])[0] != one.label for m in members] for one in data]
    assert attack.fooled[0].tolist() == wrong


def test_rounds_without_time_play_what_is_known() -> None:
    members, instance = two_lines()
    attack = multiplicative_weights(members, [instance], Norm.of("l1"), 2, seconds=0)
    assert attack.value == 0.0
    assert attack.points.tolist() == [[[0.0, 0.0]]]


def test_rounds_must_be_some() -> None:
    members, instance = two_lines()
    with pytest.raises(InputError, match="rounds: expected"):
        multiplicative_weights(members, [instance], Norm.of("l1"), 2, rounds=0)
