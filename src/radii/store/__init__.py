"""The store keeps finished radii by content key: nothing is lost, nothing is done twice."""

from __future__ import annotations

from radii.store._examine import Examined, Missing
from radii.store._put import Alarm
from radii.store._read import Info, Progress
from radii.store.frame import ASKED, QUESTION, export, queries_frame, radii_frame
from radii.store.merge import Merged, merge
from radii.store.record import (
    ClassifierRecord,
    Environment,
    Evidence,
    InstanceRecord,
    QueryRecord,
    RadiusRecord,
    Setting,
    Unit,
)
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
    "Selection",
    "Setting",
    "Store",
    "Unit",
    "export",
    "merge",
    "open_store",
    "queries_frame",
    "radii_frame",
]
