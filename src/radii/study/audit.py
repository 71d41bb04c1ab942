"""Audit: stored results checked again without searching: witnesses replayed, contradictions looked for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from radii.decide import replay
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Property, Query
from radii.store import RadiusRecord, Store
from radii.study.recall import Recall, property_of


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong, or something that could not be looked at, about one unit."""

    classifier: str
    dataset: str
    index: int
    message: str
    key: str

    @staticmethod
    def of(record: RadiusRecord, message: str) -> Finding:
        """A finding about a record."""
        unit = record.unit
        return Finding(
            classifier=unit.classifier.name,
            dataset=unit.instance.dataset,
            index=unit.instance.index,
            message=message,
            key=unit.key,
        )


@dataclass
class Audit:
    """What was replayed and what was found; proofs without stored evidence are counted, not doubted."""

    records: int = 0
    witnesses: int = 0
    misclassified: int = 0
    proofs: int = 0
    evidence: int = 0
    wrong: list[Finding] = field(default_factory=list)
    unchecked: list[Finding] = field(default_factory=list)


def audit(store: Store) -> Audit:
    """Replay every witness on the original model, predict every misclassified input, compare what overlaps."""
    result, recall = Audit(), Recall(store)
    ends: dict[tuple[Any, ...], list[RadiusRecord]] = defaultdict(list)
    for record in store.records():
        result.records += 1
        result.proofs += record.radius.lower is not None and not record.radius.misclassified
        result.evidence += record.evidence is not None
        setting = record.unit.setting
        place = (record.unit.classifier.fingerprint, record.unit.instance.fingerprint, setting.norm)
        asked = (setting.property, setting.target, tuple(sorted(setting.property_parameters.items())))
        ends[place + asked].append(record)
        if record.radius.note.startswith("contradiction"):
            result.wrong.append(Finding.of(record, record.radius.note))
        try:
            _look(record, recall, result)
        except InputError as error:
            result.unchecked.append(Finding.of(record, str(error)))
    for group in ends.values():
        result.wrong += _opposed(group)
    for alarm in store.alarms():
        result.wrong.append(
            Finding(
                classifier=alarm.classifier,
                dataset=alarm.dataset,
                index=alarm.index,
                message=f"alarm: {alarm.message}",
                key=alarm.key,
            )
        )
    return result


def _look(record: RadiusRecord, recall: Recall, result: Audit) -> None:
    radius = record.radius
    if radius.witness is None and not radius.misclassified:
        if radius.upper is not None:
            result.wrong.append(Finding.of(record, f"upper end {radius.upper!r} without a witness"))
        return
    classifier = recall.classifier(record.unit.classifier)
    instance = recall.instance(record.unit.instance)
    if radius.misclassified:
        result.misclassified += 1
        if not _fails(classifier, instance, property_of(record.unit.setting)):
            result.wrong.append(Finding.of(record, "stored as misclassified, but the original model gets it right"))
        return
    if radius.witness is None or radius.upper is None:
        return
    result.witnesses += 1
    query = Query(instance, radius.upper, property_of(record.unit.setting), _norm(record))
    if replay(classifier, query, radius.witness.x) is None:
        result.wrong.append(
            Finding.of(record, f"the witness at {radius.upper!r} does not replay on the original model")
        )


def _fails(classifier: Classifier, instance: Instance, property: Property) -> bool:
    """Whether the original model gets the input wrong, or the property does not hold where it stands."""
    outputs = classifier.reference(instance.x[None])[0]
    others = np.delete(outputs, instance.label)
    if others.max() >= outputs[instance.label]:
        return True
    return property.violations(classifier.classes, instance.label, outputs).violated(outputs)


def _norm(record: RadiusRecord) -> Any:
    return record.unit.setting.norm


def _opposed(group: list[RadiusRecord]) -> list[Finding]:
    """A proof of one verifier beyond a witness of another."""
    proven = [r for r in group if r.radius.lower is not None and not r.radius.misclassified]
    broken = [r for r in group if r.radius.upper is not None and not r.radius.misclassified]
    if not proven or not broken:
        return []
    low = max(proven, key=lambda r: r.radius.lower or 0.0)
    high = min(broken, key=lambda r: r.radius.upper or 0.0)
    if (low.radius.lower or 0.0) < (high.radius.upper or 0.0):
        return []
    names = f"{low.unit.setting.verifier} and {high.unit.setting.verifier}"
    said = f"proven up to {low.radius.lower!r} but broken at {high.radius.upper!r} ({names})"
    return [Finding.of(low, said)]
