"""The store keeps finished radii and reaches by content key: nothing is lost, nothing is done twice."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from radii.store.record import (
    ClassifierRecord,
    Environment,
    Evidence,
    InstanceRecord,
    QueryRecord,
    RadiusRecord,
    ReachRecord,
    Record,
    Setting,
    Unit,
)

if TYPE_CHECKING:
    from radii.store._examine import Examined, Missing
    from radii.store._put import Alarm
    from radii.store._read import Info, Progress
    from radii.store.frame import ASKED, QUESTION, export, queries_frame, radii_frame, reaches_frame
    from radii.store.merging import Merged, merge
    from radii.store.select import Selection
    from radii.store.sql import EmptyStoreError, Store, open_store

__all__ = [
    "ASKED",
    "QUESTION",
    "Alarm",
    "ClassifierRecord",
    "EmptyStoreError",
    "Environment",
    "Evidence",
    "Examined",
    "Info",
    "InstanceRecord",
    "Merged",
    "Missing",
    "Progress",
    "QueryRecord",
    "RadiusRecord",
    "ReachRecord",
    "Record",
    "Selection",
    "Setting",
    "Store",
    "Unit",
    "export",
    "merge",
    "open_store",
    "queries_frame",
    "radii_frame",
    "reaches_frame",
]

_HOME = {
    **dict.fromkeys(("Examined", "Missing"), "_examine"),
    "Alarm": "_put",
    **dict.fromkeys(("Info", "Progress"), "_read"),
    **dict.fromkeys(("ASKED", "QUESTION", "export", "queries_frame", "radii_frame", "reaches_frame"), "frame"),
    **dict.fromkeys(("Merged", "merge"), "merging"),
    "Selection": "select",
    **dict.fromkeys(("EmptyStoreError", "Store", "open_store"), "sql"),
}


def __getattr__(name: str) -> Any:
    """What needs a database is loaded on first use: a plan only names its units, and SQLAlchemy takes a while."""
    if name not in _HOME:
        raise AttributeError(f"module 'radii.store' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"radii.store.{_HOME[name]}"), name)
    globals()[name] = value
    return value
