"""Grids hold the values a user meant, in order, and refuse what cannot be one."""

from __future__ import annotations

import pytest

from radii.errors import InputError
from radii.search import Grid


def test_the_papers_grid() -> None:
    grid = Grid.steps(0.001, 0.4, 0.002)
    assert len(grid) == 200
    assert grid[0] == 0.001
    assert grid[1] == 0.003  # not 0.001 + 0.002 in floats, which is 0.003 only by luck elsewhere on the grid
    assert grid[-1] == 0.399
    assert all(float(f"{e:.3f}") == e for e in grid)


def test_stop_is_included_when_it_is_on_the_grid() -> None:
    assert Grid.steps(0.1, 0.3, 0.1).epsilons == (0.1, 0.2, 0.3)


def test_fractions_and_pixels() -> None:
    assert Grid.values(["8/255", 0, "2/255"]).epsilons == (0.0, 2 / 255, 8 / 255)
    assert Grid.pixels(3).epsilons == (1 / 255, 2 / 255, 3 / 255)
    assert Grid.steps("1/255", "3/255", "1/255") == Grid.pixels(3)
    assert Grid.of({"pixels": 4, "first": 2}).epsilons == (2 / 255, 3 / 255, 4 / 255)


def test_step_at() -> None:
    grid = Grid.values([0.1, 0.2, 0.5])
    assert grid.step_at(1) == pytest.approx(0.3)
    assert grid.step_at(2) == 0.0


def test_identity_tells_grids_apart() -> None:
    a, b = Grid.values([0.1, 0.2, 0.5]), Grid.values([0.1, 0.3, 0.5])
    assert a.identity != b.identity
    assert a.identity == Grid.of([0.5, 0.1, 0.2]).identity


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "at least one"),
        ([0.1, 0.1], "twice"),
        ([-0.1], "at least 0"),
        ([float("nan")], "got nan"),
        ({"start": 0, "stop": 1, "step": 0}, "above 0"),
        ({"start": 1, "stop": 0, "step": 0.1}, "start ≤ stop"),
        ({"start": 0, "stop": 1, "step": 1e-9}, "larger step"),
        ({"start": 0, "stop": 1, "steps": 0.1}, "did you mean 'step'"),
        ({"start": 0, "stop": 1}, "start, stop and step"),
        ({"pixels": 300}, "at most 255"),
        ("0.1", "expected"),
    ],
)
def test_bad_grids_are_refused(value: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Grid.of(value)
