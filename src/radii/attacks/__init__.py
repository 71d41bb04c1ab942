"""Attacks: witnesses by gradients. They can break a property, never prove one.

`refine`, which improves candidate points, is in the module of that name; the attacks by name are in `names`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radii.attacks.boundary_projection import BoundaryProjection
    from radii.attacks.effort import Effort
    from radii.attacks.fgsm import Fgsm
    from radii.attacks.foolbox import Foolbox
    from radii.attacks.min_norm import Minimum, MinimumNorm, minimum_norm
    from radii.attacks.names import make_attack
    from radii.attacks.pgd import Pgd

__all__ = [
    "BoundaryProjection",
    "Effort",
    "Fgsm",
    "Foolbox",
    "Minimum",
    "MinimumNorm",
    "Pgd",
    "make_attack",
    "minimum_norm",
]

_HOMES = {
    "BoundaryProjection": "boundary_projection",
    "Effort": "effort",
    "Fgsm": "fgsm",
    "Foolbox": "foolbox",
    "Minimum": "min_norm",
    "MinimumNorm": "min_norm",
    "Pgd": "pgd",
    "make_attack": "names",
    "minimum_norm": "min_norm",
}


def __getattr__(name: str) -> Any:
    """One of the names above, from its module, loaded on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'radii.attacks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"radii.attacks.{_HOMES[name]}"), name)
