"""Toys with exactly known radii, and the exams that every plug-in must pass; shipped for plug-in authors.

Nothing here needs pytest: an exam raises `AssertionError` with a line that says what was expected. Names load on first
use, so that the exams of runners and stores need no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radii.testing.dataset_exam import check_dataset
    from radii.testing.decider_exam import DECIDER_EXAM, MEASURER_EXAM, check_decider, check_measurer
    from radii.testing.exact import Breach, exact_breach, exact_radius
    from radii.testing.toys import (
        KINDS,
        LinearToy,
        double_toy,
        linear_radius,
        linear_toy,
        overflow_toy,
        random_instance,
        random_model,
        random_network,
        relu_toy,
    )

__all__ = [
    "DECIDER_EXAM",
    "KINDS",
    "MEASURER_EXAM",
    "Breach",
    "LinearToy",
    "check_dataset",
    "check_decider",
    "check_measurer",
    "double_toy",
    "exact_breach",
    "exact_radius",
    "linear_radius",
    "linear_toy",
    "overflow_toy",
    "random_instance",
    "random_model",
    "random_network",
    "relu_toy",
]

_HOMES = {
    "dataset_exam": ("check_dataset",),
    "decider_exam": ("DECIDER_EXAM", "MEASURER_EXAM", "check_decider", "check_measurer"),
    "exact": ("Breach", "exact_breach", "exact_radius"),
    "toys": (
        "KINDS",
        "LinearToy",
        "double_toy",
        "linear_radius",
        "linear_toy",
        "overflow_toy",
        "random_instance",
        "random_model",
        "random_network",
        "relu_toy",
    ),
}


def __getattr__(name: str) -> Any:
    """One of the names above, from its module."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"radii.testing.{module}"), name)
    raise AttributeError(f"module 'radii.testing' has no attribute {name!r}")
