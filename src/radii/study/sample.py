"""Sample: inputs drawn at random for a guarantee, and measured until enough is known."""

from __future__ import annotations

import numpy as np

from radii._check import whole
from radii.data import Dataset
from radii.errors import InputError
from radii.problem import Radius
from radii.stats.sequential import Watch
from radii.store import Store
from radii.study.question import Question
from radii.study.stored import Progress, stored_radii

BATCH = 32  # inputs between two looks of a sequential guarantee


def draw(data: Dataset, count: int, seed: int = 0) -> Dataset:
    """`count` inputs in random order, without replacement; a longer draw with that seed begins with a shorter one."""
    many = whole(count, "inputs", low=1)
    if many > len(data):
        raise InputError(f"inputs: expected at most the {len(data)} inputs of {data.name} {data.split}, got {many}")
    return data[np.random.default_rng(whole(seed, "seed")).permutation(len(data))[:many]]


def watched(
    question: Question, data: Dataset, store: Store, watch: Watch, progress: Progress | None = None
) -> tuple[list[Radius], Watch]:
    """Radii of inputs in the order given, batch by batch, until the guarantee is as narrow as asked."""
    instances, found = data.instances, list[Radius]()
    for start in range(0, len(instances), BATCH):

        def tell(finished: int, radius: Radius, before: int = start) -> None:
            if progress is not None:
                progress(before + finished, radius)

        part = stored_radii(question, instances[start : start + BATCH], store, tell)
        found += part
        watch = watch.add(
            lower=[radius.lower for radius in part],
            upper=[radius.upper for radius in part],
            correct=[not radius.misclassified for radius in part],
        )
        if watch.done:
            break
    return found, watch


def evidence(proves: bool, refutes: bool) -> str:
    """What a guarantee rests on, from what the decider can answer."""
    if proves and refutes:
        return "proof and attack"
    return "proof only" if proves else "attack only"
