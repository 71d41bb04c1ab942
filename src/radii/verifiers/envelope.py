"""Envelope: both ends of every radius at a price of milliseconds, an attack from above and linear bounds from below.

For whole test sets: nothing is branched on, so most radii stay open, but all are bracketed, thousands at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from radii._torch import torch
from radii.attacks.min_norm import MinimumNorm
from radii.attacks.nearest import attack_all
from radii.bounds.bound import bound
from radii.bounds.lowering import refuse_unsupported
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.decide import Budget, Clock, beyond
from radii.engine.output_rows import margins
from radii.models.classifier import Classifier
from radii.models.graph import ACTIVATIONS
from radii.problem import Answer, Instance, Norm, Proof, Property, Query, Radius, Tolerance, Witness
from radii.problem.radius import Cost
from radii.problem.tolerance import tolerance_of
from radii.verifiers.bounds_only import BoundsOnly

CHUNK = 64  # images bounded at once: their bounds fit into memory


@dataclass(frozen=True)
class Envelope:
    """Measures radii by an attack and optimised linear bounds, without branching; the budget is not looked at."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True

    effort: str = "fast"
    seed: int = 0
    rounds: int = 5  # of bisection on the size of the ball; the last two climb the slopes of the bounds

    @property
    def identity(self) -> str:
        rounds = "" if self.rounds == Envelope.rounds else f", {self.rounds} rounds"
        return f"envelope 1 (attack {self.effort}, seed {self.seed}{rounds})"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer queries of this kind; empty when it can."""
        return beyond(property, norm, operators, takes=("classes",), activations=ACTIVATIONS)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """The attack's answers, and the bounds' where it found nothing."""
        answers = MinimumNorm(self.effort, self.seed).decide(classifier, queries, budget)
        left = [i for i, answer in enumerate(answers) if answer.witness is None]
        for i, answer in zip(left, BoundsOnly().decide(classifier, [queries[i] for i in left], budget)):
            answers[i] = answer
        return answers

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
        """One radius per instance."""
        tolerance_of(tolerance)
        refuse_unsupported(classifier.graph)
        results: list[Radius] = []
        for start in range(0, len(instances), CHUNK):
            part = instances[start : start + CHUNK]
            clock = Clock()
            seconds = None if budget.seconds is None else len(part) * budget.seconds
            states = attack_all(classifier, part, property, norm, self.effort, self.seed, seconds=seconds)
            right = [k for k, state in enumerate(states) if not isinstance(state, int)]
            tops = [_top(states[k], part[k], classifier, norm, limit) for k in right]
            proven = _linear_radii(classifier, [part[k] for k in right], property, norm, tops, self.rounds)
            lower = dict(zip(right, proven))
            cost = Cost(queries=1, cpu_seconds=clock.cpu / len(part), wall_seconds=clock.wall / len(part))
            for k, state in enumerate(states):
                radius = _radius(part[k], state, lower.get(k, 0.0), tolerance, limit, cost)
                results.append(radius)
                if progress is not None:
                    progress(start + k, radius)
        return results


def _top(
    state: Witness | int | None, instance: Instance, classifier: Classifier, norm: Norm, limit: float | None
) -> float:
    """The largest radius worth proving."""
    if isinstance(state, Witness):
        return state.distance if limit is None else min(limit, state.distance)
    if limit is not None:
        return limit
    return classifier.domain.farthest(instance.x, norm) if classifier.domain.bounded else 1.0


def _radius(
    instance: Instance, state: Witness | int | None, lower: float, tolerance: Tolerance, limit: float | None, cost: Cost
) -> Radius:
    if isinstance(state, int):
        return Radius.wrong(prediction=state, cost=cost)
    return Radius.found(
        lower=lower if lower > 0 else None,
        upper=None if state is None else state.distance,
        tolerance=tolerance,
        limit=limit,
        witness=state,
        proof=Proof("linear bounds", "real", "radii envelope") if lower > 0 else None,
        prediction=instance.label,
        cost=cost,
    )


def _linear_radii(
    classifier: Classifier,
    instances: Sequence[Instance],
    property: Property,
    norm: Norm,
    tops: Sequence[float],
    rounds: int,
) -> list[float]:
    """Certified radii by bisection on the size of the ball that the bounds are computed on."""
    if not instances:
        return []
    asked = [margins(classifier, i.label, property) for i in instances]
    rows, shift = torch.stack([one.rows for one in asked]), torch.stack([one.shift for one in asked])
    center = torch.from_numpy(np.stack([i.x.reshape(-1) for i in instances]))
    low = torch.zeros(len(instances), dtype=torch.float64)
    high = torch.tensor(tops, dtype=torch.float64)
    best = low.clone()
    with proving():
        for step in range(rounds):
            size = 0.5 * (low + high)
            region = Region.around(center, size, norm, classifier.domain)
            a, c = bound(asked[0].graph, region).best_margins(rows, 0 if step < rounds - 2 else None)
            found = region.root(a, c - shift).amin(1)
            best = torch.maximum(best, found)
            proved = found >= size * (1.0 - 1e-9)
            low, high = torch.where(proved, size, low), torch.where(proved, high, size)
            low = torch.maximum(low, torch.minimum(best, high))
    # A proof never reaches a witness: the last step may not round up to it.
    return [min(float(b), t * (1.0 - 1e-9)) for b, t in zip(best, tops)]
