"""The linear pieces of the piecewise-linear activations: which values they take, and where."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, prod

from radii._torch import torch
from radii.errors import InputError
from radii.models.convolutions import MaxPool
from radii.models.operators import Clip, LeakyRelu, Operator, Relu


@dataclass(frozen=True, slots=True)
class Piece:
    """One output as slope · v[source] + constant, valid where v[plus] - v[minus] <= bound for every row.

    v are the inputs of the activation, flattened; -1 in a row stands for nothing.
    """

    source: int
    slope: float
    constant: float
    rows: tuple[tuple[int, int, float], ...]


def pieces_of(operator: Operator, shape: tuple[int, ...]) -> list[tuple[Piece, ...]]:
    """For each output of an activation on inputs of this shape, its pieces; together they cover all inputs."""
    if isinstance(operator, MaxPool):
        return _max_pool(operator, shape)
    count = prod(shape)
    if isinstance(operator, Relu):
        return [_bent(i, 0.0) for i in range(count)]
    if isinstance(operator, LeakyRelu):
        return [_bent(i, operator.slope) for i in range(count)]
    if isinstance(operator, Clip):
        return [_clipped(i, operator.low, operator.high) for i in range(count)]
    raise InputError(
        f"exact radius: expected a piecewise-linear network (affine operators, Relu, LeakyRelu, Clip, MaxPool),"
        f" got {type(operator).__name__}"
    )


def _bent(i: int, slope: float) -> tuple[Piece, ...]:
    return Piece(i, 1.0, 0.0, ((-1, i, 0.0),)), Piece(i, slope, 0.0, ((i, -1, 0.0),))


def _clipped(i: int, low: float, high: float) -> tuple[Piece, ...]:
    found = []
    middle = []
    if isfinite(low):
        found.append(Piece(i, 0.0, low, ((i, -1, low),)))
        middle.append((-1, i, -low))
    if isfinite(high):
        found.append(Piece(i, 0.0, high, ((-1, i, -high),)))
        middle.append((i, -1, high))
    return (Piece(i, 1.0, 0.0, tuple(middle)), *found)


def _max_pool(operator: MaxPool, shape: tuple[int, ...]) -> list[tuple[Piece, ...]]:
    count = prod(shape)
    lit = operator(torch.eye(count, dtype=torch.float64).reshape(count, *shape)).reshape(count, -1)
    windows = [torch.nonzero(lit[:, out] > 0.5).ravel().tolist() for out in range(lit.shape[1])]
    return [
        tuple(Piece(i, 1.0, 0.0, tuple((j, i, 0.0) for j in window if j != i)) for i in window) for window in windows
    ]
