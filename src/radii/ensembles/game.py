"""Game: the answer for an ensemble, for every ε at once: value, attack, mix and radius."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._check import epsilon as check_epsilon
from radii._check import number
from radii._html import table
from radii.ensembles.attack import Attack, pieces
from radii.ensembles.facts import Point, Seen
from radii.ensembles.matrix import Solution, solve
from radii.ensembles.members import fools
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm

ROUNDING = 1e-12  # of values
DENOMINATOR = 10**6  # values are fractions of small whole numbers: what differs from one by rounding alone is that one


@dataclass(frozen=True)
class Mix:
    """How the defender should choose a member at random, and what that buys; losses are bounds that are proven.

    Whatever attack of size ε comes, the expected loss of the mix is at most `value`, that of always using the best
    single member at most `single`, that of choosing uniformly at most `uniform`.
    """

    epsilon: float
    weights: tuple[float, ...]
    value: float
    single: float
    uniform: float
    best: int  # the member of `single`

    @property
    def bought(self) -> float:
        """How much lower the proven loss is than that of the best single member."""
        return self.single - self.value


@dataclass(frozen=True, eq=False)
class Game:
    """An ensemble against randomised attacks on a data set, as far as it is known.

    `value(ε)` is an interval: its low end is what an attack of replayed inputs earns, its high end what the defender's
    mix is proven to allow.
    """

    members: tuple[Classifier, ...]
    instances: tuple[Instance, ...]
    points: tuple[Point, ...]
    norm: Norm
    limit: float | None = None
    complete: bool = True  # whether nothing was left to ask when the search ended
    searches: int = 0  # joint radii that were asked for, the members' own included
    cpu_seconds: float = 0.0
    _solved: dict[tuple[str, float], Solution] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(one.name or one.fingerprint[:8] for one in self.members)

    def value(self, epsilon: float | str) -> tuple[float, float]:
        """What the best randomised attack of size ε gets: [witnessed, not excluded]."""
        size = check_epsilon(epsilon)
        return snapped(self._at("fooled", size).low), snapped(self._at("possible", size).high)

    def attack(self, epsilon: float | str) -> Attack:
        """The best attack known at ε: at most as many deterministic attacks as there are members."""
        size = check_epsilon(epsilon)
        played = pieces(self._at("fooled", size))
        points, distances, fooled = [], [], []
        for _, sets in played:
            used = [self._within(place, mask, size) for place, mask in enumerate(sets)]
            points.append(np.stack([one.x for one in used]))
            distances.append([one.distance for one in used])
        labels = np.array([instance.label for instance in self.instances])
        for moved in points:
            outputs = np.stack([one.reference(moved.reshape(len(moved), *one.input_shape)) for one in self.members], 1)
            fooled.append(fools(outputs, labels[:, None]))
        chances = np.array([chance for chance, _ in played])
        return Attack(size, np.stack(points), chances / chances.sum(), np.stack(fooled), np.array(distances))

    def mix(self, epsilon: float | str) -> Mix:
        """The defender's best random choice of a member at ε, as far as proofs go."""
        size = check_epsilon(epsilon)
        solution = self._at("possible", size)
        count = len(self.members)
        single = [float(np.mean([(sets >> c & 1).max() for sets in solution.sets])) for c in range(count)]
        uniform = float(np.mean([np.bitwise_count(sets).max() / count for sets in solution.sets]))
        best = int(np.argmin(single))
        weights = tuple(snapped(w) for w in solution.mix.tolist())
        return Mix(size, weights, snapped(solution.high), snapped(single[best]), snapped(uniform), best)

    def radius(self, alpha: float | str) -> tuple[float, float | None]:
        """The ensemble's radius at α: the least ε at which an attack gets α, as [proven, witnessed]; None: not found.

        Below its low end the ensemble is (ε, α)-robust, from its high end on it is not.
        """
        level = number(alpha, "alpha", low=0.0, high=1.0)
        if level <= 0:
            raise InputError(f"alpha: expected a value above 0 and at most 1, got {alpha}")
        steps = self.steps  # both ends of the value grow with ε: bisect
        safe = bisect_left(steps, True, key=lambda size: self.value(size)[1] >= level - ROUNDING)
        broken = bisect_left(steps, True, key=lambda size: self.value(size)[0] >= level - ROUNDING)
        return steps[safe - 1] if safe else 0.0, steps[broken] if broken < len(steps) else None

    def robust(self, epsilon: float | str, alpha: float | str) -> bool | None:
        """Whether the ensemble is (ε, α)-robust; None while that is open."""
        level = number(alpha, "alpha", low=0.0, high=1.0)
        low, high = self.value(epsilon)
        return True if high < level - ROUNDING else False if low >= level - ROUNDING else None

    @cached_property
    def steps(self) -> list[float]:
        """The sizes at which the value may change, 0 first."""
        return sorted({0.0}.union(*(point.steps() for point in self.points)))

    def curve(self, high: float | None = None) -> list[tuple[float, float, float, float]]:
        """The value for all ε up to `high` as pieces (from, to, low, high): constant inside each piece."""
        steps = [e for e in self.steps if high is None or e < high]
        if high is not None:
            steps.append(high)
        elif self.limit is not None and self.limit > steps[-1]:
            steps.append(self.limit)
        found: list[tuple[float, float, float, float]] = []
        for start, end in pairwise(steps):
            low, top = self.value(0.5 * (start + end))
            if found and found[-1][2:] == (low, top):
                found[-1] = (found[-1][0], end, low, top)
            else:
                found.append((start, end, low, top))
        return found

    def width(self, high: float) -> float:
        """The mean width of the value's band over ε from 0 to `high`."""
        return sum((end - start) * (top - low) for start, end, low, top in self.curve(high)) / high

    def result(self, epsilon: float | str) -> dict[str, Any]:
        """The answer at one ε as plain values."""
        attack, mix = self.attack(epsilon), self.mix(epsilon)
        names = np.array(self.names)
        return {
            "epsilon": attack.epsilon,
            "value": list(self.value(epsilon)),
            "attacks": [
                {"probability": chance, "fooled": [names[row].tolist() for row in rows]}
                for chance, rows in zip(attack.probabilities.tolist(), attack.fooled)
            ],
            "mix": list(mix.weights),
            "best_single": {"classifier": self.names[mix.best], "loss": mix.single},
            "uniform": mix.uniform,
        }

    def _within(self, place: int, mask: int, epsilon: float) -> Seen:
        """The witness that a point plays for a set: the nearest one; the input itself for the empty set."""
        point, instance = self.points[place], self.instances[place]
        found = point.nearest(mask) if mask else None
        if found is None or found.distance > epsilon:
            return Seen(0, 0.0, instance.x)
        return found

    def _at(self, which: str, epsilon: float) -> Solution:
        """The solution at ε; what is known does not change between two steps, so one is kept for each."""
        steps = self.steps
        place = int(np.searchsorted(steps, epsilon, side="left"))
        exact = place < len(steps) and steps[place] == epsilon
        key = (which, float(place) if exact else place - 0.5)
        if key not in self._solved:
            sets = [getattr(point, which)(epsilon) for point in self.points]
            self._solved[key] = solve(sets, len(self.members))
        return self._solved[key]

    def __repr__(self) -> str:
        return f"Game({len(self.members)} members, {len(self.instances)} points, {self.norm.name})"

    def _repr_html_(self) -> str:
        """What is known, for notebooks."""
        rows = [
            ("members", ", ".join(self.names)),
            ("points", len(self.instances)),
            ("norm", self.norm.name),
            ("joint radii asked", self.searches),
            ("CPU seconds", self.cpu_seconds),
        ]
        return table("ensemble", rows)


def snapped(value: float) -> float:
    """The fraction of small whole numbers that a value is but for rounding; itself where there is none."""
    near = Fraction(value).limit_denominator(DENOMINATOR)
    return float(near) if abs(float(near) - value) < 1e-11 else value


def fooled_by(members: Sequence[Classifier], labels: Sequence[int], x: NDArray[Any]) -> list[int]:
    """The set of members that each input fools, replayed on each original model."""
    masks = np.zeros(len(x), dtype=np.int64)
    for place, one in enumerate(members):
        masks |= fools(one.reference(x.reshape(len(x), *one.input_shape)), np.array(labels)).astype(np.int64) << place
    return [int(mask) for mask in masks]
