"""Audit: stored results checked again without searching; every row is an item of the result, whatever it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from radii.errors import InputError, RadiiError, StoreError
from radii.evidence import Claim, check
from radii.problem import Classification, Instance
from radii.store import Examined, RadiusRecord, ReachRecord, Record, Store
from radii.store.record import TREES, canonical, content_key
from radii.study import examine, examine_reach
from radii.study.recall import Recall, property_of

# What a lower end rests on: a proof checked just now, the input's own class, another tool's word, nothing stored.
EVIDENCE, PREDICTION, CLAIM, NOTHING = "evidence", "prediction", "claim", "nothing"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something wrong, or something that could not be looked at, about one unit."""

    classifier: str
    dataset: str
    index: int
    message: str
    key: str

    @staticmethod
    def of(item: Any, message: str) -> Finding:
        """A finding about a stored row, an alarm or a missing unit: anything that names one."""
        return Finding(
            classifier=item.classifier, dataset=item.dataset, index=item.index, message=message, key=item.key
        )


@dataclass(kw_only=True)
class Row:
    """One stored radius or reach: what its proven end rests on (None for none), what is wrong, what was not seen."""

    classifier: str
    dataset: str
    index: int
    key: str
    lower: float | None = None
    upper: float | None = None
    status: str = ""
    rests_on: str | None = None
    wrong: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


@dataclass
class Audit:
    """What was looked at and what was found; lower ends without evidence are counted, not doubted."""

    records: int = 0
    predicted: int = 0  # inputs whose class the original model was asked again
    witnesses: int = 0
    misclassified: int = 0
    proofs: int = 0
    evidence: int = 0
    confirmed: int = 0  # proofs whose evidence was checked
    refused: int = 0  # proofs whose evidence does not show them; each is among `wrong`
    unsupported: int = 0  # lower ends that rest on nothing stored
    claims: int = 0  # lower ends that rest on another tool's word
    reaches: int = 0  # of the records
    reach_proofs: int = 0  # proven ends of reaches, whose proofs are not recorded: taken on trust
    wrong: list[Finding] = field(default_factory=list)
    unchecked: list[Finding] = field(default_factory=list)
    missing: list[Finding] = field(default_factory=list)  # planned, and without a result
    rows: list[Row] = field(default_factory=list)


def audit(store: Store) -> Audit:
    """Every row looked at with the original models, the data and arithmetic; then rows against each other and plans."""
    result = Audit()
    recall = Recall(_studies(store, result))
    ends, reached = _Ends(), examine_reach.Ends()
    for item in store.examine():
        row = _look(item, recall, result)
        result.rows.append(row)
        result.wrong += [Finding.of(row, line) for line in row.wrong]
        result.unchecked += [Finding.of(row, line) for line in row.unchecked]
        if isinstance(item.record, RadiusRecord):
            ends.add(item.record, row)
        elif isinstance(item.record, ReachRecord):
            reached.add(_question(item.record), item.record, row)
    result.wrong += [*ends.opposed(), *(Finding.of(row, line) for row, line in reached.opposed())]
    seen = {(one.key, one.message) for one in result.wrong}
    for alarm in store.alarms():
        if (alarm.key, alarm.message) not in seen:  # the note of the row says it already
            result.wrong.append(Finding.of(alarm, f"alarm: {alarm.message}"))
    for lost in store.missing():
        line = f"no result, though study {lost.study!r} plans one" if lost.study else "no result"
        if lost.remains:
            result.wrong.append(Finding.of(lost, f"{line}: its radius was deleted, parts of it are still there"))
        else:
            result.missing.append(Finding.of(lost, line))
    return result


def _studies(store: Store, result: Audit) -> dict[str, dict[str, Any]]:
    """The studies, once their plans are found whole; a body that cannot be read is a finding."""
    try:
        studies = store.studies()
    except StoreError as error:
        result.wrong.append(Finding(classifier="-", dataset="-", index=-1, message=str(error), key=""))
        return {}
    for name, body in studies.items():
        if "units" in body and content_key(sorted(store.planned_keys(name))) != body["units"]:
            line = f"the plan of study {name!r} is not the one it began with: units were taken out or put in"
            result.wrong.append(Finding(classifier="-", dataset="-", index=-1, message=line, key=""))
    return studies


def _look(item: Examined, recall: Recall, result: Audit) -> Row:
    """One row with everything that can be said against it."""
    result.records += 1
    row = Row(classifier=item.classifier, dataset=item.dataset, index=item.index, key=item.key, status=item.status)
    row.wrong += item.faults
    record = item.record
    if isinstance(record, ReachRecord):
        _look_at_reach(record, item, recall, row, result)
    if not isinstance(record, RadiusRecord):
        return row
    radius = record.radius
    row.lower, row.upper = radius.lower, radius.upper
    row.wrong += [line for line in examine.row(record, item.status) if not (item.faults and "without a" in line)]
    proven = radius.lower is not None and not radius.misclassified
    result.proofs += proven
    result.evidence += record.evidence is not None
    if record.evidence is not None:
        row.rests_on = _confirm(record, recall, row, result)
    elif proven:
        row.rests_on = CLAIM if radius.proof is not None and radius.proof.arithmetic == "claim" else NOTHING
    _forward(record, recall, row, result)
    result.unsupported += row.rests_on == NOTHING
    result.claims += row.rests_on == CLAIM
    return row


