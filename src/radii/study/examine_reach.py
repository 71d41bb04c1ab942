"""What one forward pass and arithmetic can say of a stored reach: each test gives lines, none when all is well."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii._torch import torch
from radii.attacks.reach import judged
from radii.decide import values_of
from radii.models.classifier import Classifier
from radii.problem import Ball, Instance, Norm, Quantity, Witness
from radii.store import ReachRecord
from radii.study.examine import misplaced, stated
from radii.study.recall import property_of

_ROUNDING = 2.0**-19  # of the outputs: how far float32 values of one input may lie apart between batches and machines
_RESOLUTION = 2.0**-16  # of the outputs: the widest gap that rounding alone can explain


def row(record: ReachRecord, status: str) -> Iterator[str]:
    """What is wrong with the row by itself: its status, its ends, its proof and its tolerance."""
    reach, asked = record.reach, record.unit.setting.search_parameters
    yield from stated(reach, status, record.finished)
    if reach.proof is not None and reach.proven is None:
        yield f"a proof ({reach.proof.kind}) without a proven end"
    if reach.proof is None and reach.proven is not None:
        yield f"proven end {reach.proven!r} without a proof"
    if reach.witnessed is not None and reach.witness is None:
        yield f"witnessed end {reach.witnessed!r} without a witness"
    if reach.witnessed is None and reach.witness is not None:
        yield "a witness without a witnessed end"
    if "tolerance" in asked and reach.tolerance != asked["tolerance"]:
        yield f"tolerance {reach.tolerance!r}, but the study asked for {asked['tolerance']!r}"


def forward(record: ReachRecord, classifier: Classifier, instance: Instance) -> Iterator[str]:
    """What the original model says against the row: the class, the quantity at the centre, and its proven end."""
    reach, outputs = record.reach, classifier.reference(instance.x[None])[0]
    quantity = _quantity(record, classifier, instance, outputs)
    size = _size(quantity, outputs)
    if reach.prediction is not None and outputs[reach.prediction] < outputs.max() - _ROUNDING * size:
        yield f"prediction {reach.prediction}, but the original model says {int(np.argmax(outputs))}"
    if (reach.least, reach.unit) != (quantity.least, quantity.unit):
        yield f"the {_extremum(reach.least)} {reach.unit}, but {record.unit.setting.property} has another quantity"
    if reach.status == "unsolved":
        return
    per = reach.epsilon if quantity.per_distance else 1.0
    if not 0 <= reach.resolution <= _RESOLUTION * size / per:
        yield f"resolution {reach.resolution!r}, which rounding does not explain"
    start = 0.0 if quantity.per_distance else quantity.reported(float(_values(classifier, quantity, outputs)))
    if abs(reach.start - start) > _ROUNDING * size:
        yield f"{reach.start!r} at the input itself, but the original model says {start!r}"
    if reach.proven is not None and _beyond(reach.least, start, reach.proven) > _ROUNDING * size:
        yield f"proven end {reach.proven!r}, but the input itself has {start!r}"


def witnessed(record: ReachRecord, classifier: Classifier, instance: Instance, witness: Witness) -> Iterator[str]:
    """What the original model and arithmetic say against a witness and the end that rests on it."""
    reach, norm = record.reach, Norm.of(record.unit.setting.norm)
    if wrong := misplaced(witness, instance, classifier):
        yield wrong
        return
    value = witness.x.reshape(instance.x.shape)
    distance = Ball(instance.x, reach.epsilon, norm, classifier.domain).distance(value)
    if witness.distance != distance:
        yield f"distance {witness.distance!r} of the witness, but it lies {distance!r} away"
    if distance > reach.epsilon:
        yield f"the witness lies {distance!r} away, outside the ball of ε = {reach.epsilon!r}"
        return
    center = classifier.reference(instance.x[None])[0]
    quantity, point = _quantity(record, classifier, instance, center), torch.from_numpy(value.reshape(1, -1).copy())
    found = judged(classifier, instance.x, quantity, norm, reach.epsilon, point)
    if found is None or reach.witnessed is None:
        yield "the witness does not replay on the original model"
        return
    size = max(_size(quantity, center), _size(quantity, found.outputs))
    shown = quantity.reported(found.value)
    if abs(shown - reach.witnessed) > _ROUNDING * size / (max(distance, 1e-30) if quantity.per_distance else 1.0):
        yield f"witnessed end {reach.witnessed!r}, but its witness has {shown!r} on the original model"
    if np.abs(witness.outputs.ravel() - found.outputs.ravel()).max() > 1e-3 * max(1e-30, float(np.abs(center).max())):
        yield "the stored outputs of the witness are not those of the original model"


def _quantity(record: ReachRecord, classifier: Classifier, instance: Instance, center: NDArray[Any]) -> Quantity:
    asked = property_of(record.unit.setting)
    of = "probabilities" if asked.speaks_of == "probabilities" else "outputs"
    return asked.quantity(classifier.classes, instance.label, values_of(classifier, of, center))


def _values(classifier: Classifier, quantity: Quantity, outputs: NDArray[Any]) -> Any:
    return quantity.of_values(values_of(classifier, quantity.of, outputs))


def _size(quantity: Quantity, outputs: NDArray[Any]) -> float:
    """What rounding is measured by: the largest output, or 1 for probabilities."""
    many = 1.0 if math.isinf(quantity.order) else math.sqrt(len(quantity.offsets))
    return many * (1.0 if quantity.of == "probabilities" else max(float(np.abs(outputs).max()), 1e-30))


def _beyond(least: bool, value: float, proven: float) -> float:
    """How far a value lies on the wrong side of a proven end."""
    return proven - value if least else value - proven


def _extremum(least: bool) -> str:
    return "least" if least else "greatest"


class Ends:
    """Proven and witnessed ends of every question, against each other: a larger ball reaches at least as far."""

    def __init__(self) -> None:
        self._proven: dict[tuple[Any, ...], list[tuple[float, float, Any]]] = {}
        self._shown: dict[tuple[Any, ...], list[tuple[float, float]]] = {}

    def add(self, question: tuple[Any, ...], record: ReachRecord, row: Any) -> None:
        """Take note of a row's ends, turned so that a proof holds from above."""
        reach = record.reach
        sign = -1.0 if reach.least else 1.0
        if reach.proven is not None:
            self._proven.setdefault(question, []).append((reach.epsilon, sign * reach.proven, row))
        if reach.witnessed is not None:
            self._shown.setdefault(question, []).append((reach.epsilon, sign * reach.witnessed))

    def opposed(self) -> Iterator[tuple[Any, str]]:
        """Every proof that a witness in the same ball, or in a smaller one, exceeds."""
        for question, proofs in self._proven.items():
            for size, limit, row in proofs:
                for near, value in self._shown.get(question, ()):
                    if near <= size and value > limit:
                        yield row, f"proven end at ε = {size!r}, but a witness at ε = {near!r} goes beyond it"
