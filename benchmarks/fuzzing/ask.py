"""Cases: a random network with a domain, preprocessing and inputs, or with a box and a specification."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzzing.build import Array, Network
from fuzzing.oracle import Goal
from fuzzing.planted import Spike, linear_network
from fuzzing.recipes import random_network

NORMS = ("linf", "l2", "l1")
ARITHMETICS = ("real", "float32")
DOMAINS = (
    (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (-0.3, 0.7), (1000.0, 1001.0), (0.5, 0.501),
    (-1e-3, 1e3), (0.0, math.inf), (-math.inf, 2.0), (-math.inf, math.inf),
)  # fmt: skip
NODES = (1, 1, 2, 4, 4, 8, 16)  # few: thousands of small searches find more than hundreds of long ones
INPUTS = 4  # radii of one network


@dataclass(frozen=True)
class RadiusCase:
    """What is asked for the radii of some inputs of one network."""

    index: int
    recipe: str
    profile: str
    network: Network
    norm: str
    arithmetic: str
    domain: tuple[float, float]
    x: Array
    labels: list[int]
    target: int | None
    nodes: int
    tolerance: float
    limit: float | None
    evidence: bool
    spike: Spike | None = field(default=None, repr=False)


@dataclass(frozen=True)
class SpecCase:
    """What is asked for one specification over a box."""

    index: int
    recipe: str
    profile: str
    network: Network
    low: Array
    high: Array
    goal: Goal
    nodes: int
    hints: Array


def radius_case(seed: int, index: int) -> RadiusCase:
    """The case of a seed and an index; the same pair gives the same case."""
    rng = np.random.default_rng([seed, 1, index])
    norm, arithmetic = NORMS[index % 3], ARITHMETICS[index // 3 % 2]
    recipe, profile, network, spike = _network(rng, arithmetic == "float32", softmax=arithmetic == "real")
    domain = DOMAINS[int(rng.integers(len(DOMAINS)))] if spike is None else (0.0, 1.0)
    width = min(domain[1] - domain[0], 1e6)
    width = width if math.isfinite(domain[1] - domain[0]) else 1.0
    network = network if spike is not None else _prepared(rng, network, domain, width)
    x = _inputs(rng, network, domain, width, spike)
    outputs = network.run(x)
    labels = [int(np.argmax(np.nan_to_num(row))) for row in outputs] if spike is None else [0] * len(x)
    target = None
    if rng.random() < 0.15:
        free = [t for t in range(network.classes) if t not in labels]
        target = free[0] if free else None
    if rng.random() < 0.04 and target is None:
        labels[0] = (labels[0] + 1) % network.classes
    bounded = math.isfinite(domain[0]) and math.isfinite(domain[1])
    limit = None if bounded and rng.random() < 0.6 else width * float(rng.choice([0.05, 0.3, 1.0, 3.0]))
    return RadiusCase(
        index, recipe, profile, network, norm, arithmetic, domain, x, labels, target,
        nodes=int(rng.choice(NODES)),
        tolerance=width * float(rng.choice([2e-3, 2e-2, 2e-2])),
        limit=limit,
        evidence=bool(rng.random() < 0.15) and not network.curved,
        spike=spike,
    )  # fmt: skip


def spec_case(seed: int, index: int) -> SpecCase:
    """The specification of a seed and an index."""
    rng = np.random.default_rng([seed, 2, index])
    recipe, profile, network, spike = _network(rng, False, softmax=False)
    inputs = math.prod(network.shape)
    if spike is None:
        middle = rng.uniform(-1, 1, inputs)
        reach = rng.uniform(0, 1, inputs) * float(rng.choice([0.01, 0.2, 0.6, 2.0])) * (rng.random(inputs) < 0.9)
        low, high, hints = middle - reach, middle + reach, np.zeros((0, inputs))
        network = _prepared(rng, network, (-1.0, 1.0), 1.0)
        goal = _goal(rng, network, low, high)
    else:
        wide = float(rng.choice([1.0, 0.3, 0.1]))
        low, high = np.maximum(0.0, spike.place - wide), np.minimum(1.0, spike.place + wide * rng.random())
        hints, goal = spike.place[None], Goal.classes(network.classes, 0, 1)
    return SpecCase(index, recipe, profile, network, low, high, goal, int(rng.choice(NODES)), hints)


def _network(rng: np.random.Generator, deployed: bool, softmax: bool) -> tuple[str, str, Network, Spike | None]:
    kind = rng.random()
    if kind < 0.12:
        network, profile = linear_network(rng)
        return "linear", profile, network, None
    if kind < 0.27:
        spike = Spike(rng)
        return "spike", f"behind {spike.hidden} layers", spike.network, spike
    network, profile = random_network(rng, deployed, softmax)
    return "random", profile, network, None


def _prepared(rng: np.random.Generator, network: Network, domain: tuple[float, float], width: float) -> Network:
    """The network behind some preprocessing, now and then; wide and far domains get what brings them near 0."""
    start = domain[0] if math.isfinite(domain[0]) else 0.0
    far = width > 10 or abs(start) > 10
    if network.double or rng.random() > (0.8 if far else 0.2):
        return network
    if far and rng.random() < 0.7:
        return network.prepared((start,), (width,))
    channels = network.shape[0]
    if rng.random() < 0.5 and channels > 1:
        return network.prepared(tuple(rng.normal(size=channels)), tuple(rng.uniform(0.2, 2.0, channels)))
    return network.prepared((float(rng.normal()),), (float(rng.choice([0.5, 0.3081, 2.0, 1e-3])),))


def _inputs(
    rng: np.random.Generator, network: Network, domain: tuple[float, float], width: float, spike: Spike | None
) -> Array:
    """Inputs at random, on a grid, in corners, and close to where the class changes; float32 numbers of the domain."""
    inputs = math.prod(network.shape)
    start = domain[0] if math.isfinite(domain[0]) else min(-0.5, domain[1] - 1.0)
    x = start + width * rng.random((INPUTS, inputs))
    if spike is not None:
        return (rng.integers(0, 65, (INPUTS, inputs)) / 64).astype(np.float32).astype(np.float64)
    x[1] = start + width * rng.integers(0, 9, inputs) / 8
    x[2] = np.where(rng.random(inputs) < 0.7, start + width * rng.integers(0, 2, inputs), x[2])
    x[3] = _close(rng, network, x[0], start + width * rng.random((24, inputs)))
    low, high = (np.float32(v) for v in domain)
    low = low if float(low) >= domain[0] else np.nextafter(low, np.float32(np.inf))
    high = high if float(high) <= domain[1] else np.nextafter(high, np.float32(-np.inf))
    return np.clip(x.astype(np.float32), low, high).astype(np.float64)


def _close(rng: np.random.Generator, network: Network, here: Array, others: Array) -> Array:
    """A point on the way from one input to one of another class, shortly before the class changes."""
    with np.errstate(all="ignore"):
        classes = network.run(np.concatenate([here[None], others])).argmax(1)
        there = others[classes[1:] != classes[0]]
        if not len(there):
            return here
        steps = np.linspace(0, 1, 65)[:, None]
        line = here + (there[0] - here) * steps
        change = int(np.argmax(network.run(line).argmax(1) != classes[0]))
    return here + (there[0] - here) * (change - 1) / 64 * float(rng.choice([1.0, 0.9, 0.7]))


def _goal(rng: np.random.Generator, network: Network, low: Array, high: Array) -> Goal:
    """One to three clauses of one to three rows, most of them nearly met somewhere in the box."""
    with np.errstate(all="ignore"):
        outputs = network.run(low + (high - low) * rng.random((64, len(low))))
    outputs = np.nan_to_num(outputs, nan=0.0, posinf=0.0, neginf=0.0)
    clauses: list[tuple[Array, Array]] = []
    for _ in range(int(rng.integers(1, 4))):
        rows, bounds = [], []
        for _ in range(int(rng.integers(1, 4))):
            row = (
                rng.integers(-2, 3, network.classes).astype(float)
                if rng.random() < 0.6
                else rng.normal(size=network.classes)
            )
            values = outputs @ row
            spread = float(np.ptp(values)) or float(np.abs(values).max()) or 1.0
            rows.append(row)
            bounds.append(
                float(
                    np.quantile(values, rng.choice([0.0, 0.0, 0.2, 0.6])) - rng.choice([-0.05, 0.05, 0.3, 0.0]) * spread
                )
            )
        clauses.append((np.array(rows), np.array(bounds)))
    return Goal(tuple(clauses))


def single(case: RadiusCase, place: int) -> RadiusCase:
    """The case with one of its inputs only."""
    return replace(case, x=case.x[place : place + 1], labels=case.labels[place : place + 1])


def describe(case: RadiusCase | SpecCase) -> dict[str, Any]:
    """What the summary needs to know of a case."""
    asked = {"recipe": case.recipe, "profile": case.profile, "operators": list(case.network.operators)}
    asked |= {"inputs": math.prod(case.network.shape), "curved": case.network.curved, "double": case.network.double}
    if isinstance(case, RadiusCase):
        asked |= {"norm": case.norm, "arithmetic": case.arithmetic}
    return asked
