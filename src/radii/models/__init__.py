"""Networks: from ONNX files and torch modules into one small graph that can be evaluated, bounded and solved."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radii.models.classifier import Classifier
    from radii.models.graph import Graph
    from radii.models.load import load_classifier
    from radii.models.preprocessing import Preprocessing
    from radii.models.zoo import architectures

__all__ = ["Classifier", "Graph", "Preprocessing", "architectures", "load_classifier"]

_HOMES = {
    "Classifier": "classifier",
    "Graph": "graph",
    "Preprocessing": "preprocessing",
    "architectures": "zoo",
    "load_classifier": "load",
}


def __getattr__(name: str) -> Any:
    """One of the names above, from its module, loaded on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'radii.models' has no attribute {name!r}")
    return getattr(importlib.import_module(f"radii.models.{_HOMES[name]}"), name)
