"""The closed forms of the attacks against linear programs and brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.attacks.exact import pull_in
from radii.attacks.geometry import Room, descend_to, into_ball, lowest_in_ball, sizes
from radii.problem import L1, L2, LINF, Domain, Norm
from radii.testing.toys import linear_radius

NORMS = (LINF, L2, L1)
SEEDS = st.integers(0, 10_000)


def _case(seed: int, size: int = 9) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    center = np.where(rng.random(size) < 0.3, rng.integers(0, 2, size), rng.random(size))
    grad = rng.normal(size=size) * (rng.random(size) < 0.8)
    need = rng.exponential() * 0.5
    as_row = lambda a: torch.tensor(np.atleast_2d(a), dtype=torch.float64)  # noqa: E731
    return as_row(center), as_row(grad), torch.tensor([need], dtype=torch.float64)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(seed=SEEDS)
@settings(max_examples=60)
def test_least_step_to_a_half_space_is_exact(norm: Norm, seed: int) -> None:
    center, grad, need = _case(seed)
    room = Room(center, 0.0, 1.0)
    delta = descend_to(norm, grad, need, room)
    constant = float(need - (grad * center).sum())
    exact = linear_radius(grad.numpy(), constant, center.numpy(), norm)
    assert room.clamp(center + delta).allclose(center + delta, atol=1e-12)
    if np.isfinite(exact):
        assert float(sizes(norm, delta)) == pytest.approx(exact, rel=1e-5, abs=1e-9)
        assert float((grad * delta).sum()) == pytest.approx(-float(need), rel=1e-5, abs=1e-9)
    else:
        assert float((grad * delta).sum()) > -float(need)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(seed=SEEDS)
@settings(max_examples=60)
def test_lowest_in_ball_is_the_inverse_of_the_least_step(norm: Norm, seed: int) -> None:
    center, grad, need = _case(seed)
    room = Room(center, 0.0, 1.0)
    step = descend_to(norm, grad, need, room)
    radius = sizes(norm, step)
    best = lowest_in_ball(norm, grad, radius, room)
    assert float(sizes(norm, best)) <= float(radius) * (1 + 1e-9) + 1e-12
    assert float((grad * best).sum()) == pytest.approx(float((grad * step).sum()), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(seed=SEEDS, radius=st.floats(0.0, 3.0))
@settings(max_examples=60)
def test_into_ball_stays_inside_and_keeps_what_is_inside(norm: Norm, seed: int, radius: float) -> None:
    center, move, _ = _case(seed)
    room, limit = Room(center, 0.0, 1.0), torch.tensor([radius], dtype=torch.float64)
    moved = into_ball(norm, move, limit, room)
    assert float(sizes(norm, moved)) <= radius * (1 + 1e-6) + 1e-9
    assert bool(((center + moved >= -1e-12) & (center + moved <= 1 + 1e-12)).all())
    assert into_ball(norm, moved, limit * (1 + 1e-5) + 1e-9, room).allclose(moved, atol=1e-9)


def test_unbounded_room() -> None:
    center, grad, need = _case(1)
    room = Room(center, -np.inf, np.inf)
    for norm in NORMS:
        delta = descend_to(norm, grad, need, room)
        assert float(sizes(norm, delta)) == pytest.approx(float(need) / norm.dual.size(grad.numpy()), rel=1e-5)


@pytest.mark.parametrize("norm", NORMS, ids=str)
@given(seed=SEEDS, epsilon=st.floats(0.0, 0.7))
@settings(max_examples=60)
def test_pull_in_holds_to_the_last_digit(norm: Norm, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    center = rng.random((1, 12)).astype(np.float32)
    far = rng.normal(size=center.shape)
    scale = epsilon / max(norm.size(far), 1e-9)
    point = (center + far * scale).astype(np.float32)
    domain = Domain(0.1, 0.7)
    center = np.clip(center, np.float32(0.11), np.float32(0.69))
    moved = pull_in(norm, np.clip(point, center - 0.7, center + 0.7), center, np.array([epsilon + 1.0]), domain)
    assert domain.contains(moved)
    free = pull_in(norm, (center + far * scale).astype(np.float32), center, np.array([epsilon]), Domain.of(None))
    assert norm.distance(free, center) <= epsilon


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(seed=SEEDS, epsilon=st.floats(1e-9, 0.7))
@settings(max_examples=60)
def test_pulled_in_points_near_zero_are_inside(dtype: type, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    # Ends of the ball next to 0: there the last digits of a point are far finer than those of its centre.
    signs = rng.choice([-1.0, 1.0], (1, 40))
    center = (signs * epsilon * (1 + rng.choice([0.0, 1e-12, 1e-8, 1e-4], (1, 40)))).astype(dtype)
    point = (center - signs * np.float32(epsilon) * (1 + 1e-6)).astype(dtype)
    moved = pull_in(LINF, point, center, np.array([epsilon]), Domain.of(None))
    assert LINF.distance(moved, center) <= epsilon
    assert np.abs(moved.astype(float) - point).max() <= 1e-5 * epsilon + 2 * np.finfo(dtype).eps * epsilon


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_domain_ends_lie_inside(dtype: type) -> None:
    for low, high in ((0.0, 1.0), (0.1, 0.7), (-1 / 3, 2 / 3), (-np.inf, np.inf)):
        a, b = Domain(low, high).ends(np.dtype(dtype))
        assert low <= a < b <= high
        assert dtype(a) == a
        assert dtype(b) == b