def _look_at_reach(record: ReachRecord, item: Examined, recall: Recall, row: Row, result: Audit) -> None:
    """A reach with everything that can be said against it."""
    reach = record.reach
    row.lower, row.upper = reach.lower, reach.upper
    row.wrong += [line for line in examine_reach.row(record, item.status) if not (item.faults and "without a" in line)]
    result.reaches += 1
    if reach.proven is not None:
        result.reach_proofs += 1
        row.rests_on = NOTHING
    try:
        classifier = recall.classifier(record.unit.classifier)
        instance = _input(record, recall, row)
        if instance is None:
            return
        row.wrong += examine_reach.forward(record, classifier, instance)
        result.predicted += 1
        if reach.witness is not None:
            result.witnesses += 1
            row.wrong += examine_reach.witnessed(record, classifier, instance, reach.witness)
    except RadiiError as error:
        row.unchecked.append(str(error))


def _forward(record: RadiusRecord, recall: Recall, row: Row, result: Audit) -> None:
    """The label, the prediction, the property at the input itself and the witness, with the network and the data."""
    try:
        classifier = recall.classifier(record.unit.classifier)
        instance = _input(record, recall, row)
        if instance is None:
            return
        against = list(examine.forward(record, classifier, instance))
        result.predicted += 1
        result.misclassified += record.radius.misclassified
        if record.radius.lower == 0.0 and row.rests_on == NOTHING and not against:
            row.rests_on = PREDICTION
        row.wrong += against
        if record.radius.witness is not None:
            result.witnesses += not record.radius.misclassified
            row.wrong += examine.witnessed(record, classifier, instance, record.radius.witness)
    except RadiiError as error:
        row.unchecked.append(str(error))


def _input(record: Record, recall: Recall, row: Row) -> Instance | None:
    """The input; None where the data set gives it another label, which is wrong. Not found is an `InputError`."""
    where = record.unit.instance
    try:
        found = recall.instance(where)
    except InputError:
        label = recall.label_of(where)
        if label is None:
            raise
    else:
        label = found.label
        if label == where.label:
            return found
    row.wrong.append(f"label {where.label}, but the data set says {label}")
    return None


def _confirm(record: RadiusRecord, recall: Recall, row: Row, result: Audit) -> str | None:
    """What the lower end rests on, once its evidence is checked; it speaks for this record and no other."""
    evidence = record.evidence
    if evidence is None or evidence.kind != TREES:
        kinds = f"expected evidence of kind {TREES}, got {evidence and evidence.kind!r}"
        row.unchecked.append(f"{kinds}; a later version of radii may know it")
        return None
    try:
        classifier = recall.classifier(record.unit.classifier)
    except InputError as error:
        row.unchecked.append(str(error))
        return None
    try:
        _agree(check(evidence.data, classifier), record)
        result.confirmed += 1
    except InputError as error:
        result.refused += 1
        row.wrong.append(str(error))
        return None
    return EVIDENCE


def _agree(claim: Claim, record: RadiusRecord) -> None:
    """Raises when a proven claim is not about this record, or about less of it."""
    unit, lower, proof = record.unit, record.radius.lower, record.radius.proof
    said = (claim.instance, claim.label, claim.target, claim.norm)
    asked = (unit.instance.fingerprint, unit.instance.label, unit.setting.target, unit.setting.norm)
    if said != asked or property_of(unit.setting) != Classification(claim.target):
        raise InputError(f"evidence: expected it to speak of {asked}, got {said}")
    if lower is None or claim.radius < lower:
        raise InputError(f"evidence: expected a proof of radius {lower!r}, got one of {claim.radius!r}")
    if proof is not None and proof.arithmetic == "float32" and claim.arithmetic != "float32":
        raise InputError("evidence: expected a proof for float32 arithmetic, got one for the reals")


def _question(record: Record) -> tuple[Any, ...]:
    """What rows must agree in to be compared: network, input, property and norm."""
    unit, setting = record.unit, record.unit.setting
    asked = (setting.property, setting.target, canonical(dict(setting.property_parameters)))
    return (unit.classifier.fingerprint, unit.instance.fingerprint, setting.norm, *asked)


class _Ends:
    """The largest proof and the nearest witness of every question; whole records would fill the memory."""

    def __init__(self) -> None:
        self._proven: dict[tuple[Any, ...], tuple[float, str, Row]] = {}
        self._broken: dict[tuple[Any, ...], tuple[float, str, Row]] = {}

    def add(self, record: RadiusRecord, row: Row) -> None:
        """Take note of a row's ends."""
        radius, question, verifier = record.radius, _question(record), record.unit.setting.verifier
        if radius.misclassified:
            return
        if radius.lower is not None and radius.lower > self._proven.get(question, (-1.0,))[0]:
            self._proven[question] = (radius.lower, verifier, row)
        if radius.upper is not None and radius.upper < self._broken.get(question, (math.inf,))[0]:
            self._broken[question] = (radius.upper, verifier, row)

    def opposed(self) -> Iterator[Finding]:
        """Every proof of one verifier beyond a witness of another."""
        for question, (lower, prover, row) in self._proven.items():
            upper, breaker, _ = self._broken.get(question, (math.inf, "", row))
            if lower >= upper:
                yield Finding.of(row, f"proven up to {lower!r} but broken at {upper!r} ({prover} and {breaker})")
