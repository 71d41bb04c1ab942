"""Rounding: the derived error bounds that make a float64 computation a proof.

Higham's γ_n = n·u/(1 − n·u) bounds the relative error of a dot product of length n in any summation order. It is
charged against magnitudes: |fl(a·b) − a·b| ≤ γ_n |a|·|b|. Quantities here are upper bounds, so they are themselves
inflated by `UP`, which covers the rounding made while computing them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter

from radii._torch import torch

U64 = 2.0**-53
U32 = 2.0**-24
UP = 1.0 + 2.0**-30  # inflates a computed error bound: covers the rounding of up to 2^20 operations in it
TINY = 1e-290  # absorbs underflow


def gamma(terms: int, unit: float = U64) -> float:
    """γ for a sum of `terms` products, with three operations to spare, rounded up."""
    product = (terms + 3) * unit
    if product >= 0.5:
        raise OverflowError(f"a sum of {terms} products is too long for this precision")
    return product / (1.0 - product) * UP


def unit_of(dtype: torch.dtype) -> float:
    """The unit roundoff of float64 or float32."""
    return U64 if dtype == torch.float64 else U32


def outward(low: torch.Tensor, high: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """The ends of intervals in another precision, moved outwards so that nothing is lost."""
    if low.dtype == dtype:
        return low, high
    infinite = torch.tensor(torch.inf, dtype=dtype, device=low.device)
    below, above = low.to(dtype), high.to(dtype)
    below = torch.where(below.to(low.dtype) <= low, below, torch.nextafter(below, -infinite))
    above = torch.where(above.to(high.dtype) >= high, above, torch.nextafter(above, infinite))
    return below, above


@contextmanager
def proving() -> Iterator[None]:
    """No gradients, and float32 that is float32: no backend may shorten products to TF32 or bfloat16 meanwhile."""
    # By name: torch makes these objects at run time, and its types do not know them.
    backends = attrgetter("mkldnn.matmul", "mkldnn.conv", "cuda.matmul", "cudnn.conv")(torch.backends)
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        with torch.no_grad():
            yield
    finally:
        for backend, precision in zip(backends, before):
            backend.fp32_precision = precision
