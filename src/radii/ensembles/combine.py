"""Several classifiers as one: joined, averaged or by vote."""

from __future__ import annotations

from collections.abc import Sequence

from radii.ensembles.members import Merged
from radii.errors import InputError
from radii.models.classifier import Classifier


def together(
    how: str, members: Sequence[Classifier], weights: Sequence[float] = (), name: str | None = None
) -> Classifier:
    """The members as one classifier."""
    if how == "joint":
        return Merged.of(members)
    raise InputError(f"combine: expected joint, got {how!r}")
