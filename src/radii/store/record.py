"""What a store keeps: one unit of work, named by its content, and what was found out about it.

Unit = ClassifierRecord × InstanceRecord × Setting      the question; `unit.key` is its name
RadiusRecord = Unit + Radius + QueryRecords + Evidence  the answer, with its trace and environment
ReachRecord = Unit + Reach                              the same where a reach was asked: its setting has an ε
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from radii.errors import InputError
from radii.problem import Answer, Instance, Norm, Property, Radius, Reach, Result, Verdict
from radii.problem.property import parameters

TREES = "trees"  # the kind of evidence that `radii.evidence` checks
_PACKAGES = ("radii", "torch", "numpy", "scipy", "onnx", "onnxruntime", "highspy", "SQLAlchemy")


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, exact floats; NaN and unknown types are refused."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"store: expected parameters of plain numbers, texts, lists and maps, got {error}") from None


def content_key(value: Any) -> str:
    """A short hash of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class ClassifierRecord:
    """A classifier by its content: the name is for people and unique in a store, the fingerprint counts."""

    fingerprint: str
    name: str
    path: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class InstanceRecord:
    """An instance by its place in a data set and its content."""

    dataset: str
    split: str
    index: int
    label: int
    fingerprint: str

    @staticmethod
    def of(instance: Instance) -> InstanceRecord:
        """The record of an instance; its values stay in the data set."""
        return InstanceRecord(
            dataset=instance.dataset,
            split=instance.split,
            index=instance.index,
            label=instance.label,
            fingerprint=instance.fingerprint,
        )


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was asked and how it was searched: everything in a unit's key besides classifier and instance.

    `verifier` is the short name shown in tables, `identity` the decider's full one with version and parameters.
    `epsilon` is the size of the ball whose reach is asked; None asks for a radius.
    """

    property: str = "classification"
    target: int | None = None
    property_parameters: Mapping[str, Any] = field(default_factory=dict)
    norm: str = "linf"
    search: str = "direct"
    search_parameters: Mapping[str, Any] = field(default_factory=dict)
    verifier: str = "native"
    identity: str = ""
    seed: int | None = None
    epsilon: float | None = None

    @staticmethod
    def of(property: Property, norm: Norm | str, **others: Any) -> Setting:
        """The setting of a property and a norm; the other fields are given by name."""
        values = parameters(property)
        if others.get("epsilon") is not None and property.threshold is not None:
            del values[property.threshold]  # a reach is asked without it
        return Setting(
            property=property.kind,
            target=values.pop("target") if isinstance(values.get("target"), int) else None,
            property_parameters=values,
            norm=Norm.of(norm).name,
            **others,
        )

    @cached_property
    def measure(self) -> str:
        """What was asked for: radius or reach."""
        return "radius" if self.epsilon is None else "reach"

    @cached_property
    def key(self) -> str:
        """The hash of everything in the setting."""
        said = dataclasses.asdict(self)
        if self.epsilon is None:  # radii keep the keys that they had before there were reaches
            del said["epsilon"]
        return content_key(said)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One radius or reach to be found. The budget is not part of the key: a larger one may only narrow the result."""

    classifier: ClassifierRecord
    instance: InstanceRecord
    setting: Setting
    budget: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """The unit's name by content; equal work has an equal key on every machine."""
        return content_key([self.classifier.fingerprint, dataclasses.asdict(self.instance), self.setting.key])


@dataclass(frozen=True, kw_only=True)
class QueryRecord:
    """One query of a search: what was asked, what came back and what it cost; memory in bytes."""

    epsilon: float
    verdict: str
    reason: str | None = None
    detail: str = ""
    decider: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    nodes: int = 0
    peak_memory: int = 0

    @staticmethod
    def of(epsilon: float, answer: Answer, decider: str = "") -> QueryRecord:
        """The record of an answer; its witness belongs to the radius."""
        return QueryRecord(
            epsilon=epsilon,
            verdict=answer.verdict.value,
            reason=None if answer.reason is None else answer.reason.value,
            detail=answer.detail,
            decider=decider,
            cpu_seconds=answer.cpu_seconds,
            wall_seconds=answer.wall_seconds,
            nodes=answer.nodes,
            peak_memory=answer.peak_memory,
        )

    @staticmethod
    def of_search(radius: Radius, decider: str = "") -> tuple[QueryRecord, ...]:
        """A direct search as one row with its whole cost: the smallest ε broken, or else the largest proven."""
        end = radius.lower if radius.upper is None else radius.upper
        if end is None or radius.misclassified:
            return ()
        cost = radius.cost
        stopped = "; stopped by time" if cost.timeouts else "; stopped by memory" if cost.memory_errors else ""
        return (
            QueryRecord(
                epsilon=end,
                verdict=(Verdict.ROBUST if radius.upper is None else Verdict.BROKEN).value,
                detail=f"direct search, {radius.status.value}{stopped}",
                decider=decider,
                cpu_seconds=cost.cpu_seconds,
                wall_seconds=cost.wall_seconds,
                nodes=cost.nodes,
                peak_memory=cost.peak_memory,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What lets a checker re-verify `lower` without searching; the store does not look inside."""

    kind: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where and by what a result was made."""

    command: str = ""
    seed: int | None = None
    cpu: str = ""
    cores: int = 0
    platform: str = ""
    python: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def current(command: str = "", seed: int | None = None) -> Environment:
        """The environment of this process."""
        versions = {}
        for package in _PACKAGES:
            try:
                versions[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                continue
        return Environment(
            command=command,
            seed=seed,
            cpu=_cpu_name(),
            cores=os.cpu_count() or 0,
            platform=platform.platform(),
            python=platform.python_version(),
            versions=versions,
        )

    @cached_property
    def key(self) -> str:
        """The hash of everything in the environment."""
        return content_key(dataclasses.asdict(self))


@dataclass(frozen=True, kw_only=True)
class Record(ABC):
    """One finished unit; `finished` is in seconds since 1970 (UTC)."""

    unit: Unit
    queries: tuple[QueryRecord, ...] = ()
    evidence: Evidence | None = None
    environment: Environment | None = None
    finished: float = field(default_factory=time.time)

    @property
    @abstractmethod
    def result(self) -> Result:
        """What was found, whichever kind it is."""

    @staticmethod
    def of(unit: Unit, result: Result, **others: Any) -> Record:
        """The record of a result, whichever kind it is."""
        if isinstance(result, Reach):
            return ReachRecord(unit=unit, reach=result, **others)
        return RadiusRecord(unit=unit, radius=result, **others)


@dataclass(frozen=True, kw_only=True)
class ReachRecord(Record):
    """One finished unit whose reach was asked; its setting names the ε."""

    reach: Reach

    def __post_init__(self) -> None:
        if self.reach.epsilon != self.unit.setting.epsilon:
            raise InputError(
                f"reach: expected one at the ε that was asked, {self.unit.setting.epsilon!r}, "
                f"got one at {self.reach.epsilon!r}"
            )

    @property
    def result(self) -> Reach:
        return self.reach


@dataclass(frozen=True, kw_only=True)
class RadiusRecord(Record):
    """One finished unit whose radius was asked."""

    radius: Radius

    @property
    def result(self) -> Radius:
        return self.radius

    def __post_init__(self) -> None:
        if self.unit.setting.epsilon is not None:
            raise InputError(f"radius: expected a reach at ε = {self.unit.setting.epsilon!r}, got a radius")
        if self.evidence is None and self.radius.evidence is not None:
            object.__setattr__(self, "evidence", Evidence(kind=TREES, data=self.radius.evidence))


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
