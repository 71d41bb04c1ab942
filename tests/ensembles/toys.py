"""Tiny ensembles, their exact joint radii and the exact value of their game, found without the code under test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from radii.ensembles.members import Joint, Merged
from radii.models import Classifier, load_classifier
from radii.problem import Instance, Norm
from radii.testing import exact_breach, linear_toy, relu_toy
from radii.testing._build import Builder


def linear(weight: Sequence[Sequence[float]], bias: Sequence[float], name: str, domain: object = None) -> Classifier:
    """The classifier of the outputs weight @ x + bias."""
    rows = np.array(weight, dtype=np.float32)
    builder = Builder(0, (rows.shape[1],))
    constants = builder.constant(rows), builder.constant(np.array(bias, dtype=np.float32))
    model = builder.apply("Gemm", *constants, shape=(len(rows),), transB=1).model()
    return load_classifier(model, name=name, domain=domain)


def two_lines() -> tuple[list[Classifier], Instance]:
    """Figures 1 to 4 of Gross et al.: one member errs left of a vertical line, the other right of one."""
    left = linear([[0, 0], [-1, 0]], [1.5, 0], "left")  # class 1 where −x ≥ 1.5
    right = linear([[0, 0], [1, 0]], [1.5, 0], "right")
    return [left, right], Instance(np.zeros(2, np.float32), 0)


def exact_joint_radii(members: Sequence[Classifier], instance: Instance, norm: Norm) -> dict[int, float]:
    """The joint radius of every set of members."""
    found = {}
    for size in range(1, len(members) + 1):
        for chosen in itertools.combinations(range(len(members)), size):
            merged = Merged.of([members[c] for c in chosen])
            spec = Joint(size).violations(merged.classes, instance.label)
            mask = sum(1 << c for c in chosen)
            found[mask] = exact_breach(merged, instance.x, spec, norm).distance
    return found


def exact_value(radii: Sequence[dict[int, float]], members: int, epsilon: float) -> float:
    """The value of the game by the defender's program: the least, over mixes, mean of the best answers."""
    points = len(radii)
    rows, limits = [], []
    for place, known in enumerate(radii):
        for mask in [0, *(m for m, radius in known.items() if radius <= epsilon)]:
            row = np.zeros(members + points)
            row[:members] = [mask >> c & 1 for c in range(members)]
            row[members + place] = -1.0
            rows.append(row)
            limits.append(0.0)
    cost = np.r_[np.zeros(members), np.full(points, 1.0 / points)]
    once = np.r_[np.ones(members), np.zeros(points)][None]
    found = linprog(cost, np.array(rows), limits, once, [1.0], bounds=(0, None))
    assert found.success
    return float(found.fun)


def between(steps: Sequence[float], top: float = math.inf) -> list[float]:
    """Sizes between the steps, away from them, where no tolerance can hide an error."""
    known = sorted({0.0, *(s for s in steps if math.isfinite(s) and s < top)})
    middle = [0.5 * (a + b) for a, b in itertools.pairwise(known) if b - a > 1e-3]
    return [*middle, known[-1] * 1.2 + 0.01]


def members_of(seed: int) -> list[Classifier]:
    """Two to four members of two inputs and two or three classes, linear and ReLU in turns."""
    rng = np.random.default_rng(seed)
    count, classes = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    found = []
    for k in range(count):
        if (seed + k) % 2:
            found.append(linear_toy(100 * seed + k, 2, classes).classifier)
        else:
            found.append(relu_toy(100 * seed + k, (2, 4, classes)))
    return found


def data_of(members: list[Classifier], seed: int, count: int = 3) -> list[Instance]:
    """Inputs labelled by the majority: some members may be wrong on them from the start."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(count, 2)).astype(np.float32)
    votes = np.stack([one.predict(x) for one in members])
    return [Instance(x[k], int(np.bincount(votes[:, k]).argmax()), k) for k in range(count)]


def random_game(seed: int) -> tuple[list[Classifier], list[Instance]]:
    """A random ensemble and three inputs."""
    members = members_of(seed)
    return members, data_of(members, seed)
