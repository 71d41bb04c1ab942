"""Matrices: a condensed network and its objectives in one precision, with what each use of them costs in rounding.

In dense networks A has few independent rows: everything depends on x through the first layer alone, less the neurons
that are off on the ball. Products with A then go through two thin matrices. In convolutions the first rows of A are 0
nearly everywhere, and products leave zeros out.
"""

from __future__ import annotations

from dataclasses import dataclass

from radii._torch import Tensor, torch
from radii.bounds.region import Region
from radii.bounds.rounding import UP, gamma, unit_of
from radii.engine.condensed import Condensed, Rows, charges
from radii.engine.sparse import SparseRows, sparse_rows
from radii.engine.tuning import DEFAULT, Trees

LEAST_FACTOR = 1e-18  # smaller entries of P and W are dropped before what they miss is charged: float32 holds the rest
FLUSH = 1e-20  # float32 weights below this are dropped: subnormal numbers are slow, and FLUSHED charges for them
FLUSHED = 1e-15


@dataclass(frozen=True, eq=False)
class Matrices:
    """A condensed network and its objectives in one precision, with what one use of each row costs in rounding."""

    neurons: Rows
    objectives: Rows
    charge: Tensor  # (n,)
    objective_charge: Tensor  # (objectives,)
    span: Tensor  # (n,) the largest |z|
    region: Region
    unit: float
    thin: tuple[Tensor, Tensor] | None = None  # P (n, r) and W (r, d) with A = P·W up to rounding, where r is small
    sparse: SparseRows | None = None  # the first rows of A, where they are 0 nearly everywhere

    @staticmethod
    def of(
        net: Condensed, objectives: Rows, dtype: torch.dtype, mixed: bool = False, trees: Trees = DEFAULT.trees
    ) -> Matrices:
        """Both cast to a precision; the casts are part of the charges, and sums of objectives where they are mixed."""
        unit = unit_of(dtype)
        magnitude = net.region.magnitude()[0]
        charge = charges(net.neurons, magnitude, net.reach, unit)
        thin = factors(net)
        if thin is not None:
            charge = charge + factor_charges(net.neurons.a, *thin, magnitude, unit)
        objective = charges(objectives, magnitude, net.reach, unit, len(objectives.b) + 1 if mixed else 0)
        lost = 0.0 if dtype == torch.float64 else FLUSHED * (1.0 + float(magnitude.sum() + net.reach.sum()))
        span = torch.maximum(net.high, -net.low) * (1.0 + 4 * unit)
        neurons, few = _cast(net.neurons, dtype), sparse_rows(net, trees)
        return Matrices(
            neurons,
            _cast(objectives, dtype),
            (charge * (1.0 + 4 * unit) + lost).to(dtype),
            (objective * (1.0 + 4 * unit) + lost).to(dtype),
            span.to(dtype),
            net.region.to(dtype),
            unit,
            None if thin is None else (thin[0].to(dtype), thin[1].to(dtype)),
            SparseRows(neurons.a[:few]) if few else None,
        )

    def inputs(self, u: Tensor) -> Tensor:
        """u·A for coefficients (…, k) of the first k neurons, by the cheapest of three ways."""
        k = u.shape[-1]
        if self.sparse is not None:
            few = min(k, self.sparse.count)
            found = self.sparse.combined(u[..., :few])
            return found if few == k else found.add_(u[..., few:] @ self.neurons.a[few:k])
        if self.thin is None or not thinner(k, *self.thin[1].shape):
            return u @ self.neurons.a[:k]
        p, w = self.thin
        return u @ p[:k] @ w

    def linear(self, x: Tensor) -> Tensor:
        """A·x + b of all neurons at points (…, d)."""
        if self.sparse is not None:
            rest = x @ self.neurons.a[self.sparse.count :].T
            return torch.cat([self.sparse.at(x), rest], -1).add_(self.neurons.b)
        if self.thin is None:
            return torch.addmm(self.neurons.b, x, self.neurons.a.T)
        p, w = self.thin
        return torch.addmm(self.neurons.b, x @ w.T, p.T)

    def through(self, z: Tensor, blocks: tuple[tuple[int, int], ...], slope: Tensor, offset: Tensor) -> Tensor:
        """z = A·x + b made pre-activations: every layer gets what earlier neurons give through their lines."""
        y = torch.empty_like(z)
        for first, last in blocks:
            if first:
                z[:, first:last] += y[:, :first] @ self.neurons.m[first:last, :first].T
            y[:, first:last] = torch.addcmul(offset[:, first:last], slope[:, first:last], z[:, first:last])
        return z

    def objectives_of(self, which: Tensor) -> tuple[Rows, Tensor]:
        """Some of the objectives, and what they cost in rounding."""
        return self.objectives.pick(which), self.objective_charge[which]

    def mixed_objectives(self, weights: Tensor) -> tuple[Rows, Tensor]:
        """Sums of objectives with weights ≥ 0, (sums, objectives), and what they cost in rounding."""
        rows = self.objectives
        mixed = Rows(weights @ rows.a, weights @ rows.b, weights @ rows.m, weights @ rows.slack)
        return mixed, weights @ self.objective_charge


def factors(net: Condensed) -> tuple[Tensor, Tensor] | None:
    """P and W with A = P·W up to rounding, if products with them are cheaper than with A."""
    if net.basis is None or not thinner(net.size, *net.basis.shape):
        return None
    # Numbers that another precision could not hold are dropped here: what that changes is charged like the rest.
    w = torch.where(net.basis.abs() < LEAST_FACTOR, 0.0, net.basis)
    p = net.neurons.a @ w.T
    return torch.where(p.abs() < LEAST_FACTOR, 0.0, p), w


def thinner(neurons: int, rank: int, inputs: int) -> bool:
    """Whether products with P and W cost less than with A."""
    return rank * (neurons + inputs) < neurons * inputs


def factor_charges(a: Tensor, p: Tensor, w: Tensor, magnitude: Tensor, unit: float) -> Tensor:
    """What one unit of each row costs when P·W stands for A: where the two differ, and longer sums."""
    long = p.abs() @ (w.abs() @ magnitude) * UP
    differs = (a - p @ w).abs() @ magnitude + gamma(len(w) + 2) * (a.abs() @ magnitude + long)
    return (differs * UP + gamma(len(p) + len(w) + 8, unit) * long) * UP


def _cast(rows: Rows, dtype: torch.dtype) -> Rows:
    def cast(value: Tensor) -> Tensor:
        small = value.abs() < FLUSH
        return torch.where(small, torch.zeros_like(value), value).to(dtype) if dtype == torch.float32 else value

    return Rows(cast(rows.a), rows.b.to(dtype), cast(rows.m), rows.slack.to(dtype))
