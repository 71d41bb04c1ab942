"""Recall: the networks and inputs behind stored results, found again from what the store knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from radii.data import Dataset
from radii.data.sources.registry import SOURCES
from radii.ensembles.members import Joint
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Property
from radii.problem.property import find, made, make, without_threshold
from radii.store import ClassifierRecord, InstanceRecord, Setting
from radii.study.sources import Source, Together, inputs


class Recall:
    """Loads on first use; what cannot be found again is an `InputError` that says what is missing."""

    def __init__(self, studies: Mapping[str, Mapping[str, Any]]) -> None:
        parts = ((body.get("data"), body.get("seed", 0)) for body in studies.values())
        self._bodies = [(part, seed) for data, seed in parts if isinstance(data, list) for part in data]
        self._classifiers: dict[str, Classifier | str] = {}
        self._inputs: dict[tuple[str, int, str], Instance] = {}
        self._places: dict[tuple[str, str, int], list[Instance]] = {}
        self._seen: set[str] = set()

    def classifier(self, record: ClassifierRecord) -> Classifier:
        """The classifier of a record, with the fingerprint that it had."""
        if record.fingerprint not in self._classifiers:
            try:
                self._classifiers[record.fingerprint] = self._load(record)
            except InputError as error:
                self._classifiers[record.fingerprint] = str(error)  # the error itself would keep what was in hand
        found = self._classifiers[record.fingerprint]
        if isinstance(found, str):
            raise InputError(found)
        return found

    def instance(self, record: InstanceRecord) -> Instance:
        """The input of a record, with the content that it had."""
        key = (record.split, record.index, record.fingerprint)
        while key not in self._inputs:
            if not self._more(record):
                raise InputError(
                    f"{record.dataset} {record.split} input {record.index}: expected the input that the store speaks "
                    "of, got none with its content; check the data set's folder"
                )
        return self._inputs[key]

    def label_of(self, record: InstanceRecord) -> int | None:
        """The label that the data set gives to the values of a record; None where it has no such values there."""
        for found in self._places.get((record.dataset, record.split, record.index), ()):
            if record.fingerprint in (found.fingerprint, replace(found, label=record.label).fingerprint):
                return found.label
        return None

    def _load(self, record: ClassifierRecord) -> Classifier:
        said = record.metadata.get("combined")
        try:
            if said is not None:
                return Together.recalled(record.name, record.fingerprint, said).load(check=False)
        except (TypeError, KeyError) as error:
            raise InputError(f"classifier {record.name}: expected members that this version knows: {error}") from None
        if not record.path:
            raise InputError(f"classifier {record.name}: expected the file it came from, got none in the store")
        options: dict[str, Any] = dict(record.metadata.get("options", {}))
        try:
            return Source(record.path, record.name, options, record.fingerprint).load(check=False)
        except TypeError as error:
            raise InputError(f"classifier {record.name}: expected options that this version knows: {error}") from None

    def _more(self, record: InstanceRecord) -> bool:
        """Whether another selection could be loaded: those of the studies first, then the data set by its name."""
        while self._bodies:
            body, seed = self._bodies.pop(0)
            try:
                self._take(inputs(body, seed))
                return True
            except (InputError, OSError, KeyError, TypeError, AttributeError):  # files are gone, or the body is damaged
                continue
        place = f"{record.dataset}/{record.split}"
        if record.dataset not in SOURCES or place in self._seen:
            return False
        self._seen.add(place)
        try:
            self._take(inputs({"source": record.dataset, "split": record.split}))
        except (InputError, OSError):
            return False
        return True

    def _take(self, data: Dataset) -> None:
        for instance in data.instances:
            self._inputs[instance.split, instance.index, instance.fingerprint] = instance
            self._places.setdefault((instance.dataset, instance.split, instance.index), []).append(instance)


def property_of(setting: Setting) -> Property:
    """The property that a setting names."""
    target = {} if setting.target is None else {"target": setting.target}
    if setting.property == Joint.kind:  # only ensembles ask it: no study file may name it
        return made(Joint, setting.property_parameters)
    values = {**setting.property_parameters, **target}
    return make(
        setting.property, values if setting.epsilon is None else without_threshold(find(setting.property), values)
    )
