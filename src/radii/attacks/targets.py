"""What an attack may be asked: inputs, labels and targets, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.attacks.exact import Floats
from radii.errors import InputError
from radii.models.classifier import Classifier


def check_inputs(classifier: Classifier, x: Any, labels: Any) -> tuple[Floats, NDArray[np.int64]]:
    """Inputs of the domain as a batch of the model's own floats, and their labels."""
    marks = np.asarray(labels)
    if marks.ndim != 1:
        raise InputError(f"labels: expected one per input in a list, got shape {marks.shape}")
    batch = np.asarray(x, dtype=classifier.dtype)
    if not len(marks) and not batch.size:
        return batch.reshape(0, *classifier.input_shape), np.zeros(0, np.int64)
    if batch.size != len(marks) * classifier.size:
        raise InputError(f"inputs: expected {len(marks)} of shape {classifier.input_shape}, got shape {batch.shape}")
    batch = batch.reshape(len(marks), *classifier.input_shape)
    classifier.check_inputs(batch, marks)
    return batch, marks.astype(np.int64)


def check_targets(classifier: Classifier, labels: NDArray[np.int64], targets: Any) -> tuple[NDArray[np.int64], bool]:
    """One target per instance (−1 for any other class), and whether each class is asked for."""
    if targets is None or (isinstance(targets, str) and targets == "each"):
        return np.full(len(labels), -1, dtype=np.int64), targets is not None
    wanted = np.asarray(targets)
    if wanted.dtype.kind not in "iu" or wanted.shape not in ((), labels.shape):
        raise InputError(f"targets: expected None, 'each', a class, or one class per input, got {targets!r}")
    wanted = np.broadcast_to(wanted, labels.shape).astype(np.int64)
    bad = wanted[(wanted < -1) | (wanted >= classifier.classes)]
    if bad.size:
        raise InputError(f"target: expected a class from 0 to {classifier.classes - 1}, got {bad[0]}")
    if (wanted == labels).any():
        raise InputError(f"target: expected another class than the label, got {wanted[wanted == labels][0]} for both")
    return wanted, False
