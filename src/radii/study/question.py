"""Question: what is asked of every input of one classifier, and the decider that answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from radii.decide import Decider
from radii.engine.prepare import one_thread
from radii.models.classifier import Classifier
from radii.problem import Instance, Radius, Reach, Result
from radii.problem.radius import Cost
from radii.problem.tolerance import share_of
from radii.search import direct, in_batches
from radii.search.drive import Heard
from radii.store import ClassifierRecord, InstanceRecord, Unit
from radii.study.settings import RadiusSettings
from radii.study.sources import AnySource, Held

BATCH = 32  # inputs of one question that share batches in one process


@dataclass(frozen=True, eq=False)
class Question:
    """One question to one classifier, answered by one decider for any number of inputs; shared by many units.

    `source` is how workers load the classifier.
    """

    source: AnySource
    classifier: Classifier
    settings: RadiusSettings
    decider: Decider

    def __post_init__(self) -> None:
        if type(self.classifier) is not Classifier:  # plain networks need nothing of ensembles
            from radii.ensembles.combined import suited

            object.__setattr__(self, "decider", suited(self.decider, self.classifier))

    @staticmethod
    def of(classifier: Classifier, settings: RadiusSettings) -> Question:
        """The question to a classifier that is loaded; what the decider says it cannot answer is refused."""
        made = Question(Held(classifier), classifier, settings, settings.decider())
        made.check()
        return made

    def check(self) -> None:
        """Refuses what the decider says it cannot answer, in one line that names verifiers that could."""
        self.settings.check(self.classifier, self.decider)

    def check_labels(self, instances: Sequence[Instance]) -> None:
        """Refuses a target that some input cannot have before any work is done."""
        for label in sorted({instance.label for instance in instances}):
            self.settings.property.check(self.classifier.classes, label)

    def unit(self, instance: Instance) -> Unit:
        """The unit of one input: what the store knows its result by."""
        net = self.classifier
        record = ClassifierRecord(
            fingerprint=net.fingerprint,
            name=net.name or net.fingerprint,
            path=net.path or "",
            metadata={**self.source.metadata, **({"training": net.card} if net.card else {})},
        )
        return Unit(
            classifier=record,
            instance=InstanceRecord.of(instance),
            setting=self.settings.setting(self.decider),
            budget=self.settings.costs(),
        )

    def results(
        self,
        instances: Sequence[Instance],
        ended: Callable[[int, Result], None] | None = None,
        heard: Heard | None = None,
    ) -> Sequence[Result]:
        """One radius per instance, or one reach where those are asked for; see `radii`."""
        asked = self.settings
        if asked.reach is None:
            return self.radii(instances, ended, heard)
        with one_thread():
            return asked.reacher(self.decider).reach(
                self.classifier,
                instances,
                asked.property,
                asked.norm,
                asked.reach,
                asked.budget,
                tolerance=share_of(asked.tolerance),
                progress=ended,
            )

    def nothing(self, instance: Instance, cost: Cost, note: str) -> Result:
        """The result of a search that was ended from outside: it has no ends, and `note` says why."""
        asked = self.settings
        if asked.reach is None:
            return Radius(tolerance=asked.tolerance, limit=asked.limit, cost=cost, note=note)
        classes = self.classifier.classes
        quantity = asked.property.quantity(classes, instance.label, np.zeros(classes))
        least, unit = quantity.least, quantity.unit
        return Reach(asked.reach, least=least, unit=unit, tolerance=share_of(asked.tolerance), cost=cost, note=note)

    def radii(
        self,
        instances: Sequence[Instance],
        ended: Callable[[int, Radius], None] | None = None,
        heard: Heard | None = None,
    ) -> list[Radius]:
        """One radius per instance, in order, found in this process: inputs share batches. Nothing is stored.

        `ended` hears of each radius as it ends, by its place; `heard` of every query of a search over a grid.
        """
        asked = self.settings
        with one_thread():
            if asked.grid is not None:
                return in_batches(
                    self.classifier,
                    asked.machine,
                    self.decider,
                    instances,
                    asked.budget,
                    property=asked.property,
                    norm=asked.norm,
                    progress=ended,
                    heard=heard,
                )
            return direct(
                self.classifier,
                self.decider,
                instances,
                asked.budget,
                property=asked.property,
                norm=asked.norm,
                tolerance=asked.tolerance,
                limit=asked.limit,
                progress=ended,
            )
