"""Region: the least value of a linear function on a ball ∩ domain, its root in ε and its minimiser."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from tests.bounds.balls import DOMAINS, NORMS, points, region

from radii.problem import Domain, Norm
from radii.testing import linear_radius

cases = st.tuples(
    st.integers(0, 10**6), st.integers(1, 9), st.sampled_from(NORMS), st.sampled_from(DOMAINS), st.floats(1e-3, 3.0)
)


def draw(seed: int, d: int, rows: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """An input of [0, 1] (some coordinates on its border) and rows with zeros, ties and very different sizes."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.uniform(-0.2, 1.2, d), 0.0, 1.0)
    a = rng.normal(size=(rows, d)) * 10.0 ** rng.integers(-6, 7, (rows, d))
    a[rng.random((rows, d)) < 0.2] = 0.0
    a[-1] = np.sign(a[-1])
    return x, a


def least_by_program(a: np.ndarray, x: np.ndarray, epsilon: float, norm: str, domain: tuple | None) -> float:
    """min a·δ over the ball ∩ domain, by a linear program on δ = p − q."""
    space = Domain.of(domain)
    up, down = np.minimum(space.high - x, epsilon), np.minimum(x - space.low, epsilon)
    bounds = [(0, u) for u in up] + [(0, v) for v in down]
    total = {"A_ub": np.ones((1, 2 * len(a))), "b_ub": [epsilon]} if norm == "l1" else {}
    scale = max(1e-30, float(np.abs(a).max()))
    found = linprog(np.concatenate([a, -a]) / scale, bounds=bounds, method="highs", **total)
    return float(found.fun) * scale


@given(cases)
@settings(max_examples=60)
def test_support_is_the_least_value(case):
    seed, d, norm, domain, epsilon = case
    x, a = draw(seed, d)
    ball = region(x, epsilon, norm, domain)
    rows = torch.from_numpy(a)[None]
    size = torch.full((1, len(a)), epsilon, dtype=torch.float64)
    support = ball.support(rows, size)[0][0].numpy()
    at = ball.minimiser(rows)[0].numpy()
    for row, value, point in zip(a, support, at):
        scale = float(np.abs(row).sum()) * epsilon + 1e-30
        # The minimiser lies in the set, so the least value is below what it attains; support is below both, and close.
        assert Norm.of(norm).size(point - x) <= epsilon * (1 + 1e-9)
        assert domain is None or Domain(-1e-9, 1 + 1e-9).contains(point)
        assert value <= row @ (point - x) + 1e-12 * scale
        assert value >= row @ (point - x) - 1e-7 * scale
        assert np.all(value <= (points(x, epsilon, norm, domain, seed=seed) - x) @ row + 1e-15 * scale)
        if norm != "l2":
            assert value == pytest.approx(least_by_program(row, x, epsilon, norm, domain), abs=1e-6 * scale)


@given(cases, st.floats(-0.5, 2.0))
@settings(max_examples=60)
def test_root_is_the_closed_form_radius_from_below(case, part):
    # At 1 the margin is exactly what a ball that fills the domain can take: the last bit says whether a root exists.
    assume(abs(part - 1.0) > 1e-6)
    seed, d, norm, domain, epsilon = case
    x, a = draw(seed, d)
    ball = region(x, epsilon, norm, domain)
    rows = torch.from_numpy(a)[None]
    least = ball.support(rows, torch.full((1, len(a)), epsilon, dtype=torch.float64))[0][0].numpy()
    constant = -a @ x - part * least  # so that the margin at the centre is `part` of what the ball can take away
    root = ball.root(rows, torch.from_numpy(constant)[None])[0].numpy()
    for row, c, found, taken in zip(a, constant, root, least):
        exact = linear_radius(row, c, x, norm, domain)
        noise = 1e-12 * (np.abs(row) @ np.abs(x) + abs(c)) / max(float(np.abs(row).max()), 1e-300)
        assert found <= min(exact, epsilon) * (1 + 1e-9) + noise
        # Where the domain leaves no room, all that the ball takes away, and so the margin, is rounding.
        room = -taken > 1e-12 * epsilon * np.abs(row).max()
        if part > 0 and room and row @ x + c > 1e-9 * (np.abs(row) @ np.abs(x) + abs(c)):
            assert found >= min(exact, epsilon) * (1 - 1e-4) - noise * 10


@pytest.mark.parametrize("norm", NORMS)
def test_rows_of_zeros_and_balls_of_no_size(norm):
    ball = region([0.2, 0.9], 0.0, norm, (0.0, 1.0))
    rows = torch.tensor([[[0.0, 0.0], [1.0, -1.0]]], dtype=torch.float64)
    constants = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert ball.lowest(rows, constants)[0].tolist() == pytest.approx([1.0, -0.7])
    wide = region([0.2, 0.9], 5.0, norm, (0.0, 1.0))
    # Without coefficients nothing changes the sign: the certified radius is all that was asked.
    assert wide.root(rows, constants)[0, 0] == pytest.approx(5.0)
    assert wide.root(rows, constants)[0, 1] == 0.0


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_coefficients_that_are_no_numbers_certify_nothing(norm, bad):
    ball = region([0.2, 0.9], 0.1, norm, (0.0, 1.0))
    rows = torch.tensor([[[bad, 1.0]]], dtype=torch.float64)
    assert ball.root(rows, torch.tensor([[5.0]], dtype=torch.float64))[0, 0] == 0.0
    assert not ball.lowest(rows, torch.tensor([[5.0]], dtype=torch.float64))[0, 0] > 0
    nan = torch.tensor([[float("nan")]], dtype=torch.float64)
    assert ball.root(torch.ones((1, 1, 2), dtype=torch.float64), nan)[0, 0] == 0.0


@given(st.integers(0, 10**6), st.sampled_from(NORMS))
@settings(max_examples=30)
def test_another_precision_never_shrinks_the_ball(seed, norm):
    x, _ = draw(seed, 6)
    ball = region(x, 0.1, norm, (0.0, 1.0)).shifted()
    single = ball.to(torch.float32)
    assert bool((single.down.double() >= ball.down).all())
    assert bool((single.up.double() >= ball.up).all())
    assert float(single.epsilon) >= float(ball.epsilon)
