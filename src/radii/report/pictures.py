"""Inputs and witnesses as pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from radii.errors import InputError
from radii.report.style import blank, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fooled:
    """An input beside its witness, as pictures: (height, width) or (channels, height, width) in [0, 1]."""

    title: str
    original: Any
    witness: Any
    label: str
    prediction: str
    epsilon: float


def fooled_grid(examples: Sequence[Fooled]) -> Figure:
    """A figure with one row an example: the input, the witness that fools the network, and what was changed."""
    if not examples:
        raise InputError("fooled_grid: expected at least one example, got none")
    figure = blank(5.6, 1.95 * len(examples))
    grid = figure.subplots(len(examples), 3, squeeze=False)
    for row, example in zip(grid, examples, strict=True):
        original, witness = _needed(example.original), _needed(example.witness)
        titles = (f"is {example.label}", f"taken for {example.prediction}", f"change, at most {example.epsilon:.4f}")
        for axes, picture, title in zip(row, (original, witness, change(original, witness)), titles, strict=True):
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(plain(title), fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
        row[0].set_ylabel(plain(example.title), fontsize=9)
    return figure


def change(original: Picture, witness: Picture) -> Picture:
    """What was changed, as a picture: grey is nothing, black and white the largest change."""
    scale = max(float(np.abs(witness - original).max()), 1e-12)
    return 0.5 + (witness - original) / (2 * scale)


def picture(values: Any) -> Picture | None:
    """Values as a (height, width) or (height, width, 3) picture, or None where they have no such shape.

    A leading batch dimension of 1 is dropped; flat values are taken as a square, of one channel or of three.
    """
    array = np.asarray(values, dtype=np.float64)
    while array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 1:
        array = _square(array)
    if array.ndim == 3 and array.shape[0] == 3:
        return np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    return array if (array.ndim == 2 and min(array.shape) > 1) or (array.ndim == 3 and array.shape[-1] == 3) else None


def _square(flat: Picture) -> Picture:
    for channels in (1, 3):
        side = math.isqrt(flat.size // channels)
        if side > 1 and channels * side * side == flat.size:
            return flat.reshape((side, side) if channels == 1 else (3, side, side))
    return flat


def _needed(values: Any) -> Picture:
    found = picture(values)
    if found is None:
        raise InputError(f"fooled_grid: expected values of a picture, got an array of shape {np.shape(values)}")
    return found
