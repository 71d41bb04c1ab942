"""The attacker of Perdomo and Singer (2019): multiplicative weights over members, gradient attacks as best responses.

Every round has a distribution w over members. The attacker answers it: at every point a gradient attack lowers the
w-weighted sum of the members' margins, and of all inputs found so far the one is played that fools most, as weighted by
w. Members that were fooled lose weight, so that the next answer turns to the others. The randomised attack plays the
answers of all rounds with equal chance. Were every answer a best one, its value would lie below that of the game by at
most √(ln|C| / (2·rounds)) (Freund and Schapire 1999); gradient attacks promise nothing, so it is a lower end only.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import epsilon as check_epsilon
from radii._check import whole
from radii._torch import Tensor, torch
from radii.attacks.batches import known_surface
from radii.attacks.pgd import Balls, Pgd, batches
from radii.ensembles.attack import Attack
from radii.ensembles.attackers import fooled_members, replayed
from radii.ensembles.facts import Point, Seen
from radii.ensembles.matrix import bits
from radii.ensembles.members import Merged, check_members
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm

ROUNDS = 50
STEPS = 20  # of each gradient attack
BEYOND = 0.05  # how far past its border a member is pushed, in units of its margin at the input
LEAK = 0.02  # of the ReLUs' slopes, so that silent ones have a gradient

Floats = NDArray[np.floating[Any]]


def multiplicative_weights(
    members: Sequence[Classifier],
    instances: Sequence[Instance],
    norm: Norm,
    epsilon: float | str,
    seconds: float | None = 60.0,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Attack:
    """The answers of all rounds, each with the same probability (equal ones joined); replayed.

    There are so many CPU seconds for each point; rounds after that play what was found before.
    """
    chosen, size = check_members(members), check_epsilon(epsilon)
    whole(rounds, "rounds", low=1)
    end = math.inf if seconds is None else time.process_time() + seconds * len(instances)
    responder = _Responder(chosen, instances, norm, size, seed)
    for c in range(len(chosen)):
        if time.process_time() <= end:
            responder.attack(np.eye(len(chosen))[c])
    rate = math.sqrt(8 * math.log(len(chosen)) / rounds)
    earned, played = np.zeros(len(chosen)), Counter[tuple[int, ...]]()
    for _ in range(rounds):
        weights = np.exp(-rate * (earned - earned.min()))
        weights /= weights.sum()
        if time.process_time() <= end:
            responder.attack(weights)
        sets = responder.best(weights)
        played[tuple(sets.tolist())] += 1
        earned += bits(sets, len(chosen)).mean(0)
    points = np.stack([responder.inputs(sets) for sets in played])
    return replayed(chosen, instances, norm, size, points, np.array(list(played.values())) / rounds)


class _Responder:
    """Answers to distributions over members: what gradient attacks found at every point, and attacks that find more."""

    def __init__(
        self, members: Sequence[Classifier], instances: Sequence[Instance], norm: Norm, size: float, seed: int
    ) -> None:
        self.members, self.instances, self.norm, self.size = members, instances, norm, size
        self.merged = Merged.of(members)
        place = {one.fingerprint: c for c, one in enumerate(members)}
        self.order = [place[one.fingerprint] for one in self.merged.members]
        self.labels = np.array([one.label for one in instances])
        self.ball = Balls.around(self.merged, instances, norm, [size] * len(instances))
        self.points = [Point(len(members)) for _ in instances]
        self.rng = np.random.default_rng(seed)
        self.surface = known_surface(self.merged)
        leads = self._leads(self.surface.outputs(self.ball.center), torch.arange(len(instances)))
        self.scale = leads.abs().clamp_min(1e-3 * leads.abs().max().clamp_min(1e-6))
        self._see(np.stack([one.x for one in instances]))

    def attack(self, weights: NDArray[np.float64]) -> None:
        """Looks for inputs that fool much, as weighted: from the input itself, a random one and the best known."""
        if self.size == 0:
            return
        known = torch.from_numpy(self.inputs(self.best(weights)).reshape(len(self.points), -1)).to(self.surface.dtype)
        noise = torch.from_numpy(self.rng.uniform(-1, 1, known.shape)).to(known.dtype)
        start = torch.cat([0 * known, noise, (known - self.ball.center) / self.size])
        owner = torch.arange(len(known)).repeat(len(start) // len(known))
        share = torch.from_numpy(weights[self.order]).to(known.dtype)
        found = torch.empty_like(start)
        for index in batches(self.surface, len(start)):
            found[index] = self._descend(owner[index], share, start[index])
        for part in torch.split(found, len(known)):
            inside = self.ball.inside(part.numpy(), self.merged)
            self._see(inside.reshape(len(inside), *self.instances[0].x.shape))

    def best(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """For every point the set of members that weighs most of those that a known input fools."""
        known = [one.fooled(self.size) for one in self.points]
        return np.array([sets[int((bits(sets, len(weights)) @ weights).argmax())] for sets in known], dtype=np.int64)

    def inputs(self, sets: Sequence[int] | NDArray[np.int64]) -> Floats:
        """The known inputs that fool these sets, one for each point; the point itself for the empty set."""
        seen = [point.nearest(int(mask)) if mask else None for point, mask in zip(self.points, sets)]
        return np.stack([one.x if found is None else found.x for one, found in zip(self.instances, seen)])

    def _descend(self, index: Tensor, share: Tensor, start: Tensor) -> Tensor:
        def value(outputs: Tensor) -> Tensor:  # a member that is fooled counts no more
            left = (self._leads(outputs, index) / self.scale[index] + BEYOND).clamp_min(0.0)
            return left @ share

        leak = torch.full((len(index),), LEAK, dtype=self.surface.dtype)
        return Pgd(steps=STEPS).descend(self.surface, value, self.ball.rows(index), start, leak)[0]

    def _leads(self, outputs: Tensor, index: Tensor) -> Tensor:
        """By how much the label leads in every member (rows, members), in the order of the merged network."""
        each = outputs[:, : self.merged.classes].reshape(len(outputs), len(self.members), -1)
        at = torch.from_numpy(self.labels)[index][:, None, None].expand(-1, len(self.members), 1)
        rival = each.scatter(2, at, -torch.inf).amax(2)
        return each.gather(2, at)[:, :, 0] - rival

    def _see(self, inputs: Floats) -> None:
        fooled = fooled_members(self.members, inputs, self.labels) @ (1 << np.arange(len(self.members)))
        for point, instance, x, mask in zip(self.points, self.instances, inputs, fooled.tolist()):
            distance = self.norm.distance(x, instance.x)
            if mask and distance <= self.size:
                point.see(Seen(mask, distance, x))
