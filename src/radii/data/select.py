"""Which inputs of a data set to study: first n, explicit positions, per class, stratified, only correct ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import brief, choice, whole
from radii.data.dataset import Dataset
from radii.errors import DataError
from radii.problem import Instance

_PIECE = re.compile(r"[0-9]{1,18}|[0-9]{0,18}:[0-9]{0,18}(:[0-9]{0,18})?")
_LARGEST = 10**18
MOST_POSITIONS = 10**7  # that a text can name: ImageNet has 1.3 million inputs


@dataclass(frozen=True, eq=False)
class Selection:
    """The inputs to study, and those left out because they are misclassified: they have radius 0 and still count."""

    chosen: Dataset | None
    wrong: Dataset | None = None
    predictions: NDArray[np.int64] | None = None  # of the wrong ones, in order

    @property
    def instances(self) -> list[Instance]:
        """The inputs to study."""
        return [] if self.chosen is None else self.chosen.instances

    @property
    def misclassified(self) -> list[Instance]:
        """The inputs that the network gets wrong, when only correct ones are studied."""
        return [] if self.wrong is None else self.wrong.instances

    def __len__(self) -> int:
        return (0 if self.chosen is None else len(self.chosen)) + (0 if self.wrong is None else len(self.wrong))


def select(
    dataset: Dataset,
    *,
    indices: str | Iterable[int] | None = None,
    first: int | None = None,
    per_class: int | None = None,
    stratified: int | None = None,
    seed: int = 0,
) -> Dataset:
    """The part of a data set that is asked for, by one of the four ways; all of it when none is given.

    `indices` are positions in the split: "0:100", "0,5,7", "0:10,50" or a list. `first` n in order, `per_class` the
    first n of each class, `stratified` n drawn with the seed so that the classes keep their shares. Asking for more
    than there is raises `DataError`: a study should not be smaller than its file says.
    """
    asked = {"indices": indices, "first": first, "per_class": per_class, "stratified": stratified}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise DataError(f"selection: expected one of {', '.join(asked)}, got {' and '.join(given)}")
    if indices is not None:
        return dataset[_places(dataset, parse_indices(indices, dataset.indices))]
    if first is not None:
        count = whole(first, "first", low=1)
        _enough(dataset, count, len(dataset), "first")
        return dataset[:count]
    if per_class is not None:
        return dataset[_per_class(dataset, whole(per_class, "per_class", low=1))]
    if stratified is not None:
        count = whole(stratified, "stratified", low=1)
        _enough(dataset, count, len(dataset), "stratified")
        return dataset[_stratified(dataset.y, count, np.random.default_rng(whole(seed, "seed")))]
    return dataset


def only(dataset: Dataset, which: str, predictions: Any) -> Selection:
    """The inputs that the predictions get right ("correct"), or all ("all"); wrong ones are remembered, not lost."""
    if choice(which, "only", ("correct", "all")) == "all":
        return Selection(dataset)
    predicted = np.asarray(predictions)
    if predicted.shape != dataset.y.shape:
        raise DataError(
            f"{dataset.name}: expected {len(dataset)} predictions, one per input, got shape {predicted.shape}"
        )
    right = predicted == dataset.y
    return Selection(
        dataset[np.flatnonzero(right)] if right.any() else None,
        dataset[np.flatnonzero(~right)] if not right.all() else None,
        predicted[~right].astype(np.int64),
    )


def parse_indices(text: str | Iterable[int], known: Iterable[int] = ()) -> list[int]:
    """The positions that a list or a text such as "0:100", "0,5,7" or "10:20:2,40:" names, in order.

    A range without an end goes up to the largest known position.
    """
    if not isinstance(text, str):
        if isinstance(text, (int, np.integer)):
            return [whole(text, "indices", high=_LARGEST)]
        return [whole(value, "indices", high=_LARGEST) for value in text]
    found: list[int] = []
    last = max(known, default=-1)
    for piece in text.replace(" ", "").split(","):
        if not _PIECE.fullmatch(piece):
            raise DataError(f"indices: expected positions such as '0:100' or '0,5,7', got {brief(text)}")
        ends = piece.split(":")
        if len(ends) == 1:
            found.append(int(piece))
            continue
        start, stop, step = (int(end) if end else other for end, other in zip([*ends, ""], (0, last + 1, 1)))
        if step == 0:
            raise DataError(f"indices: expected a step of at least 1, got {text!r}")
        if len(found) + len(range(start, stop, step)) > MOST_POSITIONS:
            raise DataError(f"indices: expected at most {MOST_POSITIONS} positions, got more in {brief(text)}")
        found += range(start, stop, step)
    return found


def _places(dataset: Dataset, wanted: list[int]) -> NDArray[np.int64]:
    """Where the inputs with these positions in the split lie in the data set."""
    if not wanted:
        raise DataError(f"{dataset.name}: expected at least one position, got an empty selection")
    if len(set(wanted)) != len(wanted):
        twice = next(value for value in wanted if wanted.count(value) > 1)
        raise DataError(f"{dataset.name}: expected every position once, got {twice} twice")
    order = np.argsort(dataset.indices, kind="stable")
    values = np.asarray(wanted, dtype=np.int64)
    at = np.minimum(np.searchsorted(dataset.indices, values, sorter=order), len(order) - 1)
    places = order[at]
    missing = values[dataset.indices[places] != values]
    if missing.size:
        raise DataError(
            f"{dataset.name} {dataset.split}: expected positions among the {len(dataset)} it holds"
            f" ({dataset.indices.min()} to {dataset.indices.max()}), got {missing[0]} ({missing.size} such)"
        )
    return np.asarray(places, dtype=np.int64)


def _enough(dataset: Dataset, asked: int, held: int, way: str) -> None:
    if asked > held:
        raise DataError(f"{dataset.name} {dataset.split}: expected {way} of at most {held}, got {asked}")


def _per_class(dataset: Dataset, count: int) -> NDArray[np.int64]:
    places = []
    for label in range(dataset.classes):
        where = np.flatnonzero(dataset.y == label)
        if len(where):  # a class that does not occur has nothing to give; one that is short is an error
            _enough(dataset, count, len(where), f"per_class (class {dataset.class_names[label]})")
            places.append(where[:count])
    return np.sort(np.concatenate(places))


def _stratified(labels: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Largest remainders: each class gets its share rounded down, the rest goes to the largest fractions."""
    classes, sizes = np.unique(labels, return_counts=True)
    exact = sizes * count / len(labels)
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - shares), kind="stable")
    shares[order[: count - int(shares.sum())]] += 1
    drawn = [rng.choice(np.flatnonzero(labels == c), size=n, replace=False) for c, n in zip(classes, shares) if n]
    return np.sort(np.concatenate(drawn))
