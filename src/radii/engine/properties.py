"""Properties other than classification: radii, decisions and reaches of one input, by what the property speaks of.

outputs         rows over the outputs: the radius search of `radius_search`, as for classification
distance        slopes: shells of `lipschitz`
probabilities   thresholds of softmax outputs: `probability`; a radius is narrowed by deciding one ε after the other
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from radii._memory import out_of_memory
from radii.attacks.reach import Ascent, largest
from radii.decide import Budget, Clock, replay, values_of
from radii.engine.budget import Meter
from radii.engine.lipschitz import SlopeSearch
from radii.engine.maxima import searchable
from radii.engine.output_rows import spec_rows
from radii.engine.property_search import PropertySearch
from radii.engine.radius_search import RadiusSearch
from radii.engine.tuning import DEFAULT, Tuning
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Answer, Instance, Norm, Proof, Property, Query, Radius, Reach, Reason, Tolerance, Witness
from radii.problem.radius import Cost
from radii.problem.tolerance import closing_gap


@dataclass(frozen=True)
class Settings:
    """How the engine searches: the attack's effort and seed, whose word a proof is, and what steers the search."""

    effort: str
    seed: int
    proof: Proof
    deployed: bool = False  # whether proofs hold for float32 forward passes
    tuning: Tuning = DEFAULT


