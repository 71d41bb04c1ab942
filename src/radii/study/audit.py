"""Audit: stored results checked again without searching: witnesses replayed, evidence checked, contradictions found."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from radii.decide import replay
from radii.errors import InputError
from radii.evidence import Claim, check
from radii.models.classifier import Classifier
from radii.problem import Instance, Property, Query
from radii.store import RadiusRecord, Store
from radii.store.record import TREES, Evidence
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
    confirmed: int = 0  # proofs whose evidence was checked
    refused: int = 0  # proofs whose evidence does not show them; each is among `wrong`
    wrong: list[Finding] = field(default_factory=list)
    unchecked: list[Finding] = field(default_factory=list)


def audit(store: Store) -> Audit:
    """Replay witnesses on the original models, predict misclassified inputs, check evidence, compare what overlaps."""
    result, recall = Audit(), Recall(store)
    ends: dict[tuple[Any, ...], list[RadiusRecord]] = defaultdict(list)
    for record in store.records():
        result.records += 1
        result.proofs += record.radius.lower is not None and not record.radius.misclassified
        result.evidence += record.evidence is not None
        if record.evidence is not None:
            _confirm(record, record.evidence, recall, result)
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


def _confirm(record: RadiusRecord, evidence: Evidence, recall: Recall, result: Audit) -> None:
    """Whether the evidence of a record proves its lower end; it speaks for this record and no other."""
    if evidence.kind != TREES:
        kinds = f"expected evidence of kind {TREES}, got {evidence.kind!r}"
        result.unchecked.append(Finding.of(record, f"{kinds}; a later version of radii may know it"))
        return
    try:
        classifier = recall.classifier(record.unit.classifier)
    except InputError as error:
        result.unchecked.append(Finding.of(record, str(error)))
        return
    try:
        _agree(check(evidence.data, classifier), record)
        result.confirmed += 1
    except InputError as error:
        result.refused += 1
        result.wrong.append(Finding.of(record, str(error)))


def _agree(claim: Claim, record: RadiusRecord) -> None:
    """Raises when a proven claim is not about this record, or about less of it."""
    unit, lower, proof = record.unit, record.radius.lower, record.radius.proof
    said = (claim.instance, claim.label, claim.target, claim.norm)
    asked = (unit.instance.fingerprint, unit.instance.label, unit.setting.target, unit.setting.norm)
    if said != asked or unit.setting.property != "classification":
        raise InputError(f"evidence: expected it to speak of {asked}, got {said}")
    if lower is None or claim.radius < lower:
        raise InputError(f"evidence: expected a proof of radius {lower!r}, got one of {claim.radius!r}")
    if proof is not None and proof.arithmetic == "float32" and claim.arithmetic != "float32":
        raise InputError("evidence: expected a proof for float32 arithmetic, got one for the reals")


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
