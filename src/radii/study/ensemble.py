"""Runs a game: the members' own radii first, then the joint radii that the double oracle asks for.

Every radius is a unit of the store like those of `radii run`: what is there already is not done again, several
processes may share the work, and a killed run goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import number
from radii.decide import Clock
from radii.engine.native import Native
from radii.ensembles.facts import Point, Seen, named
from radii.ensembles.game import Game, fooled_by
from radii.ensembles.glance import glance
from radii.ensembles.joint import Hints, JointSearch, room
from radii.ensembles.matrix import solve
from radii.ensembles.members import Joint, Merged
from radii.ensembles.oracle import questions
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Radius
from radii.problem.tolerance import written
from radii.runners import Runner
from radii.store import Store
from radii.store.record import RadiusRecord, Unit
from radii.study.plan import Plan, PlannedUnit
from radii.study.question import Question
from radii.study.run import Finished, Run
from radii.study.settings import RadiusSettings
from radii.study.sources import Held, Source, Together
from radii.study.stop import Stop
from radii.study.stored import radii_of

GRID = 24  # sizes at which a whole curve is watched while it is narrowed
AT_ONCE = 16  # joint radii asked for in one round, at least
FINER = 4  # than joint radii: members' own radii cost little, and are the floor of all joint ones
STARTS = 4  # known inputs that a joint attack starts from
AGAIN = 0.2  # of the budget: what proofs about a set get when those about a part of it ran out of time
Told = Callable[[int, int], None]


@dataclass
class EnsembleRun:
    """One process's part in the search for a game; `epsilons` are the sizes that count, none means all up to the limit.

    `progress` is called with (radii found, radii asked for so far).
    """

    members: tuple[Classifier, ...]
    instances: tuple[Instance, ...]
    settings: RadiusSettings
    store: Store | Callable[[], Store]  # or what opens it when it is needed: a first look needs none
    runner: Runner | None = None
    epsilons: tuple[float, ...] = ()
    width: float = 0.0  # of the value's interval, in the mean over the sizes: once it is so narrow, nothing is asked
    stop: Stop = field(default_factory=Stop)
    retry: bool = False
    command: str = ""
    sources: tuple[Source | Held, ...] = ()
    progress: Told | None = None
    name: str = ""  # of the study in the store; without one nothing is planned there
    body: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.settings.property != Classification():
            raise InputError(f"ensemble: expected the property classification, got {self.settings.property}")
        if self.settings.grid is not None:
            raise InputError("ensemble: expected search direct, got a search over a grid")
        self._tolerance = number(written(self.settings.tolerance), "ensemble tolerance", low=0.0, strict=True)
        if not self.instances:
            raise InputError("ensemble: expected at least one input, got none")
        self.points = tuple(Point(len(self.members)) for _ in self.instances)
        self.units: dict[str, Unit] = {}  # every unit that was asked for
        self.failures: list[str] = []
        self.stopped = False
        self._held = self.sources or tuple(Held(one) for one in self.members)
        self._merged: dict[int, tuple[Together, Merged]] = {}
        self._asked, self._found, self._cpu = 0, 0, 0.0
        self._float = "f8" if all(one.dtype == np.float64 for one in self.members) else "f4"

    def run(self) -> Game:
        """The game, as far as the budgets go; what is known when a stop comes is a game too."""
        self._look()
        decider = self.settings.decider()
        if not isinstance(decider, Native):
            raise InputError(f"ensemble: expected verifier native, got {decider.identity}")
        alone = replace(self.settings, tolerance=self._tolerance / FINER)
        singles = [Question(source, one, alone, decider) for source, one in zip(self._held, self.members)]
        for question in singles:
            question.check()
            question.check_labels(self.instances)
        if self.name:
            self._kept.plan(self.name, [], self.body)
        if self.epsilons and self._settled():
            return self.game(True)
        everyone = [(place, 1 << c) for c in range(len(self.members)) for place in range(len(self.instances))]
        self._ask(everyone, {1 << c: question for c, question in enumerate(singles)}, decider)
        complete = False
        while not self.stopped:
            wanted = questions(self.points, self._sizes(), self._tolerance)
            if not wanted or self._band() <= self.width:
                complete = True
                break
            room = max(AT_ONCE, 8 * self.runner.workers if self.runner is not None else 0)
            self._ask([(one.point, one.mask) for one in wanted[:room]], {}, decider)
        return self.game(complete)

    @cached_property
    def _kept(self) -> Store:
        return self.store if isinstance(self.store, Store) else self.store()

    def _settled(self) -> bool:
        """Whether a first look at the sizes that count leaves nothing to ask."""
        clock = Clock()
        glance(self.points, self.members, self.instances, self.settings.norm, self.epsilons, self._see)
        self._cpu += clock.cpu
        return not questions(self.points, self.epsilons, self._tolerance)

    def game(self, complete: bool = False) -> Game:
        """What is known now."""
        return Game(
            self.members,
            self.instances,
            self.points,
            self.settings.norm,
            self.settings.limit,
            complete,
            self._found,
            self._cpu,
        )

    def recall(self, records: Iterable[RadiusRecord]) -> Game:
        """The game that stored radii make, without any search; those of other questions are left out.

        What a first look settles is not stored: it is taken again.
        """
        self._look()
        self._settled()
        order = {one.fingerprint: 1 << c for c, one in enumerate(self.members)}
        places = {one.fingerprint: place for place, one in enumerate(self.instances)}
        for record in records:
            unit = record.unit
            parts = unit.classifier.metadata.get("combined", {}).get("members", [])
            names = [one["fingerprint"] for one in parts] or [unit.classifier.fingerprint]
            if unit.instance.fingerprint in places and set(names) <= set(order):
                self._note(places[unit.instance.fingerprint], sum(order[name] for name in names), record.radius)
                self._found, self._cpu = self._found + 1, self._cpu + record.radius.cost.cpu_seconds
        return self.game()

    def _look(self) -> None:
        """Asks every member about the inputs themselves."""
        self._see([(place, instance.x) for place, instance in enumerate(self.instances)])

    def _sizes(self) -> Sequence[float]:
        """The sizes at which the value is narrowed now."""
        if self.epsilons:
            return self.epsilons
        limit = self.settings.limit
        top = max([*(step for point in self.points for step in point.steps()), 0.0]) if limit is None else limit
        # Without a limit sets that take more than every radius so far count too.
        return [top * (k + 0.5) / GRID for k in range(GRID)] + ([] if limit is not None else [2.0 * top, 1e3 * top])

    def _band(self) -> float:
        """The mean width of the value's interval at the sizes that count; not looked at when no width is asked for."""
        if self.width <= 0:
            return math.inf
        sizes, count = [size for size in self._sizes() if size > 0], len(self.members)
        low = [solve([point.fooled(size) for point in self.points], count).low for size in sizes]
        high = [solve([point.possible(size) for point in self.points], count).high for size in sizes]
        return float(np.mean(np.subtract(high, low))) if sizes else 0.0

    def _ask(self, wanted: Sequence[tuple[int, int]], known: dict[int, Question], native: Native) -> None:
        """Finds the joint radii of (point, set) and takes note of them."""
        planned: dict[tuple[int, int], PlannedUnit] = {}
        for place, mask in wanted:
            question = known.get(mask) or self._question(mask, self._hints(place, mask), native)
            instance = self.instances[place]
            planned[place, mask] = PlannedUnit(question.unit(instance), question, instance)
        units = {unit.key: unit for unit in planned.values()}
        self.units |= {key: unit.record for key, unit in units.items()}
        if self.name:
            self._kept.plan(self.name, list(self.units.values()), self.body)
        plan = Plan("", list(units.values()), {}, self.settings.seed)
        run = Run(plan, self._kept, self.runner, self.stop, self.retry, self.command, listen=self._tell)
        self._asked += len(units)
        self._found += len(units) - run.prepare()
        summary = run.run()
        self.stopped = summary.stopped
        self.failures += [f"input {one.unit.instance.index}: {one.failure}" for one in summary.failures]
        found = radii_of(self._kept, list(units))
        self._cpu += sum(radius.cost.cpu_seconds for radius in found.values())
        for (place, mask), unit in planned.items():
            if unit.key in found:
                self._note(place, mask, found[unit.key])

    def _hints(self, place: int, mask: int) -> Hints:
        """What is known of a set from other sets of the same point."""
        point = self.points[place]
        near = sorted(point.seen, key=lambda one: (-(one.fooled & mask).bit_count(), one.distance))[:STARTS]
        starts = tuple(one.x for one in near if one.distance > 0)
        parts = [radius for part, radius in point.asked.items() if not part & ~mask]
        vain = any(radius.cost.timeouts and radius.lower is not None for radius in parts)
        return Hints(point.floor(mask), starts, AGAIN if vain else 1.0)

    def _question(self, mask: int, hints: Hints, native: Native) -> Question:
        if mask not in self._merged:
            merged = Merged.of([self.members[c] for c in named(mask)])
            source = Together("joint", tuple(self._held[c] for c in named(mask)), (), merged.name, merged.fingerprint)
            self._merged[mask] = source, merged
        source, merged = self._merged[mask]
        search = JointSearch(native, hints)
        settings = replace(self.settings, property=Joint(len(merged.members)), verifier=search)
        return Question(source, merged, settings, search)

    def _note(self, place: int, mask: int, radius: Radius) -> None:
        point, instance = self.points[place], self.instances[place]
        point.asked[mask] = radius
        if radius.witness is not None:
            self._see([(place, radius.witness.x)])
        if not radius.misclassified and radius.lower is not None:
            everywhere = radius.lower >= room(self.members[0], instance, self.settings.norm)
            point.prove(mask, math.inf if everywhere else radius.lower)

    def _see(self, inputs: Sequence[tuple[int, NDArray[np.floating[Any]]]]) -> None:
        """Takes note of whom some inputs fool, each near the point of its place."""
        near = [self.instances[place] for place, _ in inputs]
        values = [np.asarray(x).astype(self._float).reshape(one.x.shape) for (_, x), one in zip(inputs, near)]
        masks = fooled_by(self.members, [one.label for one in near], np.stack(values))
        for (place, _), one, value, fooled in zip(inputs, near, values, masks):
            if fooled:
                self.points[place].see(Seen(fooled, self.settings.norm.distance(value, one.x), value))

    def _tell(self, one: Finished) -> None:
        self._found += 1
        if self.progress is not None:
            self.progress(self._found, self._asked)
