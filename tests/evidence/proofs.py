"""Evidence of small networks, and how it is tampered with so that its digest is right again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from radii.decide import Budget
from radii.engine.native import Native
from radii.engine.tuning import DEFAULT, Tuning
from radii.evidence.file import pack, unpack
from radii.models import Classifier
from radii.problem import LINF, Classification, Instance, Norm, Radius

RECORDER = Native(effort="fast", evidence=True)


def proven(
    network: Classifier,
    instance: Instance,
    norm: Norm = LINF,
    target: int | None = None,
    tolerance: float = 1e-3,
    tuning: Tuning = DEFAULT,
) -> Radius:
    """A measured radius that asked for evidence."""
    asked, recorder = Classification(target), replace(RECORDER, tuning=tuning)
    return recorder.measure(network, [instance], asked, norm, Budget(seconds=20), tolerance=tolerance, limit=3.0)[0]


def rewritten(data: bytes, claim: dict[str, Any] | None = None, arrays: dict[str, Any] | None = None) -> bytes:
    """The same evidence with other claims or arrays, and a digest that fits."""
    old_claim, old_arrays = unpack(data)
    return pack({**old_claim, **(claim or {})}, {**old_arrays, **(arrays or {})})


def shaken(data: bytes, rng: np.random.Generator) -> bytes:
    """The same evidence with some numbers of one array changed at random, inside what its type allows."""
    claim, arrays = unpack(data)
    name = str(rng.choice([key for key, value in arrays.items() if value.size and key != "x"]))
    array = arrays[name].copy()
    where = rng.random(array.shape) < rng.choice([0.02, 0.3, 1.0])
    if array.dtype.kind == "f":
        noise = rng.normal(size=array.shape) * rng.choice([1e-3, 1.0, 1e3]) * (1.0 + np.abs(array))
        array[where] = (array + noise).astype(array.dtype)[where]
    else:
        high = int(rng.choice([2, 5, max(2, int(array.max()) + 2), 256]))
        array[where] = rng.integers(0, high, size=array.shape).astype(array.dtype)[where]
    return pack(claim, {**arrays, name: array})
