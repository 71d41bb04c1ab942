"""What one forward pass and arithmetic can say of a stored radius: each test gives lines, none when all is well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radii.decide import values_of, violation, witness_at
from radii.ensembles.members import Joint
from radii.models.classifier import Classifier
from radii.problem import Instance, Norm, Property, Query, Radius, Reach, Verdict, Witness
from radii.problem.tolerance import written
from radii.store import RadiusRecord
from radii.study.recall import property_of

_BATCHES = (1, 2, 32)  # sizes in which an input is run: a near tie may round differently in another one
_YEAR_10000 = 253402300800.0  # in seconds since 1970
_CLOSE = 1e-3  # of the largest output: how far stored outputs may be from those of this machine


def row(record: RadiusRecord, status: str) -> Iterator[str]:
    """What is wrong with the row by itself: its status, its ends, its proof and the trace of its search."""
    radius = record.radius
    yield from stated(radius, status, record.finished)
    if radius.proof is not None and radius.lower is None:
        yield f"a proof ({radius.proof.kind}) without a lower end"
    if radius.upper is not None and radius.witness is None and not radius.misclassified:
        yield f"upper end {radius.upper!r} without a witness"
    if radius.upper is None and radius.witness is not None:
        yield "a witness without an upper end"
    yield from _search(record)
    yield from _trace(record)


def stated(result: Radius | Reach, status: str, finished: float) -> Iterator[str]:
    """What is wrong with a row whatever was measured: its status, its alarm and its date."""
    if status != result.status.value:
        yield f"status {status!r}, but its ends say {result.status.value!r}"
    if result.alarm:
        yield result.alarm
    if not 0 <= finished < _YEAR_10000:
        yield f"finished at {finished!r} seconds since 1970"


def misplaced(witness: Witness, instance: Instance, classifier: Classifier) -> str:
    """Why a witness cannot be an input of the network; empty when it can."""
    if witness.x.size != instance.x.size or not np.isfinite(witness.x).all():
        return f"the witness: expected {instance.x.size} finite values, got another shape or values"
    inside = classifier.domain.contains(witness.x)
    return "" if inside else "the witness lies outside the network's domain"


def _search(record: RadiusRecord) -> Iterator[str]:
    """Whether ends, tolerance and limit are those that the search could give."""
    radius, asked = record.radius, record.unit.setting.search_parameters
    if radius.misclassified:
        return
    grid = asked.get("grid")
    if grid:
        for name, end in (("lower", radius.lower), ("upper", radius.upper)):
            if end is not None and end not in grid:
                yield f"{name} end {end!r} is not on the grid that was asked"
        if radius.limit != grid[-1]:
            yield f"limit {radius.limit!r}, but the last ε of its grid is {grid[-1]!r}"
        return
    for name, value in (("tolerance", written(radius.tolerance)), ("limit", radius.limit)):
        if name in asked and value != asked[name]:
            yield f"{name} {value!r}, but the study asked for {asked[name]!r}"


def _trace(record: RadiusRecord) -> Iterator[str]:
    """Whether the ends are those that the recorded queries gave; more work may have raised a lower end since."""
    radius, queries = record.radius, record.queries
    for odd in {one.verdict for one in queries} - set(Verdict):
        yield f"a query with the verdict {odd!r}"
    broken = [one.epsilon for one in queries if one.verdict == Verdict.BROKEN]
    robust = [one.epsilon for one in queries if one.verdict == Verdict.ROBUST]
    if broken and radius.upper != min(broken):
        yield f"upper end {radius.upper!r}, but the smallest ε that its search broke is {min(broken)!r}"
    if robust and not radius.alarm and (radius.lower or 0.0) < max(robust):
        yield f"lower end {radius.lower!r}, but the largest ε that its search proved is {max(robust)!r}"


def forward(record: RadiusRecord, classifier: Classifier, instance: Instance) -> Iterator[str]:
    """What the original model says against the row: the input's class, and whether the property holds there at all."""
    radius, holds = record.radius, property_of(record.unit.setting)
    outputs = classifier.reference(instance.x[None])[0]

    def broken(seen: NDArray[Any]) -> bool:
        spec = violation(classifier, _narrowed(holds, seen, instance.label), instance.label, seen)
        return spec.violated(values_of(classifier, spec.of, seen))

    def wrong(seen: NDArray[Any]) -> bool:
        alone = not isinstance(holds, Joint)  # outputs of several members have no one class
        return (alone and bool(np.delete(seen, instance.label).max() >= seen[instance.label])) or broken(seen)

    if radius.prediction is not None and not _somehow(classifier, instance.x, outputs, _is(radius.prediction)):
        yield f"prediction {radius.prediction}, but the original model says {int(np.argmax(outputs))}"
    if radius.misclassified and not _somehow(classifier, instance.x, outputs, wrong):
        yield "stored as misclassified, but the original model gets it right"
    end = radius.upper if radius.lower is None else radius.lower
    if radius.misclassified or end is None or _somehow(classifier, instance.x, outputs, lambda seen: not broken(seen)):
        return
    said = "broken first at" if radius.lower is None else "proven robust up to"
    yield f"{said} {end!r}, but the original model gets the input itself wrong: its radius is 0"


