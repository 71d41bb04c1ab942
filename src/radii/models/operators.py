"""The operators of the graph: plain frozen values that compute on batches of tensors.

An affine operator maps its inputs x to L(x) + c. It offers
    __call__(*x)       the value,
    linear(*x)         L(x) alone, without the constant,
    adjoint(y, shapes) the transpose Lᵀ(y), one tensor per input: how coefficients travel backwards,
    absolute()         the operator with |L| and |c|: how rounding errors and magnitudes travel,
    terms              the longest dot product in L: what Higham's γ is charged for,
    steps              what a runtime computes in its place, where the importer folded several operators into one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import reduce
from typing import Any, ClassVar, Self

from radii._torch import Tensor, torch
from radii._torch import functional as F

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Operator:
    """Something that maps batches of tensors to a batch of tensors."""

    def __call__(self, *x: Tensor) -> Tensor:
        """The value of the operator."""
        raise TypeError(f"{type(self).__name__} has no value")

    def to(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> Self:
        """The same operator with its tensors in another dtype and on another device."""
        moved: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, torch.Tensor):
                moved[item.name] = value.to(device=device, dtype=dtype if value.is_floating_point() else value.dtype)
            elif isinstance(value, tuple) and value and isinstance(value[0], Operator):
                moved[item.name] = tuple(step.to(dtype, device) for step in value)
        return replace(self, **moved)


@dataclass(frozen=True, eq=False)
class Affine(Operator):
    """An operator that is affine in its inputs; see the module's text.

    `steps` are the operators it was folded from, first to last: over the reals the same, in floats not. They are kept
    for what rounding, cancellation and overflow they can cost; the value itself is not computed with them.
    """

    moves: ClassVar[bool] = False  # whether it only moves values, without any arithmetic
    steps: tuple[Affine, ...] = field(default=(), kw_only=True)

    def linear(self, *x: Tensor) -> Tensor:
        """The linear part alone."""
        return self(*x)

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        """The transpose of the linear part applied to y, one tensor for each input shape."""
        zeros = tuple(torch.zeros((y.shape[0], *s), dtype=y.dtype, device=y.device) for s in shapes)
        return tuple(torch.func.vjp(lambda *x: self.linear(*x), *zeros)[1](y))

    def absolute(self, more: float = 0.0) -> Affine:
        """The operator with the absolute values of its factors and of its constant, `more` added to each."""
        return self

    @property
    def terms(self) -> int:
        """The longest sum of products in one output (1 when values are only moved or scaled)."""
        return 1

    @property
    def divisor(self) -> int:
        """How many values are summed before a division, 1 where nothing is divided: such a sum can overflow."""
        return 1


def magnitude(value: Tensor | None, more: float = 0.0) -> Tensor | None:
    """The absolute values with `more` added; None stays None."""
    return None if value is None else value.abs() + more


def padded(value: Tensor, pads: Shape, fill: float = 0.0) -> Tensor:
    """The value with its last axes padded by (begin…, end…)."""
    half = len(pads) // 2
    return F.pad(value, [v for pair in zip(pads[half - 1 :: -1], pads[: half - 1 : -1]) for v in pair], value=fill)


@dataclass(frozen=True, eq=False)
class Weighted(Affine):
    """An affine operator with a weight and perhaps a bias: dense layers and convolutions."""

    weight: Tensor
    bias: Tensor | None = None

    def absolute(self, more: float = 0.0) -> Self:
        return replace(self, weight=self.weight.abs() + more, bias=magnitude(self.bias, more))


@dataclass(frozen=True, eq=False)
class Dense(Weighted):
    """Contracts `axis` (counted without the batch) with the second dimension of weight: a matrix product."""

    axis: int = -1

    def linear(self, *x: Tensor) -> Tensor:
        (value,) = x
        if self.axis in (-1, value.dim() - 2):
            return value @ self.weight.T
        axis = self.axis + 1 if self.axis >= 0 else self.axis
        return (value.movedim(axis, -1) @ self.weight.T).movedim(-1, axis)

    def __call__(self, *x: Tensor) -> Tensor:
        value = self.linear(*x)
        if self.bias is None:
            return value
        if self.axis in (-1, value.dim() - 2):
            return value + self.bias
        axis = self.axis if self.axis >= 0 else self.axis + value.dim() - 1
        return value + self.bias.reshape([-1 if i == axis else 1 for i in range(value.dim() - 1)])

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        if self.axis in (-1, y.dim() - 2):
            return (y @ self.weight,)
        axis = self.axis + 1 if self.axis >= 0 else self.axis
        return ((y.movedim(axis, -1) @ self.weight).movedim(-1, axis),)

    @property
    def terms(self) -> int:
        return max(self.weight.shape) + 1


@dataclass(frozen=True, eq=False)
class Scale(Affine):
    """x · scale + shift, each broadcast against the value (batch normalisation, constants added or multiplied).

    `rounded` says that scale or shift were themselves computed, so their last digit is not exact.
    """

    scale: Tensor | None = None
    shift: Tensor | None = None
    rounded: bool = False

    def linear(self, *x: Tensor) -> Tensor:
        return x[0] if self.scale is None else x[0] * self.scale

    def __call__(self, *x: Tensor) -> Tensor:
        value = self.linear(*x)
        return value if self.shift is None else value + self.shift

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        return (y if self.scale is None else y * self.scale,)

    def absolute(self, more: float = 0.0) -> Scale:
        shift = magnitude(self.shift, more)
        if shift is not None:  # parts of it that cancel were rounded at their own size
            gross = reduce(lambda value, step: step.absolute()(value), self.steps, torch.zeros_like(shift))
            shift = torch.maximum(shift, gross)
        return Scale(magnitude(self.scale, more), shift, self.rounded)

    @property
    def terms(self) -> int:
        return 8 if self.rounded else 2


@dataclass(frozen=True, eq=False)
class Sum(Affine):
    """The sum or mean over axes (counted without the batch)."""

    axes: Shape
    mean: bool = False
    keep: bool = True
    length: int = 1

    def __call__(self, *x: Tensor) -> Tensor:
        axes = [a + 1 for a in self.axes]
        return x[0].mean(axes, keepdim=self.keep) if self.mean else x[0].sum(axes, keepdim=self.keep)

    @property
    def terms(self) -> int:
        return self.length + 2

    @property
    def divisor(self) -> int:
        return self.length if self.mean else 1


@dataclass(frozen=True, eq=False)
class Reshape(Affine):
    """The same numbers in another shape."""

    moves: ClassVar[bool] = True
    shape: Shape

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0].reshape(x[0].shape[0], *self.shape)

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        return (y.reshape(y.shape[0], *shapes[0]),)


@dataclass(frozen=True, eq=False)
class Transpose(Affine):
    """The same numbers with axes permuted (counted without the batch)."""

    moves: ClassVar[bool] = True
    order: Shape

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0].permute(0, *(a + 1 for a in self.order))

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return (y.permute(0, *(a + 1 for a in inverse)),)


@dataclass(frozen=True, eq=False)
class Select(Affine):
    """The entries `indices` of one axis (counted without the batch): slices, splits and constant gathers."""

    moves: ClassVar[bool] = True
    indices: Tensor
    axis: int

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0].index_select(self.axis + 1, self.indices)

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        zeros = torch.zeros((y.shape[0], *shapes[0]), dtype=y.dtype, device=y.device)
        return (zeros.index_add(self.axis + 1, self.indices, y),)

    @property
    def terms(self) -> int:
        return int(torch.bincount(self.indices).max()) if self.indices.numel() else 1


@dataclass(frozen=True, eq=False)
class Pad(Affine):
    """Constant padding; `pads` are (begin…, end…) over all axes but the batch."""

    moves: ClassVar[bool] = True
    pads: Shape
    value: float = 0.0

    def linear(self, *x: Tensor) -> Tensor:
        return padded(x[0], self.pads)

    def __call__(self, *x: Tensor) -> Tensor:
        return padded(x[0], self.pads, self.value)

    def absolute(self, more: float = 0.0) -> Pad:
        return replace(self, value=abs(self.value))


@dataclass(frozen=True, eq=False)
class Add(Affine):
    """The sum of two branches, broadcast against each other."""

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0] + x[1]

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        if all(tuple(y.shape[1:]) == s for s in shapes):
            return (y, y)
        return super().adjoint(y, shapes)

    @property
    def terms(self) -> int:
        return 2


@dataclass(frozen=True, eq=False)
class Concat(Affine):
    """Several branches one after the other along an axis (counted without the batch)."""

    moves: ClassVar[bool] = True
    axis: int

    def __call__(self, *x: Tensor) -> Tensor:
        return torch.cat(x, dim=self.axis + 1)

    def adjoint(self, y: Tensor, shapes: tuple[Shape, ...]) -> tuple[Tensor, ...]:
        return torch.split(y, [s[self.axis] for s in shapes], dim=self.axis + 1)


@dataclass(frozen=True, eq=False)
class Relu(Operator):
    """max(x, 0)."""

    def __call__(self, *x: Tensor) -> Tensor:
        return F.relu(x[0])


@dataclass(frozen=True, eq=False)
class LeakyRelu(Operator):
    """x where it is positive, slope · x elsewhere."""

    slope: float = 0.01

    def __call__(self, *x: Tensor) -> Tensor:
        return F.leaky_relu(x[0], self.slope)


@dataclass(frozen=True, eq=False)
class Clip(Operator):
    """x cut to [low, high]; an infinite end does not cut."""

    low: float
    high: float

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0].clamp(self.low, self.high)


@dataclass(frozen=True, eq=False)
class Sigmoid(Operator):
    """1 / (1 + exp(−x))."""

    def __call__(self, *x: Tensor) -> Tensor:
        return torch.sigmoid(x[0])


@dataclass(frozen=True, eq=False)
class Tanh(Operator):
    """The hyperbolic tangent."""

    def __call__(self, *x: Tensor) -> Tensor:
        return torch.tanh(x[0])


@dataclass(frozen=True, eq=False)
class Product(Operator):
    """The product of two branches, broadcast against each other."""

    def __call__(self, *x: Tensor) -> Tensor:
        return x[0] * x[1]


@dataclass(frozen=True, eq=False)
class Softmax(Operator):
    """Probabilities (or their logarithms) over the last axis; only as the last operator of a network."""

    log: bool = False

    def __call__(self, *x: Tensor) -> Tensor:
        run = torch.log_softmax if self.log else torch.softmax
        return run(x[0].flatten(1), dim=1).reshape(x[0].shape)
