"""Working: one torch thread for the engine's work, and nothing of a process or a network charged to an input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from radii._torch import torch
from radii.attacks.batches import known_surface
from radii.attacks.effort import Effort
from radii.bounds.lowering import unbounded
from radii.engine.output_rows import lowered
from radii.engine.tuning import Attacking
from radii.models.classifier import Classifier


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread while radii are found: more only fight over small tensors, and all of their time is charged."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def working(classifier: Classifier) -> Iterator[None]:
    """One thread for the engine, after what only the first input needs: loading, lowering (compiling: `cuts.py`)."""
    with one_thread():
        classifier.once(("ready",), lambda: _load(classifier))
        yield


def _load(classifier: Classifier) -> bool:
    """The network in onnxruntime, lowered, and as attacks see it."""
    classifier.reference(np.zeros((1, *classifier.input_shape), np.float32))
    if not unbounded(classifier.graph):
        lowered(classifier)
        known_surface(classifier)
    return True


def affordable(
    effort: Effort, classifier: Classifier, count: int, seconds: float | None, rule: Attacking, device: str = "cpu"
) -> Effort:
    """The effort itself if attacking so many inputs is predicted to take no more than its part of their budgets.

    Otherwise the fast one, cut down where even that is too much: bounds must have time left.
    """
    if seconds is None or not count:
        return effort
    allowed, fast = rule.share * seconds * count, Effort.of("fast")
    cost, less = (rule.unsure * _price(classifier, e, count, rule.probed, device) for e in (effort, fast))
    return effort if cost <= allowed else fast.cut(allowed / less)


def _price(classifier: Classifier, effort: Effort, count: int, most: int, device: str) -> float:
    """CPU seconds of the gradients of an attack on so many inputs, from the quicker of two batches of `most` rows."""
    surface = known_surface(classifier, device)
    rows = count * effort.scouts(classifier.classes)
    some = min(rows, most)
    x = torch.zeros((some, surface.size), dtype=surface.dtype, device=surface.device)
    labels = torch.zeros(some, dtype=torch.int64, device=surface.device)
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        surface.slope(x, labels, labels - 1, torch.zeros(some, dtype=surface.dtype, device=surface.device))
        best = min(best, time.process_time() - start)
    return best * rows / some * effort.passes(classifier.classes)
