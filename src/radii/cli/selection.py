"""The options that choose a part of a store, the same for every command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from radii._check import choice

if TYPE_CHECKING:
    from radii.store import Selection, Store


def chosen(store: Store, study: list[str] | None, classifier: list[str] | None, status: list[str] | None) -> Selection:
    """The selection of these names; one that the store does not have is refused with the nearest."""
    from radii.problem import Status
    from radii.store import Selection

    studies, names = list(store.studies()), [one.name for one in store.classifiers()]
    return Selection(
        study=tuple(choice(name, "--study", studies) for name in study or ()),
        classifier=tuple(choice(name, "--classifier", names) for name in classifier or ()),
        status=tuple(choice(name, "--status", [one.value for one in Status]) for name in status or ()),
    )
