"""Plan: a study file resolved into units of work, each with its content key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radii.data import Dataset
from radii.decide import Budget, Decider, Measurer
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance
from radii.store import ClassifierRecord, InstanceRecord, Unit
from radii.store.record import content_key
from radii.study.patterns import Tell
from radii.study.question import Question
from radii.study.settings import RadiusSettings, recording, seeded
from radii.study.sources import AnySource, Held, classifiers, inputs, settled
from radii.study.sources import located as beside

if TYPE_CHECKING:
    from radii.study.file import PropertyPart, SearchPart, StudyFile


@dataclass(frozen=True, eq=False)
class PlannedUnit:
    """One unit with all that is needed to do it; `record` is what the store knows it by."""

    record: Unit
    question: Question
    instance: Instance
    only_correct: bool = False

    @property
    def key(self) -> str:
        """The unit's name by content."""
        return self.record.key


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a study consists of; `skipped` counts inputs that nothing is asked of: their label is the target."""

    name: str
    units: list[PlannedUnit]
    body: dict[str, Any] = field(repr=False)
    seed: int = 0
    skipped: int = 0
    alarms: tuple[str, ...] = ()

    @property
    def records(self) -> list[Unit]:
        """The units in the order of the file, as the store knows them."""
        return [unit.record for unit in self.units]

    def counts(self) -> dict[str, int]:
        """How many units each classifier has."""
        return dict(Counter(unit.record.classifier.name for unit in self.units))


def load_plan(path: str | Path) -> Plan:
    """The resolved plan of a study file: networks and inputs are loaded and checked, nothing is computed."""
    from radii.study.file import read_study

    return resolve(read_study(path), Path(path).resolve().parent)


def resolve(study: StudyFile, base: Path, tell: Tell | None = None, light: bool = False) -> Plan:
    """The plan of a study whose relative paths start at `base`; `tell` hears what takes long.

    `light` is for a plan that is only looked at: its networks are read and checked without torch.
    """
    bodies = [settled(part, base) for part in study.data]
    selections = [_Inputs.of(body, study.seed) for body in bodies]
    asked = list(_settings(study, base))
    units: dict[str, PlannedUnit] = {}
    skipped, alarms = 0, [line for chosen in selections for line in chosen.data.alarms]
    seconds = study.budget.values()["seconds"]
    for source, classifier in classifiers(study.classifiers, base, tell, light, seconds=seconds):
        alarms += classifier.alarms
        record = _record(source, classifier)
        for chosen, (part, settings, decider) in product(selections, asked):
            labelled = settings.reach is None or settings.property.needs_label
            classifier.check_inputs(chosen.data.x, chosen.data.y if labelled else None)
            asked_of: set[int] = set()
            for question, rows in _questions(Question(source, classifier, settings, decider), part, chosen.data):
                question.check()
                asked_of.update(rows)
                setting, budget = question.settings.setting(decider), settings.costs()
                for row in rows:
                    unit = Unit(classifier=record, instance=chosen.records[row], setting=setting, budget=budget)
                    units.setdefault(unit.key, PlannedUnit(unit, question, chosen.instances[row], chosen.only_correct))
            skipped += len(chosen.instances) - len(asked_of)
    # The units' keys are part of the plan's identity: with another version of a verifier the same file is another plan.
    whole = {**study.model_dump(mode="json"), "data": bodies, "units": content_key(sorted(units))}
    if study.measure == [None]:  # the body that radii had before there were reaches
        del whole["measure"]
    return Plan(study.name, list(units.values()), whole, study.seed, skipped, tuple(dict.fromkeys(alarms)))


@dataclass(frozen=True, eq=False)
class _Inputs:
    """One data part, loaded: its inputs and their records, made once for all classifiers."""

    data: Dataset
    instances: list[Instance]
    records: list[InstanceRecord]
    only_correct: bool

    @staticmethod
    def of(body: dict[str, Any], seed: int) -> _Inputs:
        data = inputs(body, seed)
        found = data.instances
        return _Inputs(data, found, [InstanceRecord.of(one) for one in found], body["only"] == "correct")


def _record(source: AnySource, classifier: Classifier) -> ClassifierRecord:
    return ClassifierRecord(
        fingerprint=classifier.fingerprint,
        name=classifier.name,
        path="" if isinstance(source, Held) else source.path,
        metadata={
            **source.metadata,
            **({"training": classifier.card} if classifier.card else {}),
        },
    )


def _settings(study: StudyFile, base: Path) -> Iterator[tuple[PropertyPart, RadiusSettings, Decider]]:
    from radii.verifiers.catalogue import located, make

    budget = Budget(**study.budget.values())
    asked = product(study.property, study.measure, study.norm, study.search, study.verifier)
    for part, reach, norm, search, verifier in asked:
        if isinstance(verifier, dict) and isinstance(verifier.get("scripts"), str):
            verifier = {**verifier, "scripts": str(beside(verifier["scripts"], base))}
        decider = make(verifier)
        if not (isinstance(verifier, dict) and "seed" in verifier):
            decider = seeded(decider, study.seed)
        if study.evidence:
            decider = recording(decider)
        if reach is not None:
            RadiusSettings.reacher(decider)
        elif search.method == "direct" and not isinstance(decider, Measurer):
            raise InputError(
                "search direct: expected a verifier that measures radii (native, milp, envelope), got "
                f"{decider.identity}; use search: {{method: kbinary, grid: {{start: …, stop: …, step: …}}}}"
            )
        decider = located(decider, base)
        named = isinstance(verifier, str) and "{network}" not in verifier
        settings = RadiusSettings(
            property=part.properties(None, reach is not None)[0],
            reach=reach,
            norm=norm,
            budget=budget,
            verifier=str(verifier) if named else decider,
            seed=study.seed,
            evidence=study.evidence,
            **_search(search),
        )
        yield part, settings, decider


def _search(part: SearchPart) -> dict[str, Any]:
    if part.method == "direct":
        return {"tolerance": part.tolerance or 0.0, "limit": part.limit}
    return {"grid": part.grid, "k": part.k or 1, "method": part.method}


def _questions(question: Question, part: PropertyPart, data: Dataset) -> Iterator[tuple[Question, list[int]]]:
    """The question once for each property that the entry means, with the rows it can be asked of."""
    for property in part.properties(question.classifier.classes, question.settings.reach is not None):
        rows = [row for row, label in enumerate(data.y.tolist()) if property.asks(label)]
        yield replace(question, settings=replace(question.settings, property=property)), rows
