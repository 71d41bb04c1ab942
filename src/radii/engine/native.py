"""Native: radii's own complete verifier, a minimum-norm attack from above and branch and bound from below."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from radii._check import choice, number
from radii.attacks.effort import Effort
from radii.attacks.names import DEFAULT as DEFAULT_ATTACK
from radii.attacks.names import make_attack, seeded
from radii.attacks.nearest import attack_all
from radii.bounds.float32 import refuse_float32
from radii.bounds.lowering import refuse_unsupported
from radii.decide import Budget, Clock, Decider, beyond, replay
from radii.engine import properties
from radii.engine.budget import Meter
from radii.engine.class_search import ClassSearch
from radii.engine.first_look import first_look
from radii.engine.prepare import affordable, working
from radii.engine.radius_search import RadiusSearch
from radii.engine.specification import decide_spec
from radii.engine.tuning import DEFAULT, Tuning
from radii.errors import InputError
from radii.evidence.record import Recorder
from radii.models.classifier import Classifier
from radii.models.graph import ACTIVATIONS, Graph
from radii.problem import (
    Answer,
    Instance,
    Norm,
    Proof,
    Property,
    Query,
    Radius,
    Reach,
    Reason,
    SpecQuery,
    Tolerance,
    Witness,
)
from radii.problem.radius import Cost
from radii.problem.tolerance import tolerance_of

ARITHMETICS = ("real", "float32")


@dataclass(frozen=True)
class Native:
    """Decides queries and measures radii in L∞, L2 and L1: ReLU, LeakyRelu, Clip, MaxPool, Sigmoid, Tanh, products."""

    effort: str = "standard"
    seed: int = 0
    device: str = "cpu"
    arithmetic: str = "real"
    attack: Any = DEFAULT_ATTACK  # its name (see radii attacks), a mapping with its options, or the attack itself
    evidence: bool = False  # whether measured radii come with evidence; not part of the identity
    tuning: Tuning = DEFAULT  # the numbers that steer the search

    def __post_init__(self) -> None:
        choice(self.arithmetic, "arithmetic", ARITHMETICS)
        Effort.of(self.effort)
        self._other_attack()

    def _other_attack(self) -> Decider | None:
        """The attack that gives upper ends where another than the minimum-norm attack is asked for."""
        return None if self.attack == DEFAULT_ATTACK else seeded(make_attack(self.attack), self.attack, self.seed)

    @property
    def identity(self) -> str:
        other = self._other_attack()
        attack = self.effort if other is None else other.identity
        changes = f", {self.tuning.changes}" if self.tuning != DEFAULT else ""
        # Version 2 of float32: overflow and what the file's own operators round are part of its proofs.
        version = 2 if self.arithmetic == "float32" else 1
        return f"native {version} (attack {attack}, seed {self.seed}, {self.arithmetic}{changes})"

    @property
    def _proof(self) -> Proof:
        return Proof("branch and bound", self.arithmetic, "radii native")

    @property
    def proves(self) -> bool:
        return True

    @property
    def refutes(self) -> bool:
        return True

    def measure(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        budget: Budget,
        *,
        tolerance: Tolerance,
        limit: float | None = None,
        progress: Callable[[int, Radius], None] | None = None,
    ) -> list[Radius]:
        """One radius per instance; the attack runs on all of them at once and its cost is shared out."""
        tolerance_of(tolerance)
        if limit is not None:
            number(limit, "limit", low=0.0, strict=True)
        self._refuse(classifier)
        results: list[Radius] = []
        with working(classifier):
            if property.speaks_of != "classes":
                asked = property, norm, budget
                return properties.measure_all(classifier, instances, asked, self._settings, tolerance, limit, progress)
            clock = Clock()
            states = self._attack(classifier, instances, property, norm, budget)
            share = clock.cpu / max(1, len(instances)), clock.wall / max(1, len(instances))
            for position, (instance, state) in enumerate(zip(instances, states)):
                one = ClassSearch(classifier, instance, property, norm, state, self._search_tuning)
                results.append(self._one(one, budget, share, tolerance, limit))
                if progress is not None:
                    progress(position, results[-1])
        return results

    def _attack(
        self, classifier: Classifier, instances: Sequence[Instance], property: Property, norm: Norm, budget: Budget
    ) -> list[Witness | int | None]:
        """What the attack finds before any search: no more effort than its part of the budgets allows."""
        effort, other, rule = Effort.of(self.effort), self._other_attack(), self.tuning.attacking
        if other is None:
            effort = affordable(effort, classifier, len(instances), budget.seconds, rule, self.device)
        # The prediction can be wrong, as on chains of thousands of nodes: the budget itself always holds.
        seconds = None if budget.seconds is None else budget.seconds * len(instances)
        return attack_all(classifier, instances, property, norm, effort, self.seed, self.device, other, seconds)

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        real = self.arithmetic == "real"  # what float32 rounds is not charged to slopes and probabilities
        takes = ("classes", "outputs", "distance", "probabilities") if real else ("classes", "outputs")
        why = beyond(property, norm, operators, takes=takes, activations=ACTIVATIONS)
        unsettled = {"Sigmoid", "Tanh", "Softmax"} & set(operators) if self.arithmetic == "float32" else ()
        return why or (f"no runtime promises float32 values of {' and '.join(sorted(unsettled))}" if unsettled else "")

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """ROBUST, BROKEN or UNKNOWN for each query at its ε."""
        self._refuse(classifier)
        with working(classifier):
            return [self._decide(classifier, query, budget) for query in queries]

    def decide_spec(self, classifier: Classifier, query: SpecQuery, budget: Budget) -> Answer:
        """ROBUST, BROKEN or UNKNOWN for any linear specification over a box of inputs."""
        easy = first_look(classifier, query, self.seed, self.tuning.first_look)
        if easy is not None:
            return easy
        with working(classifier):
            return decide_spec(classifier, query, budget, self.seed, self.tuning)

    def _refuse(self, classifier: Classifier) -> None:
        """Raises for operators that the engine, or its arithmetic, does not know."""
        refuse_unsupported(classifier.graph)
        if self.arithmetic == "float32":
            refuse_float32(classifier.graph)

    def reach(
        self,
        classifier: Classifier,
        instances: Sequence[Instance],
        property: Property,
        norm: Norm,
        epsilon: float,
        budget: Budget,
        *,
        tolerance: float = 0.02,
        progress: Callable[[int, Reach], None] | None = None,
    ) -> list[Reach]:
        """How large the property's quantity gets in the ball of size ε, one reach per instance."""
        number(tolerance, "tolerance", low=0.0, strict=True)
        number(epsilon, "epsilon", low=0.0, strict=True)
        self._refuse(classifier)
        results: list[Reach] = []
        with working(classifier):
            for position, one in enumerate(instances):
                asked = property, norm, epsilon, budget
                results.append(properties.reach(classifier, one, *asked, self._settings, tolerance))
                if progress is not None:
                    progress(position, results[-1])
        return results

    @property
    def _settings(self) -> properties.Settings:
        return properties.Settings(self.effort, self.seed, self._proof, self.arithmetic == "float32", self.tuning)

    def _decide(self, classifier: Classifier, query: Query, budget: Budget) -> Answer:
        if query.property.speaks_of != "classes":
            return properties.decide(classifier, query, budget, self._settings)
        clock = Clock()
        if query.epsilon > 0 and self._other_attack() is None:
            first = properties.first_witness(classifier, query, self._settings)
            if first is not None:
                return Answer.broken(first, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        state = self._attack(classifier, [query.instance], query.property, query.norm, budget)[0]
        witness = state if isinstance(state, Witness) else None
        if witness is not None and witness.distance <= query.epsilon:
            checked = replay(classifier, query, witness.x)
            if checked is not None:
                return Answer.broken(checked, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        if query.epsilon == 0.0:
            return Answer.robust(Proof("evaluation", "claim", "onnxruntime"), cpu_seconds=clock.cpu)
        one = ClassSearch(classifier, query.instance, query.property, query.norm, witness, self.tuning)
        search = one.search(self._meter(budget, clock.cpu), 1e-12, query.epsilon, self.arithmetic == "float32")
        try:
            search.decide(query.epsilon)
        except (MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
            reason, detail = properties.failure(error)
            return Answer.unknown(reason, detail, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
        cost = {"cpu_seconds": clock.cpu, "wall_seconds": clock.wall, "nodes": search.meter.nodes}
        found = one.best
        if found is not None and found.distance <= query.epsilon:
            return Answer.broken(found, **cost)
        if search.proven and search.lower >= query.epsilon:
            return Answer.robust(self._proof, **cost)
        detail = _overflow(search) or f"proven up to {search.lower:.6g}"
        return Answer.unknown(search.stopped or Reason.TIME, detail, **cost)

    def _one(
        self, one: ClassSearch, budget: Budget, spent: tuple[float, float], tolerance: Tolerance, limit: float | None
    ) -> Radius:
        """The radius of one instance; `spent` are the CPU and wall seconds that the attack took of it."""
        clock = Clock()
        if isinstance(one.state, int):
            cost = Cost(cpu_seconds=spent[0], wall_seconds=spent[1])
            return Radius.wrong(prediction=one.state, cost=cost)
        search = one.search(self._meter(budget, spent[0]), tolerance, limit, self.arithmetic == "float32")
        note = ""
        if self.evidence:
            search.recorder = self._recorder(one, search.margins.graph)
        try:
            search.run()
        except (MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
            search.stopped, note = properties.failure(error)
        data, why = _evidence(search)
        cost = properties.cost_of(search.meter, search.stopped, spent[1] + clock.wall)
        witness = one.best
        return Radius.found(
            lower=search.lower if search.proven else None,
            upper=None if witness is None else witness.distance,
            tolerance=tolerance,
            limit=limit,
            witness=witness,
            proof=self._proof if search.proven else None,
            prediction=one.instance.label,
            cost=cost,
            note=note or _overflow(search) or why,
            evidence=data,
        )

    @property
    def _search_tuning(self) -> Tuning:
        """Without hulls over few inputs each where evidence is kept: its checker knows no sparse lines."""
        return replace(self.tuning, trees=replace(self.tuning.trees, hull_inputs=0.0)) if self.evidence else self.tuning

    def _meter(self, budget: Budget, spent: float) -> Meter:
        return Meter(budget, spent, self.tuning.memory)

    def _recorder(self, one: ClassSearch, graph: Graph) -> Recorder:
        target = getattr(one.property, "target", None)
        recorder = Recorder(one.classifier, one.instance, one.norm, target, self.arithmetic, self.identity)
        recorder.reads(graph)
        return recorder


def _evidence(search: RadiusSearch) -> tuple[bytes | None, str]:
    """The evidence of what was proven, or why there is none; neither when none was asked for."""
    if search.recorder is None or not search.proven:
        return None, ""
    try:
        seconds, rule = search.meter.budget.seconds, search.tuning.attacking
        spare = math.inf if seconds is None else rule.evidence_seconds + rule.evidence_share * seconds
        return search.recorder.build(search.lower, spare), ""
    except (InputError, MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
        return None, f"no evidence: {error}"


def _overflow(search: RadiusSearch) -> str:
    """Why nothing is proven beyond a radius, where float32 may overflow there."""
    if search.overflow is None:
        return ""
    return f"arithmetic float32: a forward pass may overflow at {search.overflow:.6g}; use arithmetic: real"