def measure(
    classifier: Classifier,
    instance: Instance,
    property: Property,
    norm: Norm,
    budget: Budget,
    settings: Settings,
    tolerance: Tolerance,
    limit: float | None,
) -> Radius:
    """The radius of one input for any property."""
    clock = Clock()
    found = PropertySearch(classifier, instance, property, norm, settings.effort, settings.seed, settings.tuning)
    if found.broken_at_once:
        return Radius.wrong(found.prediction, cost=Cost(cpu_seconds=clock.cpu, wall_seconds=clock.wall))
    found.attack()
    meter = Meter(budget, clock.cpu, settings.tuning.memory)
    lower, stopped, note = 0.0, None, ""
    proven = False
    top = limit if limit is not None else (found.diameter if found.best is None else found.best.distance)
    try:
        if property.speaks_of == "outputs":
            search = _radius_search(found, meter, tolerance, limit, settings)
            search.run()
            lower, proven, stopped = search.lower, search.proven, search.stopped
        else:
            lower, stopped = _from_below(found, meter, tolerance, top)
            proven = lower > 0
    except (MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
        stopped, note = failure(error)
    cost = cost_of(meter, stopped, clock.wall)
    return Radius.found(
        lower=lower if proven else None,
        upper=None if found.best is None else found.best.distance,
        tolerance=tolerance,
        limit=limit,
        witness=found.best,
        proof=settings.proof if proven else None,
        prediction=found.prediction,
        cost=cost,
        note=note,
    )


def measure_all(
    classifier: Classifier,
    instances: Sequence[Instance],
    asked: tuple[Property, Norm, Budget],
    settings: Settings,
    tolerance: Tolerance,
    limit: float | None,
    progress: Callable[[int, Radius], None] | None,
) -> list[Radius]:
    """One radius per instance, in order."""
    results = []
    for position, instance in enumerate(instances):
        results.append(measure(classifier, instance, *asked, settings, tolerance, limit))
        if progress is not None:
            progress(position, results[-1])
    return results


def decide(classifier: Classifier, query: Query, budget: Budget, settings: Settings) -> Answer:
    """ROBUST, BROKEN or UNKNOWN for any property at one ε."""
    clock = Clock()
    found = PropertySearch(
        classifier, query.instance, query.property, query.norm, settings.effort, settings.seed, settings.tuning
    )
    if found.broken_at_once:
        witness = replay(classifier, query, query.instance.x)
        if witness is not None:
            return Answer.broken(witness, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
    found.best = first_witness(classifier, query, settings) if query.epsilon > 0 else None
    if found.best is None:
        found.attack()
    meter = Meter(budget, clock.cpu, settings.tuning.memory)
    proven, stopped = False, None
    if found.best is None or found.best.distance > query.epsilon:
        if query.epsilon == 0.0:
            return Answer.robust(Proof("evaluation", "float32", "onnxruntime"), cpu_seconds=clock.cpu)
        try:
            proven, stopped = _holds(found, query.epsilon, meter, settings)
        except (MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
            reason, detail = failure(error)
            return Answer.unknown(reason, detail, cpu_seconds=clock.cpu, wall_seconds=clock.wall)
    cost = {"cpu_seconds": clock.cpu, "wall_seconds": clock.wall, "nodes": meter.nodes}
    if found.best is not None and found.best.distance <= query.epsilon:
        return Answer.broken(found.best, **cost)
    if proven:
        return Answer.robust(settings.proof, **cost)
    return Answer.unknown(stopped or Reason.INCOMPLETE, "neither proven nor broken", **cost)


def first_witness(classifier: Classifier, query: Query, settings: Settings) -> Witness | None:
    """What a few steps of projected gradients break in the ball: most of the balls that are broken at all."""
    instance, asked = query.instance, query.property
    of = "probabilities" if asked.speaks_of == "probabilities" else "outputs"
    center = values_of(classifier, of, classifier.reference(instance.x[None])[0])
    try:
        quantity = asked.quantity(classifier.classes, instance.label, center)
    except InputError:  # rows in clauses, or a property of one's own: the search attacks what breaks it
        return None
    ascent = Ascent(settings.tuning.attacking.first_steps, restarts=1)
    found = largest(classifier, instance.x, quantity, query.norm, query.epsilon, ascent=ascent, seed=settings.seed)
    return None if found is None else replay(classifier, query, found.point)


def reach(
    classifier: Classifier,
    instance: Instance,
    property: Property,
    norm: Norm,
    epsilon: float,
    budget: Budget,
    settings: Settings,
    tolerance: float,
) -> Reach:
    """How large the property's quantity gets in the ball of size ε around one input."""
    clock = Clock()
    found = PropertySearch(classifier, instance, property, norm, settings.effort, settings.seed, settings.tuning)
    meter = Meter(budget, clock.cpu, settings.tuning.memory)
    search, note = found.reach(epsilon, tolerance, meter), ""
    stopped: Reason | None = None
    try:
        search.run()
        stopped, note = search.stopped, search.note
    except (MemoryError, RuntimeError, ValueError, ArithmeticError) as error:
        stopped, note = failure(error)
    quantity, best = search.quantity, search.best
    cost = cost_of(meter, stopped, clock.wall)
    proven = quantity.reported(search.proven) if math.isfinite(search.proven) else None
    shown = None if best is None else quantity.reported(best.value)
    witness = None
    if best is not None:
        distance = norm.distance(best.point, instance.x)
        witness = Witness(best.point, distance, int(np.argmax(best.outputs)), best.outputs)
    return Reach.found(
        epsilon,
        lower=proven if quantity.least else shown,
        upper=shown if quantity.least else proven,
        least=quantity.least,
        tolerance=tolerance,
        start=quantity.reported(search.start),
        resolution=search.resolution,
        unit=quantity.unit,
        witness=witness,
        proof=settings.proof if proven is not None else None,
        prediction=found.prediction,
        cost=cost,
        note=note,
    )


def cost_of(meter: Meter, stopped: Reason | None, wall_seconds: float) -> Cost:
    """What one search took, and which limit ended it."""
    return Cost(
        queries=1,
        timeouts=int(stopped is Reason.TIME),
        memory_errors=int(stopped is Reason.MEMORY),
        nodes=meter.nodes,
        cpu_seconds=meter.cpu,
        wall_seconds=wall_seconds,
    )


def failure(error: Exception) -> tuple[Reason, str]:
    """A failure inside the engine as an answer: what was proven before it stands, nothing else is claimed."""
    if out_of_memory(error):
        return Reason.MEMORY, "out of memory"
    return Reason.ERROR, f"{type(error).__name__}: {error}"


def _radius_search(
    found: PropertySearch, meter: Meter, tolerance: Tolerance, limit: float | None, settings: Settings
) -> RadiusSearch:
    upper = None if found.best is None else found.best.distance
    top = limit if limit is not None or upper is not None else found.diameter
    rows = searchable(spec_rows(found.classifier, found.spec))
    return RadiusSearch(
        rows, found.region, tolerance, meter, found.strike, settings.deployed, upper, top, tuning=settings.tuning
    )


def _holds(found: PropertySearch, epsilon: float, meter: Meter, settings: Settings) -> tuple[bool, Reason | None]:
    """Whether the property holds in a ball."""
    if found.asked.speaks_of == "outputs":
        search = _radius_search(found, meter, 1e-12, epsilon, settings)
        search.decide(epsilon)
        return search.proven and search.lower >= epsilon, search.stopped
    reached, threshold = found.reach(epsilon, settings.tuning.reaches.accuracy, meter), _threshold(found)
    proven = reached.stays_below(threshold)
    if reached.best is not None and reached.best.value >= threshold:
        found.note(reached.best.point)
    return proven, reached.stopped


def _threshold(found: PropertySearch) -> float:
    """What the quantity of a property must stay below."""
    name = type(found.asked).threshold
    assert name is not None
    value = float(getattr(found.asked, name))
    quantity = found.asked.quantity(found.classifier.classes, found.instance.label, found.outputs)
    return quantity.reported(value)


def _slopes_from_below(
    found: PropertySearch, meter: Meter, tolerance: Tolerance, top: float
) -> tuple[float, Reason | None]:
    search, constant = found.reach(top, found.tuning.reaches.accuracy, meter), _threshold(found)
    assert isinstance(search, SlopeSearch)

    def below() -> float:
        if search.best is not None and search.best.value >= constant:
            found.note(search.best.point)
            search.best = None
        return _worth_proving(found, tolerance, top)

    lower = search.radius(constant, tolerance, below)
    if search.affine >= constant and found.best is None:
        _break_near(found, min(top, closing_gap(tolerance, top)))
    return lower, search.stopped


def _worth_proving(found: PropertySearch, tolerance: Tolerance, top: float) -> float:
    """The largest ε that needs a proof: just within the tolerance of the best witness."""
    if found.best is None:
        return top
    return min(top, found.best.distance - found.tuning.goals.below_upper * closing_gap(tolerance, found.best.distance))


def _break_near(found: PropertySearch, size: float) -> None:
    """Witnesses of a slope that is too steep at the centre itself: as near as float32 can still tell them."""
    rule = found.tuning.reaches
    for part in rule.centre_balls:
        search = found.reach(part * size, rule.accuracy, Meter(Budget(seconds=None)))
        best = search.attacked()
        if best is None or not found.note(best.point):
            return


def _from_below(found: PropertySearch, meter: Meter, tolerance: Tolerance, top: float) -> tuple[float, Reason | None]:
    """The largest ε proven by deciding one ball after the other, just below the best witness first; why it ended."""
    if found.asked.speaks_of == "distance":
        return _slopes_from_below(found, meter, tolerance, top)
    threshold, lower, failed = _threshold(found), 0.0, math.inf
    goal, rule = top, found.tuning.reaches
    while meter.over is None:
        most = _worth_proving(found, tolerance, top)
        if most <= lower or failed - lower <= found.tuning.goals.finest * closing_gap(tolerance, min(failed, top)):
            return lower, None
        if math.isinf(failed):
            goal = most
        else:
            small = lower == 0.0
            goal = min(most, 0.5 * (lower + failed) if not small else rule.next_ball * failed)
        part = meter.part(rule.ball_share * (1.0 - meter.share))
        search = found.reach(goal, rule.accuracy, part)
        if search.stays_below(threshold):
            lower = max(lower, goal)
        else:
            failed = min(failed, goal)
            if search.best is not None and search.best.value >= threshold:
                found.note(search.best.point)
                if found.best is not None:
                    failed = min(failed, found.best.distance)
            if lower == 0.0 and failed < rule.least_ball * top:
                return 0.0, search.stopped
        meter.take(part)
    return lower, meter.over
