"""Adjoint and absolute of every affine operator against its explicit Jacobian in float64."""

from __future__ import annotations

import pytest
import torch

from radii.models.convolutions import AveragePool, Conv, ConvTranspose
from radii.models.operators import Add, Affine, Concat, Dense, Pad, Reshape, Scale, Select, Sum, Transpose

torch.manual_seed(0)


def w(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


CASES: dict[str, tuple[Affine, tuple[tuple[int, ...], ...]]] = {
    "dense": (Dense(w(3, 4), w(3)), ((4,),)),
    "dense on a matrix": (Dense(w(3, 4), w(3)), ((2, 4),)),
    "dense along the first axis": (Dense(w(3, 4), w(3), axis=0), ((4, 2),)),
    "dense along a middle axis": (Dense(w(3, 4), None, axis=1), ((2, 4, 2),)),
    "dense along a negative axis": (Dense(w(3, 4), w(3), axis=-2), ((2, 4, 2),)),
    "conv": (Conv(w(4, 2, 3, 3), w(4)), ((2, 5, 6),)),
    "conv strided, padded": (Conv(w(4, 2, 3, 2), w(4), (2, 3), (1, 0, 1, 0)), ((2, 6, 5),)),
    "conv padded at one end": (Conv(w(4, 2, 3, 3), None, (2, 1), (0, 1, 2, 0)), ((2, 5, 5),)),
    "conv dilated, grouped": (Conv(w(4, 1, 2, 2), w(4), (1, 1), (1, 1, 1, 1), (2, 2), 2), ((2, 5, 5),)),
    "conv that skips the end": (Conv(w(1, 1, 2, 2), None, (3, 3)), ((1, 7, 6),)),
    "conv 1d": (Conv(w(3, 2, 3), w(3), (2,), (1, 1), (1,)), ((2, 7),)),
    "conv 3d": (Conv(w(2, 1, 2, 2, 2), w(2), (1, 1, 1), (0,) * 6, (1, 1, 1)), ((1, 3, 3, 4),)),
    "conv transpose": (ConvTranspose(w(2, 3, 3, 3), w(3), (2, 2), (1, 1), (1, 1)), ((2, 4, 3),)),
    "conv transpose grouped": (ConvTranspose(w(2, 2, 2), w(4), (1,), (0,), (0,), (2,), 2), ((2, 4),)),
    "scale": (Scale(w(2, 1, 1), w(3)), ((2, 2, 3),)),
    "scale by a number": (Scale(w(), None), ((2, 3),)),
    "shift": (Scale(None, w(3)), ((2, 3),)),
    "average": (AveragePool((2, 2), (2, 2), (0, 0, 0, 0)), ((2, 4, 5),)),
    "average padded": (AveragePool((3, 3), (2, 2), (1, 1, 1, 1)), ((1, 5, 5),)),
    "average with padding counted": (AveragePool((3, 3), (2, 2), (1, 1, 1, 1), include_pad=True), ((1, 5, 5),)),
    "average padded at one end": (AveragePool((3, 2), (2, 1), (0, 0, 2, 1)), ((2, 5, 4),)),
    "average, ceil": (AveragePool((2, 2), (2, 2), (0, 0, 0, 0), ceil=True), ((1, 5, 5),)),
    "sum": (Sum((1, 2), keep=True, length=12), ((2, 3, 4),)),
    "mean": (Sum((0, 2), mean=True, keep=False, length=8), ((2, 3, 4),)),
    "reshape": (Reshape((6, 2)), ((3, 4),)),
    "transpose": (Transpose((2, 0, 1)), ((2, 3, 4),)),
    "select": (Select(torch.tensor([2, 0, 2, 1]), 1), ((2, 3),)),
    "pad": (Pad((1, 0, 2, 1), 3.0), ((2, 3),)),
    "pad that cuts": (Pad((-1, 0, 1, -1), -2.0), ((3, 4),)),
    "add": (Add(), ((2, 3), (2, 3))),
    "add with broadcasting": (Add(), ((2, 3), (1, 3))),
    "concat": (Concat(1), ((2, 3), (2, 1))),
}


def jacobian(operator: Affine, shapes: tuple[tuple[int, ...], ...]) -> tuple[torch.Tensor, ...]:
    """The derivative of the value in each input, as a matrix (outputs, inputs)."""
    zeros = tuple(torch.zeros((1, *s), dtype=torch.float64) for s in shapes)
    found = torch.autograd.functional.jacobian(lambda *x: operator(*x).flatten(), zeros)
    return tuple(j.reshape(j.shape[0], -1) for j in found)


@pytest.mark.parametrize("name", CASES)
def test_value_linear_and_adjoint(name):
    operator, shapes = CASES[name]
    matrices = jacobian(operator, shapes)
    x = [w(3, *s) for s in shapes]
    zeros = [torch.zeros((1, *s), dtype=torch.float64) for s in shapes]
    constant = operator(*zeros).flatten()
    product = sum(v.flatten(1) @ m.T for v, m in zip(x, matrices))
    torch.testing.assert_close(operator.linear(*x).flatten(1), product)
    torch.testing.assert_close(operator(*x).flatten(1), product + constant)
    y = w(*operator(*x).shape)
    back = operator.adjoint(y, shapes)
    assert len(back) == len(shapes)
    for found, matrix, shape in zip(back, matrices, shapes):
        assert tuple(found.shape) == (3, *shape)
        torch.testing.assert_close(found.flatten(1), y.flatten(1) @ matrix)


@pytest.mark.parametrize("name", CASES)
def test_absolute_and_terms(name):
    operator, shapes = CASES[name]
    absolute = operator.absolute()
    for found, matrix in zip(jacobian(absolute, shapes), jacobian(operator, shapes)):
        torch.testing.assert_close(found, matrix.abs())
    zeros = [torch.zeros((1, *s), dtype=torch.float64) for s in shapes]
    torch.testing.assert_close(absolute(*zeros), operator(*zeros).abs())
    # `terms` must cover the longest row (values) and the longest column (coefficients) of the whole linear part.
    whole = torch.cat(jacobian(operator, shapes), dim=1)
    longest = max(int((whole != 0).sum(1).max()), int((whole != 0).sum(0).max()))
    if not isinstance(operator, (Add, Sum)) or name == "sum":
        assert operator.terms >= longest


@pytest.mark.parametrize("name", CASES)
def test_conversion_to_float64_is_exact_and_to_float32_keeps_whole_numbers_whole(name):
    operator, _ = CASES[name]
    single = operator.to(torch.float32)
    for field in operator.__dataclass_fields__:
        before, after = getattr(single, field), getattr(single.to(torch.float64), field)
        if isinstance(before, torch.Tensor):
            assert after.dtype == (torch.float64 if before.is_floating_point() else before.dtype)
            assert torch.equal(before.to(after.dtype), after)
