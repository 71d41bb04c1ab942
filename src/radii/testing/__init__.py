"""Toys with exactly known radii, and the exams that every plug-in must pass; shipped for plug-in authors.

Nothing here needs pytest: an exam raises `AssertionError` with a line that says what was expected.
"""

from radii.testing.exact import Breach, exact_breach, exact_radius
from radii.testing.toys import (
    KINDS,
    LinearToy,
    linear_radius,
    linear_toy,
    random_instance,
    random_model,
    random_network,
    relu_toy,
)

__all__ = [
    "KINDS",
    "Breach",
    "LinearToy",
    "exact_breach",
    "exact_radius",
    "linear_radius",
    "linear_toy",
    "random_instance",
    "random_model",
    "random_network",
    "relu_toy",
]
