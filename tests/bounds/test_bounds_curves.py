"""Lines under and over tanh, products, squares and ReLU: held against arithmetic with 60 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from radii.bounds.activations import TANH, ProductCurve, ReluCurve, SquareCurve, TanhCurve
from radii.bounds.interval import through
from radii.models.graph import Node
from radii.models.operators import Product, Tanh

CURVES = {
    "relu": (ReluCurve(), lambda z: max(z, 0)),
    "tanh": (TanhCurve(), mpmath.tanh),
    "square": (SquareCurve(), lambda z: z * z),
    "product": (ProductCurve(), lambda x, y: x * y),
}
SIZES = (1e-12, 1e-6, 1e-2, 0.3, 1.0, 3.0, 9.0, 19.0, 40.0)


def exact(value):
    return mpmath.mpf(float(value))


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 17, 64])
def test_tanh_is_as_good_as_what_is_charged_for_it(count):
    """Vectors of every length: torch computes the whole of them and their rests by different code."""
    rng = np.random.default_rng(count)
    for size in SIZES:
        z = torch.from_numpy(rng.normal(size=count) * size)
        with mpmath.workdps(60):
            for value, found in zip(z, torch.tanh(z)):
                true = mpmath.tanh(exact(value))
                assert abs(exact(found) - true) <= TANH / 4 * abs(true)  # a quarter: the charge has room to spare


@st.composite
def boxes(draw, operands: int):
    """The ends of some operands, of very different sizes and widths."""
    ends = []
    for _ in range(operands):
        size = draw(st.sampled_from(SIZES))
        low = size * draw(st.floats(-1, 1))
        ends.append(
            (low, low + draw(st.sampled_from((0.0, 1e-14, 1e-8, 1e-3, 0.5, 3.0, 30.0))) * draw(st.floats(0, 1)))
        )
    return ends


@pytest.mark.parametrize("kind", CURVES)
@given(data=st.data())
@settings(max_examples=150)
def test_lines_are_on_their_side_of_the_curve(kind, data):
    curve, function = CURVES[kind]
    operands = 2 if kind == "product" else 1
    ends = data.draw(boxes(operands))
    tensors = tuple((one(low), one(high)) for low, high in ends)
    free = tuple(one(data.draw(st.floats(-3, 3))) for _ in range(operands))
    shares = data.draw(st.lists(st.floats(0, 1), max_size=4))
    inside = [
        [low, high, 0.0 if low < 0 < high else low, *(low + (high - low) * s for s in shares)] for low, high in ends
    ]
    for side in ("under", "over"):
        choice = getattr(curve, side)(tensors)
        for slopes in (choice.start, choice.least, choice.most, free):
            offset = exact((curve.floor if side == "under" else curve.ceiling)(tensors, slopes))
            with mpmath.workdps(60):
                for point in _products(inside, slopes, kind):
                    value = function(*point) - sum((exact(s) * p for s, p in zip(slopes, point)), exact(0))
                    assert value >= offset if side == "under" else value <= offset, (ends, slopes, point)


def _products(inside, slopes, kind):
    """Points of the box: the drawn ones, and where a tanh or a square is as steep as the line."""
    first = [min(max(p, inside[0][0]), inside[0][1]) for p in inside[0]]
    if kind in ("tanh", "square"):
        slope = float(slopes[0])
        at = slope / 2 if kind == "square" else float(np.arctanh(np.sqrt(min(max(1 - slope, 0.0), 1 - 1e-15))))
        first += [min(max(p, inside[0][0]), inside[0][1]) for p in (at, -at)]
    if len(inside) == 1:
        return [(exact(p),) for p in first]
    second = [min(max(p, inside[1][0]), inside[1][1]) for p in inside[1]]
    return [(exact(p), exact(q)) for p in first for q in second]


@pytest.mark.parametrize("kind", CURVES)
def test_lines_touch_the_curve(kind):
    """Nothing is given away: somewhere in the box the curve is as near to the line as rounding allows."""
    curve, _ = CURVES[kind]
    function = {"relu": torch.relu, "tanh": torch.tanh, "square": torch.square, "product": torch.mul}[kind]
    rng = np.random.default_rng(0)
    for _ in range(200):
        lows = rng.normal(size=2) * 2
        highs = lows + rng.uniform(size=2) * 4
        ends = tuple((one(a), one(b)) for a, b in zip(lows, highs))[: 2 if kind == "product" else 1]
        grid = torch.linspace(0, 1, 401 if len(ends) == 1 else 21, dtype=torch.float64)
        lines = [low + (high - low) * grid for low, high in ends]
        x = torch.cartesian_prod(*lines).reshape(-1, len(ends)).T
        for side in ("under", "over"):
            slopes = getattr(curve, side)(ends).start
            offset = (curve.floor if side == "under" else curve.ceiling)(ends, slopes)
            distance = (function(*x) - sum(s * v for s, v in zip(slopes, x)) - offset).abs()
            assert float(distance.min()) < 2e-4


def test_a_line_over_ends_that_are_no_numbers_proves_nothing():
    for curve, _ in CURVES.values():
        ends = ((one(-1.0), one(torch.nan)), (one(0.0), one(1.0)))[: 2 if isinstance(curve, ProductCurve) else 1]
        slopes = tuple(one(0.5) for _ in ends)
        assert curve.floor(ends, slopes).isnan().all()
        assert curve.ceiling(ends, slopes).isnan().all()


def test_intervals_of_a_square_and_of_tanh():
    low, high = one(-2.0), one(1.0)
    a, b = through(Node(Product(), (1, 1), (1,)), [low, low], [high, high])
    assert (float(a), float(b)) == (0.0, pytest.approx(4.0))
    a, b = through(Node(Product(), (1, 2), (1,)), [low, low], [high, high])
    assert (float(a), float(b)) == (pytest.approx(-2.0), pytest.approx(4.0))
    a, b = through(Node(Tanh(), (1,), (1,)), [low], [high])
    assert a <= np.tanh(-2.0)
    assert b >= np.tanh(1.0)
