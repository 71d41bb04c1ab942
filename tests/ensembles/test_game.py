"""The value of a game against exact joint radii and an independent program; the paper's own example."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ensembles.toys import between, exact_joint_radii, exact_value, two_lines

import radii
from radii.models import Classifier
from radii.problem import Instance, Norm
from radii.testing import linear_toy, relu_toy


def test_two_lines_give_one_half() -> None:
    """Every single attack leaves one member right; a fair coin between two attacks fools each half of the time."""
    members, instance = two_lines()
    game = radii.ensemble(members, [instance], norm="l1", epsilons=2, seconds=5)
    assert game.value(2) == (0.5, 0.5)
    assert game.robust(2, 0.5) is False
    assert game.robust(2, 0.51) is True
    assert game.value(1) == (0.0, 0.0)
    attack = game.attack(2)
    assert len(attack.probabilities) == 2
    assert attack.probabilities == pytest.approx([0.5, 0.5])
    assert attack.value == pytest.approx(0.5)
    assert game.mix(2).weights == pytest.approx((0.5, 0.5))
    assert (game.mix(2).single, game.mix(2).uniform) == (1.0, 0.5)
    low, high = game.radius(0.5)
    assert high is not None
    assert low <= 1.5 <= high + 1e-6
    assert high - low < 0.01
    assert game.radius(0.6) == (2.0, None)


def members_of(seed: int) -> list[Classifier]:
    """Two to four members of two inputs and two or three classes, linear and ReLU in turns."""
    rng = np.random.default_rng(seed)
    count, classes = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    found = []
    for k in range(count):
        if (seed + k) % 2:
            found.append(linear_toy(100 * seed + k, 2, classes).classifier)
        else:
            found.append(relu_toy(100 * seed + k, (2, 4, classes)))
    return found


def data_of(members: list[Classifier], seed: int, count: int = 3) -> list[Instance]:
    """Inputs labelled by the majority: some members may be wrong on them from the start."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, 2)).astype(np.float32)
    votes = np.stack([one.predict(x) for one in members])
    return [Instance(x[k], int(np.bincount(votes[:, k]).argmax()), k) for k in range(count)]


@pytest.mark.parametrize(("seed", "norm"), [(0, "linf"), (1, "l2"), (2, "l1")])
def test_value_contains_the_exact_one(seed: int, norm: str) -> None:
    members = members_of(seed)
    data = data_of(members, seed)
    game = radii.ensemble(members, data, norm=norm, seconds=5, tolerance=1e-4)
    exact = [exact_joint_radii(members, one, Norm.of(norm)) for one in data]
    sizes = between([r for known in exact for r in known.values()])
    assert sizes
    for size in sizes:
        low, high = game.value(size)
        true = exact_value(exact, len(members), size)
        assert low <= true + 1e-9
        assert true <= high + 1e-9
        attack = game.attack(size)
        assert len(attack.probabilities) <= len(members)
        assert attack.value == pytest.approx(low, abs=1e-9)
        assert attack.distances.max() <= size
    widths = [np.subtract(*game.value(size)[::-1]) for size in sizes]
    assert np.mean(widths) < 0.05