def witnessed(record: RadiusRecord, classifier: Classifier, instance: Instance, witness: Witness) -> Iterator[str]:
    """What the original model and arithmetic say against a witness and the upper end that rests on it."""
    radius, norm = record.radius, Norm.of(record.unit.setting.norm)
    upper = radius.upper if radius.upper is not None else 0.0
    if wrong := misplaced(witness, instance, classifier):
        yield wrong
        return
    value = witness.x.reshape(instance.x.shape)
    found = _replayed(classifier, instance, property_of(record.unit.setting), norm, value)
    if found is None:
        yield f"the witness at {upper!r} does not replay on the original model"
        return
    if found.distance > upper:
        yield f"the witness at {upper!r} does not replay on the original model: it lies {found.distance!r} away"
    elif found.distance < upper and not record.unit.setting.search_parameters.get("grid"):
        yield f"upper end {upper!r}, but its witness lies {found.distance!r} away"
    if witness.distance != found.distance:
        yield f"distance {witness.distance!r} of the witness, but it lies {found.distance!r} away"
    if witness.prediction != found.prediction and not _somehow(
        classifier, value, found.outputs, _is(witness.prediction)
    ):
        yield f"the witness is taken for {witness.prediction}, but the original model says {found.prediction}"
    if not _close(witness.outputs, found.outputs):
        yield "the stored outputs of the witness are not those of the original model"


def _replayed(
    classifier: Classifier, instance: Instance, holds: Property, norm: Norm, value: NDArray[Any]
) -> Witness | None:
    """The witness as the original model sees it, wherever it lies."""
    seen = classifier.reference(value.reshape(1, *classifier.input_shape))[0]
    return witness_at(classifier, Query(instance, 0.0, _narrowed(holds, seen, instance.label), norm), value)


def _narrowed(holds: Property, outputs: NDArray[Any], label: int) -> Property:
    """The property as it is to be tested on outputs: of the many ways to fool several members, the one they show."""
    return holds.at(outputs, label) if isinstance(holds, Joint) else holds


def _is(stated: int) -> Callable[[NDArray[Any]], bool]:
    """Whether outputs give the stated class; of tied classes each is given."""
    return lambda seen: 0 <= stated < len(seen) and bool(seen[stated] == seen.max())


def _somehow(
    classifier: Classifier, x: NDArray[Any], outputs: NDArray[Any], test: Callable[[NDArray[Any]], bool]
) -> bool:
    """Whether the test holds of the original model's outputs, as they are given or with the input in a batch."""
    one = x.reshape(1, *classifier.input_shape)
    return test(outputs) or any(test(classifier.reference(np.repeat(one, n, axis=0))[-1]) for n in _BATCHES)


def _close(stored: NDArray[Any], found: NDArray[Any]) -> bool:
    if stored.size != found.size or not np.isfinite(stored).all():
        return False
    slack = _CLOSE * max(1e-30, float(np.abs(found).max()))
    return bool(np.abs(stored.ravel().astype(np.float64) - found.ravel()).max() <= slack)
