"""The exam for data sources: give a function that loads a data set; the first broken rule raises `AssertionError`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from radii.data import Dataset
from radii.errors import DataError
from radii.problem import Instance


def check_dataset(load: Callable[[], Dataset]) -> None:
    """Run the whole exam on what `load` gives."""
    dataset = load()
    for rule in (values_fit_the_domain, labels_fit_the_classes, items_are_instances, parts_keep_their_positions):
        rule(dataset)
    loads_the_same_again(dataset, load())


def require(condition: bool, message: str) -> None:
    """Raise `AssertionError` with the message unless the condition holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)


def values_fit_the_domain(dataset: Dataset) -> None:
    """Inputs are finite float32 values of the domain, of one shape, that cannot be changed by accident."""
    require(isinstance(dataset, Dataset), f"expected a Dataset, got {type(dataset).__name__}")
    require(dataset.x.dtype == np.float32, f"expected float32, got {dataset.x.dtype}")
    require(bool(np.isfinite(dataset.x).all()), "expected finite values")
    require(dataset.domain.contains(dataset.x), f"expected values in [{dataset.domain.low}, {dataset.domain.high}]")
    require(not dataset.x.flags.writeable and not dataset.y.flags.writeable, "expected arrays that are read-only")
    require(not dataset.alarms, f"expected no alarm, got {dataset.alarms}")


def labels_fit_the_classes(dataset: Dataset) -> None:
    """Labels are classes, class names are different from each other, names and splits are said."""
    require(bool(((dataset.y >= 0) & (dataset.y < dataset.classes)).all()), f"expected labels below {dataset.classes}")
    require(len(set(dataset.class_names)) == dataset.classes, "expected class names that differ")
    require(bool(dataset.name) and bool(dataset.split), "expected a name and a split")


def items_are_instances(dataset: Dataset) -> None:
    """An item is an instance that knows where it came from; iteration gives all of them in order."""
    head = dataset[: min(len(dataset), 20)]
    for place, instance in enumerate(head):
        require(isinstance(instance, Instance), f"expected an Instance, got {type(instance).__name__}")
        require(bool(np.array_equal(instance.x, dataset.x[place])), "expected items in the order of x")
        expected = (int(dataset.y[place]), int(dataset.indices[place]), dataset.name, dataset.split)
        got = (instance.label, instance.index, instance.dataset, instance.split)
        require(got == expected, f"expected {expected}, got {got}")
    require(dataset[-1].index == int(dataset.indices[-1]), "expected negative positions to count from the end")
    try:
        dataset[len(dataset)]
    except IndexError:
        pass
    else:
        raise AssertionError("expected IndexError beyond the end")


def parts_keep_their_positions(dataset: Dataset) -> None:
    """A slice or a list of places is a data set whose inputs keep their positions in the split; empty ones raise."""
    require(len(np.unique(dataset.indices)) == len(dataset), "expected every position in the split once")
    places = list(range(len(dataset)))[::-1][:5]
    for part in (dataset[::-1][:5], dataset[places]):
        require(isinstance(part, Dataset), f"expected a Dataset, got {type(part).__name__}")
        require(
            bool(np.array_equal(part.indices, dataset.indices[places])), "expected positions to stay with their inputs"
        )
        require(bool(np.array_equal(part.x, dataset.x[places])), "expected inputs to stay with their positions")
        require(part.class_names == dataset.class_names, "expected class names to stay")
    try:
        dataset[len(dataset) :]
    except DataError:
        return
    raise AssertionError("expected DataError for an empty selection")


def loads_the_same_again(first: Dataset, second: Dataset) -> None:
    """Loading twice gives the same inputs, labels and positions."""
    for name in ("x", "y", "indices"):
        same = bool(np.array_equal(getattr(first, name), getattr(second, name)))
        require(same, f"expected the same {name} when loaded again")
