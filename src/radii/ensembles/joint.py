"""Joint radii: the least ε at which one input fools every member of a set, as an interval.

From above a minimum-norm attack makes the largest of the members' margins small, and every point it finds is replayed
on the original models. From below the engine searches the merged graph for an input that meets one row per member at
once. With many classes most combinations of target classes are out of reach: linear bounds of each member alone on the
ball of the nearest witness name the classes that can be reached in it, and only those are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from radii._torch import torch
from radii.bounds.bound import bound
from radii.bounds.region import Region
from radii.bounds.rounding import proving
from radii.decide import Budget, Clock, beyond, witness_at
from radii.engine.native import Native
from radii.engine.output_rows import margins
from radii.engine.prepare import working
from radii.ensembles.joint_attack import nearest_joint
from radii.ensembles.members import Joint, Merged
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.models.graph import ACTIVATIONS
from radii.problem import (
    Answer,
    Classification,
    Instance,
    Norm,
    Proof,
    Property,
    Query,
    Radius,
    Reason,
    Tolerance,
    Witness,
)
from radii.problem.radius import Cost
from radii.problem.tolerance import closing_gap

FEW_WAYS = 32  # combinations of target classes that the engine takes as they are
MOST_WAYS = 256  # combinations that are searched after pruning; for more the ball shrinks until there are fewer
SHRINKS = 12  # how often a ball is made smaller for that


@dataclass(frozen=True, eq=False)
class Hints:
    """What is known before a search, from other sets of members; it may narrow the answer and is no part of its key.

    `floor` is proven of a part of the set already, `starts` are inputs that fool some of its members, `share` is the
    part of the budget that proofs get: less where those of a part of the set have failed.
    """

    floor: float = 0.0
    starts: tuple[NDArray[np.floating[Any]], ...] = field(default=(), repr=False)
    share: float = 1.0


@dataclass(frozen=True)
class JointSearch:
    """Measures joint radii of merged classifiers with the native engine."""

    proves: ClassVar[bool] = True
    refutes: ClassVar[bool] = True
    native: Native = field(default_factory=Native)
    hints: Hints = Hints()

    @property
    def identity(self) -> str:
        return f"joint 2 of {self.native.identity}"

    def supports(self, property: Property, norm: Norm, operators: Sequence[str]) -> str:
        """Why it cannot answer; empty when it can."""
        if not isinstance(property, Joint):
            return f"it takes joint robustness of several classifiers, not {property.kind}"
        return beyond(property, norm, operators, takes=("outputs",), activations=ACTIVATIONS)

    def decide(self, classifier: Classifier, queries: Sequence[Query], budget: Budget) -> list[Answer]:
        """One answer per query: the search goes no further than its ε."""
        merged, found = _merged(classifier), []
        for query in queries:
            limit = query.epsilon if query.epsilon > 0 else None
            radius = joint_radius(self.native, merged, query.instance, query.norm, budget, tolerance=1e-12, limit=limit)
            found.append(_answered(radius, query.epsilon))
        return found

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
        """One joint radius per instance, in order."""
        merged, found = _merged(classifier), []
        for position, instance in enumerate(instances):
            radius = joint_radius(
                self.native, merged, instance, norm, budget, tolerance=tolerance, limit=limit, hints=self.hints
            )
            found.append(radius)
            if progress is not None:
                progress(position, found[-1])
        return found


NO_HINTS = Hints()


def joint_radius(
    native: Native,
    merged: Merged,
    instance: Instance,
    norm: Norm,
    budget: Budget,
    *,
    tolerance: Tolerance,
    limit: float | None = None,
    hints: Hints = NO_HINTS,
) -> Radius:
    """The least ε at which one input near the instance fools every member: [lower, upper], either end may be absent.

    A witness within the tolerance of what the hints prove ends the search.
    """
    clock, floor = Clock(), hints.floor
    with working(merged):
        seen = _attack(native, merged, instance, norm, hints.starts)
        if seen is not None and seen.distance == 0.0:
            return Radius.wrong(witness=seen, cost=Cost(cpu_seconds=clock.cpu, wall_seconds=clock.wall))
        top = min(room(merged, instance, norm), np.inf if limit is None else limit)
        near = seen is not None and seen.distance <= top
        if seen is not None and near:
            top = float(np.nextafter(seen.distance, 0.0))  # the witness lies on the border: inside it none may
        if not np.isfinite(top):
            raise InputError("ensemble: no witness was found and the domain is unbounded; give a limit (the largest ε)")
        radius = Radius(tolerance=tolerance, cost=Cost(queries=1))
        if floor < top - (closing_gap(tolerance, top) if near else 0.0):
            left = _left(budget, clock.cpu, hints.share)
            radius = _search(native, merged, instance, norm, left, tolerance, top)
    if floor > 0 and floor > (radius.lower or 0.0):
        radius = replace(radius, lower=floor, proof=Proof("branch and bound", "real", "radii native"))
    if seen is not None and (radius.upper is None or seen.distance < radius.upper):
        radius = replace(radius, upper=seen.distance, witness=seen)
    radius = replace(radius, prediction=None)  # several members have no one class
    return replace(radius, limit=limit, cost=replace(radius.cost, cpu_seconds=clock.cpu, wall_seconds=clock.wall))


def _search(
    native: Native,
    merged: Merged,
    instance: Instance,
    norm: Norm,
    budget: Budget,
    tolerance: Tolerance,
    top: float,
) -> Radius:
    """The engine's search over the combinations of target classes that can be reached in the ball of size `top`."""
    members = len(merged.members)
    size, among = top, [tuple(one) for one in Joint(members).targets(merged.classes, instance.label)]
    if _ways(among) > FEW_WAYS:
        size, among = _reachable(merged, instance, norm, top)
    if _ways(among) > MOST_WAYS:  # too many combinations even in a small ball: the attack's word stands alone
        return Radius(tolerance=tolerance, cost=Cost(queries=1))
    if not all(among):  # some member is right in the whole ball
        proof, lower = Proof("linear bounds", "real", "radii native"), size
        return Radius(lower, tolerance=tolerance, proof=proof, cost=Cost(queries=1))
    asked = Joint(members, tuple(among))
    # Target classes were left out for this ball alone: nothing is proven beyond it.
    return native.measure(merged, [instance], asked, norm, budget, tolerance=tolerance, limit=size)[0]


