"""The value of a game against exact joint radii and an independent program; the paper's own example."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ensembles.toys import between, exact_joint_radii, exact_value, random_game, two_lines

import radii
from radii.ensembles import matrix
from radii.errors import RadiiError
from radii.problem import Norm


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


@pytest.mark.parametrize(("seed", "norm"), [(0, "linf"), (1, "l2"), (2, "l1")])
def test_value_contains_the_exact_one(seed: int, norm: str) -> None:
    members, data = random_game(seed)
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


def test_value_by_brute_force_over_perturbations() -> None:
    """On a grid of perturbations of two inputs all subsets that are fooled are read off, and the game is solved alone.

    The grid's sets are fooled in truth, so its value is at most the true one; and no proof may exclude what it finds.
    """
    members, data = random_game(5)
    size = 0.25
    game = radii.ensemble(members, data, epsilons=size, seconds=5, tolerance=1e-4)
    line = np.linspace(-size, size, 121)
    moves = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    seen: list[dict[int, float]] = []
    for one in data:
        x = np.clip(one.x + moves, 0.0, 1.0).astype(np.float32)
        fooled = np.stack([np.delete(o := m.reference(x), one.label, 1).max(1) >= o[:, one.label] for m in members], 1)
        masks = np.unique(fooled @ (1 << np.arange(len(members))))
        parts = {m for mask in masks.tolist() for m in range(1, 1 << len(members)) if not m & ~mask}
        seen.append(dict.fromkeys(parts, 0.0))
    brute = exact_value(seen, len(members), size)
    low, high = game.value(size)
    assert brute <= high + 1e-9
    assert low >= brute - 1e-9  # the attack is at least as good as the grid
    assert high - low < 1e-9


def test_programs_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Duality is tested in every program: a solver whose two sides differ is not believed."""
    sets = [np.array([1, 2]), np.array([2])]
    assert matrix.solve(sets, 2).low == pytest.approx(matrix.solve(sets, 2).high)
    whole = matrix.gains
    monkeypatch.setattr(matrix, "gains", lambda sets, mix: whole(sets, mix) + 1e-5)
    with pytest.raises(RadiiError, match="to agree"):
        matrix.solve(sets, 2)
