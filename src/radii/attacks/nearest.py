"""The nearest witness of each input, by the minimum-norm attack or by any other on smaller and smaller balls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radii._memory import out_of_memory
from radii.attacks.effort import Effort
from radii.attacks.min_norm import minimum_norm
from radii.decide import Budget, Decider, witness_at
from radii.errors import DataError
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, Property, Query, Witness

ROUNDS = 18  # halvings of the interval at most: the last is 1/250,000 of the first


def attack_all(
    classifier: Classifier,
    instances: Sequence[Instance],
    property: Property,
    norm: Norm,
    effort: Effort | str = "standard",
    seed: int = 0,
    device: str = "cpu",
    other: Decider | None = None,
    seconds: float | None = None,
) -> list[Witness | int | None]:
    """A witness per instance, None where none was found, the predicted class where the input is misclassified.

    Witnesses come from the minimum-norm attack within these CPU seconds, or from another one where it is given.
    """
    if not instances:
        return []
    for instance in instances:
        if instance.x.size != classifier.size:
            raise DataError(
                f"input {instance.index}: expected {classifier.size} values in shape {classifier.input_shape}, "
                f"got shape {instance.x.shape}"
            )
    x = np.stack([i.x.reshape(classifier.input_shape) for i in instances])
    labels = np.array([i.label for i in instances])
    classifier.check_inputs(x, labels)
    outputs = classifier.reference(x)
    others = outputs.astype(np.float64).copy()
    others[np.arange(len(labels)), labels] = -np.inf
    wrong = others.max(1) >= outputs[np.arange(len(labels)), labels]
    states: list[Witness | int | None] = [int(o.argmax()) if w else None for o, w in zip(others, wrong)]
    right = [int(i) for i in np.flatnonzero(~wrong)]
    if right and other is not None:
        found = nearest_witnesses(other, classifier, [instances[i] for i in right], property, norm)
        return [found.pop(0) if state is None else state for state in states]
    target = getattr(property, "target", None)
    parts = [right] if right else []
    while parts:
        some = parts.pop()
        end = None if seconds is None else seconds * len(some) / len(right)
        try:
            nearest = minimum_norm(classifier, x[some], labels[some], norm, target, effort, seed, device, end)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            half = len(some) // 2  # what does not fit together may fit apart; one input that does not has no witness
            parts += [some[half:], some[:half]] if half else []
            continue
        for k, position in enumerate(some):
            if np.isfinite(nearest.distances[k]):
                query = Query(instances[position], float(nearest.distances[k]), property, norm)
                states[position] = witness_at(classifier, query, nearest.points[k])
    return states


def nearest_witnesses(
    attack: Decider, classifier: Classifier, instances: Sequence[Instance], property: Property, norm: Norm
) -> list[Witness | None]:
    """One witness per instance, None where the attack finds none in a ball that holds the whole domain.

    Attacks on a fixed ε cannot say how near a witness may be, so the interval between the largest ball without one
    and the nearest found is halved; all instances are asked together.
    """
    high = np.array([_whole(classifier, instance, norm) for instance in instances])
    low, size = np.zeros(len(instances)), high.copy()
    best: list[Witness | None] = [None] * len(instances)
    pending = list(range(len(instances)))
    for _ in range(ROUNDS):
        queries = [Query(instances[i], float(size[i]), property, norm) for i in pending]
        for i, answer in zip(pending, attack.decide(classifier, queries, Budget(seconds=None)), strict=True):
            if answer.witness is None:
                low[i] = size[i]
            elif best[i] is None or answer.witness.distance < high[i]:
                best[i], high[i] = answer.witness, answer.witness.distance
            size[i] = (low[i] + high[i]) / 2
        pending = [i for i in pending if best[i] is not None and high[i] - low[i] > 1e-4 * high[i]]
        if not pending:
            break
    return best


def _whole(classifier: Classifier, instance: Instance, norm: Norm) -> float:
    """The size of a ball that holds the domain; 1 where the domain has no end."""
    return classifier.domain.farthest(instance.x, norm) if classifier.domain.bounded else 1.0