def _left(budget: Budget, spent: float, share: float) -> Budget:
    """What proofs may cost: a share of what the attack has left."""
    seconds = None if budget.seconds is None else max(1e-3, share * (budget.seconds - spent))
    nodes = None if budget.nodes is None else max(1, int(share * budget.nodes))
    return replace(budget, seconds=seconds, nodes=nodes)


def _attack(
    native: Native, merged: Merged, instance: Instance, norm: Norm, starts: Sequence[NDArray[np.floating[Any]]]
) -> Witness | None:
    """The nearest replayed point that fools all members."""
    found = nearest_joint(merged, instance.x, instance.label, norm, native.effort, native.seed, starts)
    replayed = [_replayed(merged, instance, norm, point) for point in (instance.x, *found, *starts)]
    return min((one for one in replayed if one is not None), key=lambda one: one.distance, default=None)


def _replayed(merged: Merged, instance: Instance, norm: Norm, point: NDArray[np.floating[Any]]) -> Witness | None:
    """The point as the original models see it; None unless it fools them all."""
    outputs = merged.reference(point.reshape(1, *merged.input_shape))[0]
    asked = Joint(len(merged.members)).at(outputs, instance.label)
    return witness_at(merged, Query(instance, 0.0, asked, norm), point)


def _reachable(merged: Merged, instance: Instance, norm: Norm, top: float) -> tuple[float, list[tuple[int, ...]]]:
    """A ball and, for each member, the classes that linear bounds do not exclude in it: few combinations of them."""
    size, among = top, list[tuple[int, ...]]()
    for _ in range(SHRINKS):
        among = [not_excluded(one, instance, norm, size) for one in merged.members]
        if _ways(among) <= MOST_WAYS:
            break
        size *= 0.8
    return size, among


def not_excluded(member: Classifier, instance: Instance, norm: Norm, size: float) -> tuple[int, ...]:
    """The classes that may reach the label's output somewhere in the ball of a size."""
    others = Classification().targets(member.classes, instance.label)
    asked = margins(member, instance.label, Classification())
    if len(asked.rows) != len(others):
        return others  # outputs that are cut have more ways to tie than one per class
    with proving():
        center = torch.from_numpy(instance.x.reshape(1, -1).copy())
        region = Region.around(center, torch.tensor([size], dtype=torch.float64), norm, member.domain)
        bounded = bound(asked.graph, region)
        linear = bounded.margins(asked.rows[None])
        certified = bounded.region.root(linear.a, linear.shifted() - asked.shift)[0]
    return tuple(t for t, radius in zip(others, certified.tolist()) if not radius >= size)


def _ways(among: Sequence[Sequence[int]]) -> float:
    return float(np.prod([len(one) for one in among], dtype=np.float64))


def room(classifier: Classifier, instance: Instance, norm: Norm) -> float:
    """A radius beyond which nothing of the domain lies."""
    x, domain = instance.x.astype(np.float64), classifier.domain
    return norm.size(np.maximum(x - domain.low, domain.high - x)) if domain.bounded else np.inf


def _answered(radius: Radius, epsilon: float) -> Answer:
    cost = {"cpu_seconds": radius.cost.cpu_seconds, "wall_seconds": radius.cost.wall_seconds}
    if radius.witness is not None and radius.witness.distance <= epsilon:
        return Answer.broken(radius.witness, **cost)
    if radius.lower is not None and radius.lower >= epsilon and radius.proof is not None:
        return Answer.robust(radius.proof, **cost)
    return Answer.unknown(
        Reason.TIME if radius.cost.timeouts else Reason.INCOMPLETE, "neither proven nor broken", **cost
    )


def _merged(classifier: Classifier) -> Merged:
    if not isinstance(classifier, Merged):
        raise InputError("joint radius: expected several classifiers as one (Merged.of), got a single one")
    return classifier
