"""radii: how far can an input move before a neural network changes its mind?

>>> import radii
>>> dist = radii.Distribution.from_arrays(lower=[0.01, 0.03], upper=[0.02, 0.04])
>>> dist.robust_accuracy(0.025).proven
0.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from radii.api import distribution, ensemble, load_classifier, load_dataset, measures, radius, reach
    from radii.data import Dataset
    from radii.decide import Budget, replay
    from radii.ensembles.combine import combine
    from radii.errors import InputError, RadiiError
    from radii.models.classifier import Classifier
    from radii.problem import (
        Answer,
        Classification,
        Domain,
        Instance,
        Lipschitz,
        Norm,
        Probability,
        Property,
        Query,
        Radius,
        Reach,
        Rows,
        Standard,
        Status,
        StrongClassification,
        Verdict,
        Witness,
    )
    from radii.report.distribution import Distribution
    from radii.stats import Guarantee
    from radii.train.run import train

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Budget",
    "Classification",
    "Classifier",
    "Dataset",
    "Distribution",
    "Domain",
    "Guarantee",
    "InputError",
    "Instance",
    "Lipschitz",
    "Norm",
    "Probability",
    "Property",
    "Query",
    "RadiiError",
    "Radius",
    "Reach",
    "Rows",
    "Standard",
    "Status",
    "StrongClassification",
    "Verdict",
    "Witness",
    "__version__",
    "combine",
    "distribution",
    "ensemble",
    "load_classifier",
    "load_dataset",
    "measures",
    "radius",
    "reach",
    "replay",
    "train",
]

_HOME = {
    **dict.fromkeys(
        ("distribution", "ensemble", "load_classifier", "load_dataset", "measures", "radius", "reach"), "radii.api"
    ),
    **dict.fromkeys(("Budget", "replay"), "radii.decide"),
    **dict.fromkeys(("InputError", "RadiiError"), "radii.errors"),
    "Classifier": "radii.models.classifier",
    "combine": "radii.ensembles.combine",
    "Dataset": "radii.data",
    "Distribution": "radii.report.distribution",
    "Guarantee": "radii.stats",
    "train": "radii.train.run",
}


def __getattr__(name: str) -> Any:
    """The public name, loaded on first use: importing radii must stay fast and loads neither torch nor onnx."""
    if name not in __all__:
        raise AttributeError(f"module 'radii' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME.get(name, "radii.problem")), name)
    # Loading radii.train.run has put the package radii.train here, which is called as the function of its name.
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted(__all__)
