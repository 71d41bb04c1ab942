"""Inputs: which arrays a classifier accepts, and what is suspicious about them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.errors import DataError
from radii.problem import Domain

Shape = tuple[int, ...]


def show(shape: Shape) -> str:
    """A shape as people write it: 1x28x28."""
    return "x".join(map(str, shape)) or "a single number"


def as_batch(x: Any, shape: Shape, dtype: np.dtype[Any]) -> tuple[NDArray[np.floating[Any]], bool]:
    """The inputs as a batch of `shape`, and whether a single input was given.

    Accepts the native shape and the flat one, each with or without a batch in front, and shapes that read the same
    numbers in the same order (28x28 for 1x28x28, 1x28x28 for 784x1). Where both readings are possible, the first axis
    is the batch.
    """
    try:
        array = np.asarray(x, dtype=dtype)
    except (TypeError, ValueError):
        raise DataError(f"input: expected an array of numbers, got {type(x).__name__}") from None
    given, flat = array.shape, (prod(shape),)
    if given in (shape, flat):
        return array.reshape(1, *shape), True
    if len(given) > 1 and (given[1:] in (shape, flat) or _same_order(given[1:], shape)):
        return array.reshape(given[0], *shape), False
    if _same_order(given, shape):
        return array.reshape(1, *shape), True
    raise DataError(_wrong_shape(given, shape))


def _same_order(given: Shape, shape: Shape) -> bool:
    """Whether an array of the given shape holds the numbers of `shape` in the same order, beyond doubt."""
    if prod(given) != prod(shape) or not given:
        return False
    a, b = [n for n in given if n != 1], [n for n in shape if n != 1]
    if a == b or len(a) <= 1:
        return True
    # A flat network says nothing of its layout: channels first is the convention, channels last would be a guess.
    return len(b) <= 1 and not (len(given) == 3 and given[-1] in (3, 4) and given[0] not in (1, 3))


def _wrong_shape(given: Shape, shape: Shape) -> str:
    message = (
        f"input: expected shape {show(shape)} (or {prod(shape)} values), with or without a batch, got {show(given)}"
    )
    image = given[-3:]
    if len(shape) == 3 and len(image) == 3 and (image[2], image[0], image[1]) == shape:
        return message + "; the channels come last, transpose them to the front"
    if len(shape) == 3 and len(image) == 3 and (image[1], image[2], image[0]) == shape:
        return message + "; the channels come first, transpose them to the end"
    if len(image) == 3 and image[-1] in (3, 4) and prod(image) == prod(shape):
        return message + "; the channels come last, transpose them to the front"
    return message


def check_finite(x: NDArray[np.floating[Any]]) -> None:
    """Refuses NaN and infinity, naming the first input that holds one."""
    if not np.isfinite(x).all():
        bad = int(np.argmin(np.isfinite(x).reshape(len(x), -1).all(axis=1)))
        raise DataError(f"input {bad}: expected finite values, got NaN or infinity; remove or repair it")


def suspicions(x: NDArray[np.floating[Any]], domain: Domain) -> tuple[str, ...]:
    """What is odd about the values of a batch, given the domain; empty when nothing is."""
    if x.size == 0:
        return ()
    low, high = float(x.min()), float(x.max())
    found = f"values from {low:g} to {high:g}"
    if not domain.contains(x):
        expected = f"input: expected values in [{domain.low:g}, {domain.high:g}], got {found}"
        if domain.high == 1.0 and low >= 0.0 and 1.5 < high <= 255.0:
            return (f"{expected}; these look like pixels from 0 to 255: divide by 255, or load with domain=(0, 255)",)
        if low < 0.0 <= domain.low:
            hint = "give raw values and pass preprocessing=(mean, std), on the command line --mean and --std"
            return (f"{expected}; these look normalised: {hint}",)
        return (f"{expected}; rescale them, or load the classifier with another domain",)
    if domain.high == 255.0 and domain.low == 0.0 and 0.0 < high <= 1.0:
        return (f"input: expected pixels from 0 to 255, got {found}; multiply by 255, or load with domain=(0, 1)",)
    return ()
