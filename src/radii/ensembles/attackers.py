"""Attackers that look at one member at a time: the uniform attacker and the best deterministic attack of Gross et al.

For each member an attack that is optimal against it alone: every point that can be moved to where that member errs is
moved there, every other point stays. The uniform attacker (UA) picks one of these attacks at random, the best
deterministic attacker (BDA) always plays the one with the highest value. Both are what the game is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import epsilon as check_epsilon
from radii.decide import Budget
from radii.engine.native import Native
from radii.ensembles.attack import Attack
from radii.ensembles.members import check_members, fools
from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm, Query


def alone(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    epsilon: float | str,
    seconds: float | None = 60.0,
) -> Attack:
    """One deterministic attack per member, optimal against it alone, each with the same probability; replayed.

    Each point has so many CPU seconds; one that is open then stays where it is, as if the member could not be fooled.
    """
    chosen, size = check_members(members), check_epsilon(epsilon)
    native, budget = Native(), Budget(seconds=seconds)
    points = np.stack([np.stack([one.x for one in instances])] * len(chosen))
    for c, member in enumerate(chosen):
        asked = [Query(one, size, Classification(), norm) for one in instances]
        for j, answer in enumerate(native.decide(member, asked, budget)):
            if answer.witness is not None:
                points[c, j] = np.asarray(answer.witness.x).reshape(points[c, j].shape)
    return replayed(chosen, instances, norm, size, points, np.full(len(chosen), 1.0 / len(chosen)))


def replayed(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    size: float,
    points: NDArray[np.floating[Any]],
    chances: NDArray[np.float64],
) -> Attack:
    """The attack that moves input j to points[i, j] with a chance, with whom that fools on the original models."""
    labels = np.array([one.label for one in instances])
    fooled = np.stack([fooled_members(members, row, labels) for row in points])
    distances = np.array([[norm.distance(x, one.x) for x, one in zip(row, instances)] for row in points])
    return Attack(size, points, chances, fooled, distances)


def fooled_members(
    members: Sequence[Classifier], inputs: NDArray[np.floating[Any]], labels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether each input fools each member (inputs, members), as the original models say."""
    outputs = [one.reference(inputs.reshape(len(inputs), *one.input_shape)) for one in members]
    return np.stack([fools(values, labels) for values in outputs], -1)


def uniform(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    epsilon: float | str,
    seconds: float | None = 60.0,
) -> Attack:
    """UA: one of the members' own optimal attacks, each with the same probability."""
    return alone(members, instances, norm, epsilon, seconds)


def best_deterministic(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    epsilon: float | str,
    seconds: float | None = 60.0,
) -> Attack:
    """BDA: the one of the members' own optimal attacks with the highest value."""
    return best_of(alone(members, instances, norm, epsilon, seconds))


def best_of(attack: Attack) -> Attack:
    """Of the deterministic attacks of a randomised one the one that gets most when it is always played."""
    values = attack.fooled.mean(axis=1).min(axis=1)
    chances = np.zeros(len(values))
    chances[int(np.argmax(values))] = 1.0
    return replace(attack, probabilities=chances)
