"""Attacks: witnesses by gradients. They can break a property, never prove one.

`refine`, which improves candidate points, is in the module of that name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radii.attacks.cascade import Cascade
    from radii.attacks.effort import Effort
    from radii.attacks.fgsm import Step
    from radii.attacks.foolbox import FoolboxAttack
    from radii.attacks.min_norm import Minimum, minimum_norm
    from radii.attacks.nearest import MinimalAttack
    from radii.attacks.pgd import Descent

__all__ = [
    "Cascade",
    "Descent",
    "Effort",
    "FoolboxAttack",
    "MinimalAttack",
    "Minimum",
    "Step",
    "minimum_norm",
]

_HOMES = {
    "Cascade": "cascade",
    "Descent": "pgd",
    "Effort": "effort",
    "FoolboxAttack": "foolbox",
    "MinimalAttack": "nearest",
    "Minimum": "min_norm",
    "Step": "fgsm",
    "minimum_norm": "min_norm",
}


def __getattr__(name: str) -> Any:
    """One of the names above, from its module, loaded on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'radii.attacks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"radii.attacks.{_HOMES[name]}"), name)
