"""Families of comparisons: Holm, Benjamini–Hochberg and Bonferroni."""

from __future__ import annotations

from typing import Any

import numpy as np

from radii._check import whole
from radii.errors import InputError
from radii.stats._arrays import FloatArray, level


def holm(p_values: Any) -> FloatArray:
    """Adjusted p-values that control the chance of any false rejection (Holm 1979), in the order and shape given."""
    values, order = _sorted(p_values)
    factors = np.arange(values.size, 0, -1)
    return _restore(np.maximum.accumulate(values[order] * factors), order, p_values)


def benjamini_hochberg(p_values: Any) -> FloatArray:
    """Adjusted p-values that control the expected share of false rejections (Benjamini and Hochberg 1995).

    For independent or positively dependent tests.
    """
    values, order = _sorted(p_values)
    factors = values.size / np.arange(1, values.size + 1)
    stepped = np.minimum.accumulate((values[order] * factors)[::-1])[::-1]
    return _restore(stepped, order, p_values)


def bonferroni_confidence(confidence: float, count: int) -> float:
    """The confidence each of `count` statements needs so that all hold together with the asked one."""
    return 1.0 - level(confidence) / whole(count, "count", low=1)


def _sorted(p_values: Any) -> tuple[FloatArray, np.ndarray[Any, Any]]:
    values = np.asarray(p_values, dtype=np.float64).ravel()
    if values.size == 0 or not np.all((values >= 0) & (values <= 1)):
        raise InputError(f"p_values: expected at least one number from 0 to 1, got {p_values!r}")
    return values, np.argsort(values, kind="stable")


def _restore(adjusted: FloatArray, order: np.ndarray[Any, Any], like: Any) -> FloatArray:
    result = np.empty_like(adjusted)
    result[order] = np.minimum(adjusted, 1.0)
    return result.reshape(np.shape(like))
