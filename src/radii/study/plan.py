"""Plan: a study file resolved into units of work, each with its content key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from radii.data import Dataset
from radii.decide import Budget, Decider, Measurer
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance
from radii.store import ClassifierRecord, InstanceRecord, Unit
from radii.store.record import content_key
from radii.study.ask import Ask, recording, seeded
from radii.study.file import PropertyPart, SearchPart, StudyFile, read_study
from radii.study.patterns import Tell
from radii.study.sources import Held, Source, classifiers, inputs, settled
from radii.study.sources import located as beside


@dataclass(frozen=True, eq=False)
class Question:
    """One question to one classifier, and the decider that answers it; shared by many units."""

    source: Source | Held
    classifier: Classifier
    ask: Ask
    decider: Decider

    def check(self) -> None:
        """Refuses what the decider says it cannot answer, in one line that names verifiers that could."""
        self.ask.check(self.classifier, self.decider)


@dataclass(frozen=True, eq=False)
class Work:
    """One unit with all that is needed to do it."""

    unit: Unit
    question: Question
    instance: Instance
    only_correct: bool = False

    @property
    def key(self) -> str:
        """The unit's name by content."""
        return self.unit.key


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a study consists of; `skipped` counts inputs that nothing is asked of: their label is the target."""

    name: str
    works: list[Work]
    body: dict[str, Any] = field(repr=False)
    seed: int = 0
    skipped: int = 0
    alarms: tuple[str, ...] = ()

    @property
    def units(self) -> list[Unit]:
        """The units in the order of the file."""
        return [work.unit for work in self.works]

    def counts(self) -> dict[str, int]:
        """How many units each classifier has."""
        return dict(Counter(work.unit.classifier.name for work in self.works))


def load_plan(path: str | Path) -> Plan:
    """The resolved plan of a study file: networks and inputs are loaded and checked, nothing is computed."""
    return resolve(read_study(path), Path(path).resolve().parent)


def resolve(study: StudyFile, base: Path, tell: Tell | None = None) -> Plan:
    """The plan of a study whose relative paths start at `base`; `tell` hears what takes long."""
    bodies = [settled(part, base) for part in study.data]
    selections = [_Inputs.of(body, study.seed) for body in bodies]
    asked = list(_asks(study, base))
    works: dict[str, Work] = {}
    skipped, alarms = 0, [line for chosen in selections for line in chosen.data.alarms]
    for source, classifier in classifiers(study.classifiers, base, tell):
        alarms += classifier.alarms
        record = _record(source, classifier)
        for chosen, (part, ask, decider) in product(selections, asked):
            classifier.check_inputs(chosen.data.x, chosen.data.y)
            asked_of: set[int] = set()
            for question, rows in _questions(Question(source, classifier, ask, decider), part, chosen.data):
                question.check()
                asked_of.update(rows)
                setting = question.ask.setting(decider)
                for row in rows:
                    unit = Unit(classifier=record, instance=chosen.records[row], setting=setting, budget=ask.costs())
                    works.setdefault(unit.key, Work(unit, question, chosen.instances[row], chosen.only_correct))
            skipped += len(chosen.instances) - len(asked_of)
    # The units' keys are part of the plan's identity: with another version of a verifier the same file is another plan.
    whole = {**study.model_dump(mode="json"), "data": bodies, "units": content_key(sorted(works))}
    return Plan(study.name, list(works.values()), whole, study.seed, skipped, tuple(dict.fromkeys(alarms)))


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


def _record(source: Source, classifier: Classifier) -> ClassifierRecord:
    return ClassifierRecord(
        fingerprint=classifier.fingerprint,
        name=classifier.name,
        path=source.path,
        metadata={"options": source.options} if source.options else {},
    )


def _asks(study: StudyFile, base: Path) -> Iterator[tuple[PropertyPart, Ask, Decider]]:
    from radii.verifiers.catalogue import located, make

    budget = Budget(**study.budget.values())
    for part, norm, search, verifier in product(study.property, study.norm, study.search, study.verifier):
        if isinstance(verifier, dict) and isinstance(verifier.get("scripts"), str):
            verifier = {**verifier, "scripts": str(beside(verifier["scripts"], base))}
        decider = make(verifier)
        if not (isinstance(verifier, dict) and "seed" in verifier):
            decider = seeded(decider, study.seed)
        if study.evidence:
            decider = recording(decider)
        if search.method == "direct" and not isinstance(decider, Measurer):
            raise InputError(
                "search direct: expected a verifier that measures radii (native, milp, envelope), got "
                f"{decider.identity}; use search: {{method: kbinary, grid: {{start: …, stop: …, step: …}}}}"
            )
        decider = located(decider, base)
        named = isinstance(verifier, str) and "{network}" not in verifier
        ask = Ask(
            property=part.properties(None)[0],
            norm=norm,
            budget=budget,
            verifier=str(verifier) if named else decider,
            seed=study.seed,
            evidence=study.evidence,
            **_search(search),
        )
        yield part, ask, decider


def _search(part: SearchPart) -> dict[str, Any]:
    if part.method == "direct":
        return {"tolerance": part.tolerance or 0.002, "limit": part.limit}
    return {"grid": part.grid, "k": part.k or 1, "method": part.method}


def _questions(question: Question, part: PropertyPart, data: Dataset) -> Iterator[tuple[Question, list[int]]]:
    """The question once for each property that the entry means, with the rows it can be asked of."""
    for property in part.properties(question.classifier.classes):
        rows = [row for row, label in enumerate(data.y.tolist()) if property.asks(label)]
        yield replace(question, ask=replace(question.ask, property=property)), rows
