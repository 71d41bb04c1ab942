"""What the exam for deciders asks about: toys, inputs, queries around their exact radii, and the scope of an exam."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from radii.models.classifier import Classifier
from radii.problem import Classification, Instance, Norm, Query
from radii.testing.exact import exact_radius
from radii.testing.toys import linear_toy, random_instance, random_network

FACTORS = (0.0, 0.5, 0.99, 1.01, 1.5)  # of the exact radius
KINDS = ("linear", "dense", "conv", "residual", "leaky", "maxpool")
SEEDS = {"linear": (0, 1, 2, 3)}  # cheap; one network of each other kind
NORMS = ("linf", "l2", "l1")


@dataclass(frozen=True)
class Scope:
    """What a decider is held to: without `norms` it may refuse any; `exact` allows no UNKNOWN on linear networks."""

    norms: tuple[str, ...] = ()
    slow_norms: tuple[str, ...] = ()  # taken, but too slowly to be asked
    kinds: tuple[str, ...] = KINDS
    exact: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        """The norms that are asked about."""
        return self.norms or NORMS

    @property
    def refused(self) -> set[str]:
        """The norms that must be refused."""
        return set(NORMS) - {*self.norms, *self.slow_norms} if self.norms else set()


EVERYTHING = Scope()


@lru_cache(maxsize=32)
def case(kind: str, seed: int) -> tuple[Classifier, Instance]:
    """A toy and an input that it classifies."""
    network = linear_toy(seed).classifier if kind == "linear" else random_network(seed, kind)
    return network, random_instance(network, seed)


@lru_cache(maxsize=256)
def truth(kind: str, seed: int, norm: str, target: int | None) -> float:
    """The exact radius of that input."""
    network, instance = case(kind, seed)
    return exact_radius(network, instance.x, instance.label, norm, target)


def queries(kind: str, seed: int, norm: str) -> list[tuple[Query, float]]:
    """Queries around the exact radius, untargeted and for one target, each with that radius."""
    network, instance = case(kind, seed)
    other = (instance.label + 1) % network.classes
    found = []
    for target in (None, other):
        radius = truth(kind, seed, norm, target)
        for factor in FACTORS:
            epsilon = factor * radius if math.isfinite(radius) else 0.3 * factor
            found.append((Query(instance, epsilon, Classification(target), Norm.of(norm)), radius))
    return found


def networks(scope: Scope) -> list[tuple[str, int, str]]:
    """Kind, seed and norm of everything that is asked about."""
    cases = [(kind, seed) for kind in scope.kinds for seed in SEEDS.get(kind, (1,))]
    return [(kind, seed, norm) for (kind, seed), norm in product(cases, scope.asked)]
