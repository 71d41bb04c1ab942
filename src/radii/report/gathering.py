"""Distributions of what was found for a data set, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from radii.data import Dataset
from radii.problem import Norm, Property, Radius, Reach, Result
from radii.problem.quantity import RANGES
from radii.report.distribution import Distribution
from radii.report.reach_distribution import ReachDistribution


def gathered(data: Dataset, found: Sequence[Result], name: str, keys: Sequence[str] | None = None) -> Distribution:
    """The distribution of the radii of a data set; `keys` name the stored units."""
    radii = [one for one in found if isinstance(one, Radius)]
    return Distribution.from_arrays(correct=[not r.misclassified for r in radii], **_columns(data, radii, name, keys))


def gathered_reaches(
    data: Dataset,
    found: Sequence[Result],
    asked: tuple[Property, Norm],
    name: str,
    keys: Sequence[str] | None = None,
) -> ReachDistribution:
    """The distribution of the reaches of a data set; `asked` is of what they are."""
    reaches = [one for one in found if isinstance(one, Reach)]
    first, (property, norm) = reaches[0], asked
    return ReachDistribution.from_arrays(
        correct=[one.prediction is None or one.prediction == y for one, y in zip(reaches, data.y.tolist())],
        least=first.least,
        epsilon=first.epsilon,
        quantity=property.quantity_name,
        unit=first.unit,
        norm=norm.name,
        bounds=RANGES.get(first.unit),
        **_columns(data, reaches, name, keys),
    )


def _columns(data: Dataset, found: Sequence[Result], name: str, keys: Sequence[str] | None) -> dict[str, Any]:
    return {
        "lower": [one.lower for one in found],
        "upper": [one.upper for one in found],
        "label": data.y,
        "status": [one.status.value for one in found],
        "ids": [f"{data.name}/{data.split}/{index}" for index in data.indices],
        "contents": [instance.fingerprint for instance in data.instances],
        "cpu_seconds": [one.cost.cpu_seconds for one in found],
        "wall_seconds": [one.cost.wall_seconds for one in found],
        "keys": keys,
        "name": name,
        "class_names": data.class_names,
    }
