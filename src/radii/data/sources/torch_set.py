"""Any torch data set (or any sequence of (input, label) pairs) as a `Dataset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radii.data.dataset import Dataset
from radii.data.scale import UNIT, DomainLike, scaled
from radii.errors import DataError
from radii.problem import Domain


def load(
    pairs: Any,
    split: str,
    *,
    domain: DomainLike = UNIT,
    scale: float | None = None,
    class_names: Sequence[str] = (),
    name: str = "",
) -> Dataset:
    """The pairs as one data set; inputs must have one shape and be in the units of the domain.

    Inputs are taken as the data set gives them: leave normalisation out of its transform and give it to the classifier.
    """
    if not (hasattr(pairs, "__getitem__") and hasattr(pairs, "__len__")):
        raise DataError(
            f"data set: expected a name, a path or a torch data set with a length, got {type(pairs).__name__}"
        )
    title = name or type(pairs).__name__
    inputs, labels = [], []
    for position in range(len(pairs)):
        try:
            value, label = pairs[position]
            inputs.append(np.asarray(value))
            labels.append(int(label))
        except (TypeError, ValueError):
            raise DataError(
                f"{title}: expected (input, label) pairs of numbers, got {type(pairs[position]).__name__}"
                f" at {position}; turn pictures into arrays with the data set's transform"
            ) from None
    if len({value.shape for value in inputs}) != 1:
        raise DataError(f"{title}: expected inputs of one shape, got {sorted({v.shape for v in inputs})[:3] or 'none'}")
    space = Domain.of(domain)
    names = tuple(class_names) or tuple(getattr(pairs, "classes", ()))
    return Dataset(scaled(np.stack(inputs), space, scale, title), np.array(labels), title, split, names, space)
