"""Direct search: let a decider that measures radii itself do so (`decide.Measurer`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from radii.decide import Budget, Decider, Measurer
from radii.errors import InputError
from radii.models.classifier import Classifier
from radii.problem import LINF, Instance, Norm, Property, Radius, Tolerance
from radii.problem.tolerance import tolerance_of
from radii.search.drive import CLASSIFICATION

log = logging.getLogger(__name__)


def direct(
    classifier: Classifier,
    decider: Decider | Measurer,
    instances: Sequence[Instance],
    budget: Budget,
    *,
    property: Property = CLASSIFICATION,
    norm: Norm = LINF,
    tolerance: Tolerance = 0.002,
    limit: float | None = None,
    progress: Callable[[int, Radius], None] | None = None,
) -> list[Radius]:
    """One radius per instance, in order; the budget is per instance."""
    measurer = refuse_asker(decider)
    tolerance_of(tolerance)
    found = measurer.measure(
        classifier, instances, property, norm, budget, tolerance=tolerance, limit=limit, progress=progress
    )
    for instance, radius in zip(instances, found):
        if radius.alarm:
            log.error("input %d: %s", instance.index, radius.alarm)
    return found


def refuse_asker(decider: Decider | Measurer) -> Measurer:
    """The decider itself if it measures radii; one that only answers queries is refused."""
    if isinstance(decider, Measurer):
        return decider
    raise InputError(
        f"verifier: expected one that measures radii (native, milp, envelope), got {decider.identity}, which only "
        "answers queries; give the ε to ask about: --grid START:STOP:STEP, or grid=(start, stop, step) in Python"
    )
