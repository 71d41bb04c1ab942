"""MinimalAttack: the minimum-norm attack as a decider; one search answers every ε asked of an instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from radii.attacks.base import Attack
from radii.attacks.effort import Effort
from radii.attacks.exact import Floats
from radii.attacks.min_norm import minimum_norm
from radii.models.classifier import Classifier
from radii.problem import Query
from radii.problem.property import target_of


@dataclass(frozen=True)
class MinimalAttack(Attack):
    """BROKEN where the nearest broken point that the minimum-norm attack finds lies in the ball."""

    takes = ("classes",)
    effort: str = "standard"
    seed: int = 0

    def __post_init__(self) -> None:
        Effort.of(self.effort)

    def search(self, classifier: Classifier, queries: Sequence[Query]) -> Iterator[Floats]:
        keys = [(query.instance.fingerprint, _target(query)) for query in queries]
        places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        first = [keys.index(key) for key in places]
        x = np.stack([queries[i].instance.x.reshape(classifier.input_shape) for i in first])
        labels = [queries[i].instance.label for i in first]
        targets = np.array([_target(queries[i]) for i in first])
        points = np.full_like(x, np.nan)
        for chosen in (np.flatnonzero(targets < 0), np.flatnonzero(targets >= 0)):
            if len(chosen):
                goal = None if targets[chosen[0]] < 0 else targets[chosen]
                marks = np.array(labels)[chosen]
                points[chosen] = minimum_norm(
                    classifier, x[chosen], marks, queries[0].norm, goal, self.effort, self.seed
                ).points
        yield points[[places[key] for key in keys]]


def _target(query: Query) -> int:
    target = target_of(query.property)
    return -1 if target is None else target
